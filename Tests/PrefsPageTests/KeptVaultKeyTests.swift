#if os(Linux)
  import Coffer
  import Foundation
  import TestSupport
  import Testing

  @testable import PrefsCommands
  @testable import PrefsPage

  @Suite("A page for a store whose vault prefs unlock has unlocked") struct KeptVaultKeyTests {
    @Test("Uses the kept key before it saves anything: a seal that someone has removed stores no plaintext")
    func removedSeal() throws {
      let scratch = try ScratchFolder()
      let bench = try CraftingBench(in: scratch.file("crafted"))
      let database = try bench.open()
      defer { try? database.close() }
      try database.vault.unlock(.keyFile(bench.vaultKeyFile))
      let keyring = KernelKeyring(storeID: try Database.storeID(at: bench.path))
      // In a container without keyrings, an agent would keep the key, which a test cannot be.
      guard keyring.keep(try database.vault.vaultKey(), seconds: 60) == nil else { return }
      defer { keyring.forget() }
      database.vault.lock()
      let options = SessionOptions(store: bench.path, keyFile: bench.keyFile)
      let session = try CommandSession(options)
      let store = try PageStore(
        database, session: session, scope: CollectionScope(named: []), isReadOnly: false,
        vault: PageVault(database, session, keyFile: nil, time: .seconds(900)) { _ in })
      try bench.execute("UPDATE collections SET flags = 0, history_count = NULL WHERE name = 'tokens'")
      let change = #"{"collection":"tokens","key":"new","store":0,"version":0,"type":"string","text":"s3cret"}"#
      let new = #"{"changes":[\#(change)]}"#
      #expect {
        try store.change(PageRequest(new))
      } throws: {
        if case CofferError.damaged(part: "declaration of \"tokens\"", _) = $0 { true } else { false }
      }
      let keys = try bench.open().makeConnection().read { try $0.allKeys(inCollection: "tokens") }
      #expect(keys == ["k"])
    }
  }
#endif
