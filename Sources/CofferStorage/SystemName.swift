#if canImport(Glibc)
  import Glibc
  private typealias GroupEntry = Glibc.group
#elseif canImport(Musl)
  import Musl
  private typealias GroupEntry = Musl.group
#else
  import Darwin
  private typealias GroupEntry = Darwin.group
#endif

/// Names of users and groups, for messages; their numbers if they have none.
package enum SystemName {
  package static func user(_ id: uid_t) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
      var entry = passwd()
      var found: UnsafeMutablePointer<passwd>?
      guard getpwuid_r(id, &entry, buffer.baseAddress!, buffer.count, &found) == 0, found != nil,
        let name = entry.pw_name
      else { return "\(id)" }
      return String(cString: name)
    }
  }

  package static func group(_ id: gid_t) -> String {
    // The members of a large group are in the buffer, too.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 65536) { buffer in
      var entry = GroupEntry()
      var found: UnsafeMutablePointer<GroupEntry>?
      guard getgrgid_r(id, &entry, buffer.baseAddress!, buffer.count, &found) == 0, found != nil,
        let name = entry.gr_name
      else { return "\(id)" }
      return String(cString: name)
    }
  }
}
