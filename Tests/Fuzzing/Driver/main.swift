// Fuzzes one target.
//
//   Fuzz list                       says the names of the targets
//   Fuzz seed FOLDER                writes the seeds of all targets, each into a folder of its own
//   Fuzz TARGET [OPTION|FOLDER…]    runs libFuzzer with these arguments

import CFuzzer
import Foundation

/// What libFuzzer's callback, which captures nothing, runs; set once, before it is called.
nonisolated(unsafe) var target: FuzzTarget?

func fail(_ message: String) -> Never {
  FileHandle.standardError.write(Data((message + "\n").utf8))
  exit(2)
}

/// Runs libFuzzer with the arguments behind the target's name.
func fuzz() -> Int32 {
  var arguments = ([CommandLine.arguments[0]] + CommandLine.arguments.dropFirst(2)).map { strdup($0) }
  var count = Int32(arguments.count)
  arguments.append(nil)
  return arguments.withUnsafeMutableBufferPointer { buffer in
    var start = buffer.baseAddress
    return LLVMFuzzerRunDriver(&count, &start) { bytes, byteCount in
      do {
        try target?.check(Array(UnsafeBufferPointer(start: bytes, count: byteCount)))
      } catch {
        fatalError("\(error)")
      }
      return 0
    }
  }
}

switch CommandLine.arguments.dropFirst().first {
case "list": FuzzTarget.all.forEach { print($0.name) }
case "seed" where CommandLine.arguments.count == 3:
  do {
    try FuzzSeeds.write(to: CommandLine.arguments[2])
  } catch {
    fail("\(error)")
  }
case let name?:
  target = FuzzTarget.all.first { $0.name == name }
  guard target != nil else { fail("There is no target \(name). `Fuzz list` names them.") }
  exit(fuzz())
case nil: fail("usage: Fuzz list | seed FOLDER | TARGET [OPTION|FOLDER…]")
}
