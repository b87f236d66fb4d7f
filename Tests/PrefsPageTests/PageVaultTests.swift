import Coffer
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import PrefsCommands
@testable import PrefsPage

@Suite("The vault of the settings page", .serialized) struct PageVaultTests {
  private let clock = TestClock()
  private let scratch: ScratchFolder
  private let bench: CraftingBench
  private let database: Database
  private let session: CommandSession
  private let told = Told()

  /// The events sent to the pages.
  private final class Told: Sendable {
    private let states = Mutex<[Bool]>([])

    var all: [Bool] { states.withLock { $0 } }

    func add(_ isUnlocked: Bool) { states.withLock { $0.append(isUnlocked) } }
  }

  init() throws {
    scratch = try ScratchFolder()
    bench = try CraftingBench(in: scratch.file("crafted"))
    database = try bench.open()
    session = try CommandSession(SessionOptions(store: bench.path, keyFile: bench.keyFile))
  }

  private func vault(keyFile: String? = nil) -> PageVault {
    PageVault(
      database, session, keyFile: .keyFile(keyFile ?? bench.vaultKeyFile), time: .seconds(900),
      now: { [clock] in clock.now }
    ) { [told] in told.add($0) }
  }

  private var state: UnlockState {
    get throws { UnlockState(storeID: try Database.storeID(at: bench.path), options: session.options) }
  }

  @Test("That was opened by a key file is locked after the same time as one that was opened by its passphrase")
  func keyFile() throws {
    defer { try? database.close() }
    try database.vault.unlock(.keyFile(bench.vaultKeyFile))
    let vault = vault()
    clock.advance(by: .seconds(899))
    vault.check()
    #expect(vault.isUnlocked)
    clock.advance(by: .seconds(1))
    vault.check()
    #expect(!vault.isUnlocked)
    #expect(told.all == [true, false])
    // The key file that was named opens it again, on purpose.
    try vault.unlock(SecretBytes(copying: ""))
    #expect(vault.isUnlocked)
  }

  @Test("Is locked by prefs lock, however it was opened")
  func lockCommand() throws {
    defer { try? database.close() }
    let vault = vault()
    try vault.unlock(SecretBytes(copying: ""))
    vault.check()
    #expect(vault.isUnlocked)
    try state.lock()
    vault.check()
    #expect(!vault.isUnlocked)
    // That was for what was open then.
    try vault.unlock(SecretBytes(copying: ""))
    vault.check()
    #expect(vault.isUnlocked)
  }

  @Test("Stays locked when it is locked while its key is being read", arguments: [true, false])
  func lockMeanwhile(byCommand: Bool) throws {
    defer { try? database.close() }
    let pipe = scratch.file("pipe")
    try #require(mkfifo(pipe, 0o600) == 0)
    let key = try Data(contentsOf: URL(fileURLWithPath: bench.vaultKeyFile))
    let vault = vault(keyFile: pipe)
    let kept = try state
    let writer = Thread {
      // Opens once there is a reader.
      let descriptor = open(pipe, O_WRONLY)
      if byCommand { try? kept.lock() } else { vault.lock() }
      key.withUnsafeBytes { _ = write(descriptor, $0.baseAddress, $0.count) }
      close(descriptor)
    }
    writer.start()
    #expect {
      try vault.unlock(SecretBytes(copying: ""))
    } throws: {
      ($0 as? Failure)?.status == .conflict
    }
    #expect(!vault.isUnlocked && !told.all.contains(true))
  }

  #if os(Linux)
    @Test(
      "That was opened with the key that prefs unlock keeps is open as long as that; once locked by hand, only a new unlock counts"
    )
    func keptKey() throws {
      defer { try? database.close() }
      let keyring = KernelKeyring(storeID: try Database.storeID(at: bench.path))
      try database.vault.unlock(.keyFile(bench.vaultKeyFile))
      let key = try database.vault.vaultKey()
      database.vault.lock()
      // In a container without keyrings, an agent would keep the key, which a test cannot be.
      guard keyring.keep(key, seconds: 600) == nil else { return }
      defer { keyring.forget() }
      let vault = vault()
      try vault.unlockWithKeptKey()
      vault.check()
      #expect(vault.isUnlocked)
      vault.lock()
      try vault.unlockWithKeptKey()
      #expect(!vault.isUnlocked)
      // Another `prefs unlock`.
      keyring.forget()
      try #require(keyring.keep(key, seconds: 60) == nil)
      try vault.unlockWithKeptKey()
      #expect(vault.isUnlocked)
      keyring.forget()
      vault.check()
      #expect(!vault.isUnlocked)
    }
  #endif
}
