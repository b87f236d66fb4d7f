// Uses one store from several processes for some minutes, and says whether anything grows that should not.
//
//   Load MINUTES PLOT                        the whole run; the plot is an SVG file
//   Load use STORE KEYFILE SECONDS NUMBER    one of its processes

import Coffer
import Foundation

let arguments = CommandLine.arguments
do {
  if arguments.count == 6, arguments[1] == "use", let seconds = Double(arguments[4]), let number = Int(arguments[5]) {
    try UsingProcess(store: arguments[2], keyFile: arguments[3], number: number).run(for: seconds)
  } else if arguments.count == 3, let minutes = Double(arguments[1]), minutes > 0 {
    exit(try LoadRun(minutes: minutes, plot: arguments[2]).run() ? 0 : 1)
  } else {
    FileHandle.standardError.write(Data("usage: Load MINUTES PLOT\n".utf8))
    exit(2)
  }
} catch {
  FileHandle.standardError.write(Data("Load: \(error)\n".utf8))
  exit(1)
}
