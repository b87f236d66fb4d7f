#if os(Linux)
  import CofferCrypto
  import CofferStorage
  import Foundation
  import TestSupport
  import Testing

  @testable import Coffer

  @Suite("Core dumps") struct CoreDumpTests {
    @Test("are disabled by the limit and by the kernel's flag")
    func disabled() throws {
      let child = try TemporaryStore().worker("disable-core-dumps")
      #expect(child.status == 0)
      let lines = child.text.split(separator: "\n")
      try #require(lines.count == 3)
      #expect(lines[0] == "1" && lines[1] == "0")
      #expect(lines[2].split(separator: " ").suffix(3).first == "0")
    }

    /// Whether this process may look into one that has turned off its dumps: it has CAP_SYS_PTRACE.
    private static let seesOthers: Bool = {
      let status = FileHandle(forReadingAtPath: "/proc/self/status")?.readDataToEndOfFile() ?? Data()
      let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("CapEff:") }
      return line.flatMap { UInt64($0.dropFirst(8), radix: 16) }.map { $0 & 1 << 19 != 0 } ?? false
    }()

    /// In a separate process, because OpenSSL allocates its memory at the start.
    @Test("have no key of an open store or vault if OpenSSL uses Coffer's memory")
    func keysOfThisProcess() async {
      let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        Cryptography.setUpAlone(withNamesAndWords: true)
        let store = try TemporaryStore()
        let database = try store.open()
        let passphrase = try SecretBytes.random(count: 24)
        try database.vault.create(key: .passphrase(passphrase), stretching: .scrypt(log2N: 14, r: 8, p: 1))
        try database.seal(collection: "tokens")
        let proxy = try ConnectionProxy(database: database)
        for number in 0..<300 { try proxy.setObject(Secret("\(number)"), forKey: "\(number)", inCollection: "tokens") }
        try proxy.flushAndWait()
        for number in 0..<300 { _ = try proxy.object(forKey: "\(number)", inCollection: "tokens", as: Secret.self) }
        var search = MemorySearch()
        search.add("key file", try KeyFile.read(at: store.keyFile))
        search.add("passphrase", passphrase)
        search.add("vault key", try database.vault.vaultKey())
        for (name, key) in try database.storeOnDisk().secrets { search.add(name, key) }
        let inMemory = try search.found()
        let inDump = try search.found(inDump: true)
        print(inMemory.isSuperset(of: ["root key", "page key", "log header key", "vault key"]), inDump.sorted())
        try proxy.close()
        exit(0)
      }
      #expect(result.map { String(decoding: $0.standardOutputContent, as: UTF8.self) } == "true []\n")
    }

    @Test("have no key of the store that a running prefs has open", .enabled(if: seesOthers))
    func keysOfTool() throws {
      let store = try TemporaryStore()
      let database = try store.open()
      try database.makeConnection().readWrite { try $0.setObject("value", forKey: "key") }
      let prefs = Child.products.appendingPathComponent("prefs").path
      let process = try Child.start(
        prefs, ["watch", "--since", "0", "--values", "--store", store.path, "--key-file", store.keyFile])
      defer { process.kill() }
      // By the line that it prints it has opened pages.
      #expect(!process.output.availableData.isEmpty)
      var search = MemorySearch(process: "\(process.id)")
      for (name, key) in try database.storeOnDisk().secrets { search.add(name, key) }
      #expect(try search.found().isSuperset(of: ["root key", "page key", "log header key"]))
      #expect(try search.found(inDump: true) == [])
    }
  }
#endif
