#if os(Linux)
  import CofferCrypto
  import CofferStorage
  import Foundation
  import TestSupport
  import Testing

  @testable import Coffer

  /// Looks for secrets in the memory of a process, as a debugger or a core dump would show it.
  struct MemorySearch {
    /// The process, by its name in /proc.
    private let process: String
    /// Copies of what is looked for, which are no finds themselves.
    private var needles: [(name: String, copy: SecretBytes)] = []

    init(process: String = "self") { self.process = process }

    mutating func add(_ name: String, _ secret: SecretBytes) {
      needles.append((name, secret.withUnsafeBytes(SecretBytes.init(copying:))))
    }

    /// The names of what is there.
    ///
    /// - Parameter inDump: Whether to leave out what the kernel leaves out of a core dump: pages with the flag `dd`, which
    ///   `MADV_DONTDUMP` sets (proc_pid_smaps(5)).
    func found(inDump: Bool = false) throws -> Set<String> {
      var found: Set<String> = []
      let memory = open("/proc/\(process)/mem", O_RDONLY)
      guard memory >= 0 else { throw POSIXError(.EACCES) }
      defer { close(memory) }
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
      defer { room.deallocate() }
      // To its end, however long the system says it is: for a file without a length, less is read elsewhere.
      let maps = FileHandle(forReadingAtPath: "/proc/\(process)/smaps")?.readDataToEndOfFile() ?? Data()
      var mapping = 0..<UInt(0)
      for line in String(decoding: maps, as: UTF8.self).split(separator: "\n") {
        let fields = line.split(separator: " ")
        let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
        if ends.count == 2 { mapping = fields[1].hasPrefix("rw") ? ends[0]..<ends[1] : 0..<0 }
        // The last line of each mapping.
        guard fields[0] == "VmFlags:", !inDump || !fields.contains("dd") else { continue }
        var start = mapping.lowerBound
        while start < mapping.upperBound {
          let count = pread(memory, room.baseAddress, min(room.count, Int(mapping.upperBound - start)), off_t(start))
          guard count > 0 else { break }
          look(in: UnsafeRawBufferPointer(rebasing: room[..<count]), at: start, room, &found)
          // What is cut in two by the end of the buffer is seen with the next one.
          start += UInt(count < room.count ? count : count - 64)
        }
      }
      return found
    }

    private func look(
      in bytes: UnsafeRawBufferPointer, at address: UInt, _ room: UnsafeMutableRawBufferPointer,
      _ found: inout Set<String>
    ) {
      let roomStart = UInt(bitPattern: room.baseAddress)
      for (name, copy) in needles where !found.contains(name) {
        copy.withUnsafeBytes { needle in
          guard let first = needle.first, let needleStart = needle.baseAddress, let start = bytes.baseAddress else {
            return
          }
          var offset = 0
          while let hit = memchr(start + offset, Int32(first), bytes.count - offset) {
            offset = UnsafeRawPointer(hit) - start
            guard offset + needle.count <= bytes.count else { return }
            let place = address + UInt(offset)
            let isCopy =
              process == "self"
              && (place == UInt(bitPattern: needleStart) || (roomStart..<roomStart + UInt(room.count)).contains(place))
            if !isCopy, memcmp(start + offset, needleStart, needle.count) == 0 {
              found.insert(name)
              return
            }
            offset += 1
          }
        }
      }
    }
  }

  @Suite("Memory") struct MemoryTests {
    /// The output of the child process.
    private static func expectNothing(_ result: ExitTest.Result?) {
      #expect(result.map { String(decoding: $0.standardOutputContent, as: UTF8.self) } == "left behind: []\n")
    }

    /// Each in a process of its own, which is looked through from within.
    @Test("holds no key after close()")
    func keys() async {
      let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        let store = try TemporaryStore()
        var search = MemorySearch()
        let passphrase = try SecretBytes.random(count: 24)
        search.add("key file", try KeyFile.read(at: store.keyFile))
        search.add("passphrase", passphrase)
        func use() throws {
          let database = try store.open()
          try database.addSlot(.passphrase(passphrase), stretching: .scrypt(log2N: 14, r: 8, p: 1))
          let proxy = try ConnectionProxy(database: database)
          for number in 0..<300 { try proxy.setObject("value \(number)", forKey: "\(number)") }
          try proxy.flushAndWait()
          try database.rotate()
          for number in 0..<300 { _ = try proxy.object(forKey: "\(number)", as: String.self) }
          for (name, key) in try database.storeOnDisk().secrets { search.add(name, key) }
          let whileOpen = try search.found()
          let sought: Set = ["root key", "slot key", "page key", "log header key"]
          if !whileOpen.isSuperset(of: sought) {
            print("not found while it is there: \(sought.subtracting(whileOpen))")
          }
          try proxy.close()
          try database.close()
        }
        try use()
        // The passphrase is this test's own.
        let left = try search.found().subtracting(["passphrase"])
        print("left behind: \(left.sorted())")
        exit(0)
      }
      Self.expectNothing(result)
    }

    @Test("holds neither the vault's key nor a secret of a sealed collection after lock()")
    func vault() async {
      let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        let store = try TemporaryStore()
        var search = MemorySearch()
        let passphrase = try SecretBytes.random(count: 24)
        let database = try store.open()
        let proxy = try ConnectionProxy(database: database)
        try database.vault.create(key: .passphrase(passphrase), stretching: .scrypt(log2N: 14, r: 8, p: 1))
        try database.seal(collection: "tokens")
        func use() throws {
          let (first, second) = (try SecretBytes.random(count: 40), try SecretBytes.random(count: 40))
          search.add("vault key", try database.vault.vaultKey())
          search.add("secret set through the proxy", first)
          search.add("secret set in a transaction", second)
          try proxy.setObject(Secret(first), forKey: "proxy", inCollection: "tokens")
          try proxy.flushAndWait()
          let connection = try database.makeConnection()
          try connection.readWrite { try $0.setObject(Secret(second), forKey: "connection", inCollection: "tokens") }
          for key in ["proxy", "connection"] {
            guard try proxy.object(forKey: key, inCollection: "tokens", as: Secret.self)?.count == 40,
              try connection.read({ try $0.object(forKey: key, inCollection: "tokens", as: Secret.self) })?.count == 40
            else { fatalError("the secrets are gone") }
          }
          // Pending when the vault is locked.
          try proxy.setObject(Secret(second), forKey: "pending", inCollection: "tokens")
          if try search.found().count != 3 { print("not found while it is there") }
        }
        try use()
        database.vault.lock()
        try proxy.flushAndWait()
        let left = try search.found()
        print("left behind: \(left.sorted())")
        exit(0)
      }
      Self.expectNothing(result)
    }
  }
#endif
