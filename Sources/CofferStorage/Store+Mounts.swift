import CSQLite

extension Store {
  /// The number of names of the file, by hard links.
  package var linkCount: Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_nlink) : 0
  }

  /// Whether something is mounted at the file itself; false where the system does not say.
  package var isMountPoint: Bool {
    // proc_pid_mountinfo(5): the fifth field, in which a space, a tab, a line feed and a backslash are octal numbers.
    guard let file = fopen("/proc/self/mountinfo", "re") else { return false }
    defer { fclose(file) }
    let escaped = path.utf8.flatMap { byte -> [UInt8] in
      guard [0x20, 0x09, 0x0a, 0x5c].contains(byte) else { return [byte] }
      let octal = String(byte, radix: 8)
      return Array("\\\(String(repeating: "0", count: 3 - octal.count))\(octal)".utf8)
    }
    var (line, capacity): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
    defer { free(line) }
    while getline(&line, &capacity, file) > 0, let line {
      let fields = UnsafeRawBufferPointer(start: line, count: strlen(line)).split(
        separator: UInt8(ascii: " "), maxSplits: 5, omittingEmptySubsequences: true)
      if fields.count > 4, fields[4].elementsEqual(escaped) { return true }
    }
    return false
  }
}
