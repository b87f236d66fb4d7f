import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("Key slots") struct SlotTests {
  private let store: TemporaryStore
  private let database: Database
  /// The cheapest that is allowed.
  private let cheap = PasswordHash.scrypt(log2N: 14, r: 8, p: 1)

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject("there", forKey: "k") }
  }

  private func passphrase(_ text: String) -> KeySource { .passphrase(SecretBytes(copying: text.utf8)) }

  /// What another process would see.
  private func reads(with key: KeySource) throws -> String? {
    let copy = try TemporaryStore()
    try store.copyAsAfterCrash(to: copy)
    return try Database.open(at: copy.path, key: key).makeConnection().read { try $0.object(forKey: "k") }
  }

  @Test("open the store, each with its own secret, and are listed with their kinds")
  func adding() throws {
    try database.addSlot(passphrase("correct horse"), label: "Ada", stretching: cheap)
    let other = "\(store.folder)/other"
    try KeyFile.create(at: other)
    try database.addSlot(.keyFile(other), label: "laptop")
    let third = "\(store.folder)/third"
    try KeyFile.create(at: third)
    try database.addSlot(.keyCommand("cat \(third)"))
    let slots = try database.slots()
    #expect(slots.map(\.id) == [0, 1, 2, 3])
    #expect(slots.map(\.kind) == [.keyFile, .passphrase, .keyFile, .keyCommand])
    #expect(slots.map(\.label) == ["", "Ada", "laptop", ""])
    #expect(slots[1].costDescription == "scrypt N=2^14 r=8 p=1")
    for key in [store.key, passphrase("correct horse"), .keyFile(other), .keyCommand("cat \(third)")] {
      let value = try reads(with: key)
      #expect(value == "there")
    }
    #expect(throws: CofferError.wrongKey) { try reads(with: passphrase("Correct horse")) }
  }

  @Test("are there only once their secret is kept, in a store and in its vault")
  func kept() throws {
    struct Full: Error {}
    try database.vault.create(key: passphrase("v"), stretching: cheap)
    for holder in [database, database.vault] as [any SlotHolder] {
      let before = try holder.slots()
      // What another process would see.
      func stored() throws -> [SlotInfo] {
        guard holder is Vault else { return try Database.slots(at: store.path) }
        return try store.open().vault.slots()
      }
      #expect(throws: Full.self) {
        try holder.addSlot(.key(.random(count: 32)), label: "lost") { _, _ in throw Full() }
      }
      #expect(try holder.slots() == before && stored() == before)
      let added = try holder.addSlot(.key(.random(count: 32)), label: "kept") { slot, present in
        let there = try stored()
        #expect(there == before && present == before && !present.contains(slot))
      }
      #expect(try holder.slots() == before + [added] && stored() == before + [added])
    }
  }

  @Test("are compared again with a new secret when others have added some meanwhile", arguments: [false, true])
  func comparedAgain(_ isSame: Bool) throws {
    let (pipe, file, copy) = ("\(store.folder)/pipe", "\(store.folder)/new", "\(store.folder)/copy")
    try KeyFile.create(at: file)
    let text = try Data(contentsOf: URL(fileURLWithPath: file))
    try FileManager.default.copyItem(atPath: file, toPath: copy)
    try #require(mkfifo(pipe, 0o600) == 0)
    nonisolated(unsafe) var added: Result<SlotInfo, any Error>?
    let isAdded = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      added = Result { try database.addSlot(.keyFile(pipe), label: "waits") }
      isAdded.signal()
    }
    // It has read the slots by the time it opens the pipe.
    let writer = try pipeWriter(pipe)
    let meanwhile = try store.open().addSlot(isSame ? .keyFile(file) : .key(.random(count: 32)), label: "meanwhile")
    // The next time it does not wait.
    try #require(rename(copy, pipe) == 0)
    try writer.write(contentsOf: text)
    try writer.close()
    isAdded.wait()
    if isSame {
      #expect(throws: CofferError.secretInUse(slot: meanwhile.id)) { try added?.get() }
      #expect(try database.slots().map(\.label) == ["", "meanwhile"])
    } else {
      #expect(try added?.get().id == 2)
      #expect(try database.slots().map(\.label) == ["", "meanwhile", "waits"])
    }
  }

  @Test("stretch a passphrase at the given cost, and refuse one that is too low")
  func creation() throws {
    let path = "\(store.folder)/created"
    let made = try Database.create(at: path, key: passphrase("p"), stretching: cheap)
    #expect(try made.slots().map(\.costDescription) == ["scrypt N=2^14 r=8 p=1"])
    #expect {
      try Database.create(at: path + "2", key: passphrase("p"), stretching: .pbkdf2HMACSHA512(iterations: 1))
    } throws: {
      if case CofferError.unsupported = $0 { true } else { false }
    }
    #expect(!FileManager.default.fileExists(atPath: path + "2"))
  }

  // In a process of its own: starting others copies the environment, which must not change meanwhile.
  @Test("accept a systemd credential")
  func credential() async {
    await #expect(processExitsWith: .success) { try SlotTests().acceptCredential() }
  }

  private func acceptCredential() throws {
    let folder = "\(store.folder)/credentials"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try KeyFile.create(at: "\(folder)/coffer")
    setenv("CREDENTIALS_DIRECTORY", folder, 1)
    let slot = try database.addSlot(.credential("coffer"))
    #expect(slot.kind == .credential)
    #expect(try reads(with: .credential("coffer")) == "there")
    for name in ["missing", "../key", ""] {
      #expect { try reads(with: .credential(name)) } throws: { error in
        if case CofferError.keyUnavailable = error { true } else { false }
      }
    }
  }

  @Test("open with a recovery key, however it is typed")
  func recovery() throws {
    let text = try database.addRecoveryKey(label: "paper").text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    #expect(text.split(separator: "-").map(\.count) == [5, 5, 5, 5, 5, 5, 5, 5])
    #expect(try database.slots().last?.kind == .recoveryKey)
    let sloppy = text.lowercased().replacing("-", with: "  ").replacing("0", with: "o").replacing("1", with: "l") + "\n"
    for typed in [text, sloppy, text.replacing("-", with: "")] {
      let value = try reads(with: .recoveryKey(SecretBytes(copying: typed.utf8)))
      #expect(value == "there")
    }
  }

  @Test("that are removed leave nothing in either copy of the envelope")
  func removing() throws {
    try database.addSlot(passphrase("leaving"), label: "Bob was here", stretching: cheap)
    let commitment = try Store.peekEnvelope(at: store.path).slots[1].encoded.dropFirst(16).prefix(32)
    #expect(try store.bytes().ranges(of: Data(commitment)).count == 2)
    try database.removeSlot(1)
    let bytes = try store.bytes()
    #expect(bytes.ranges(of: Data(commitment)).isEmpty)
    #expect(bytes.ranges(of: Data("Bob was here".utf8)).isEmpty)
    #expect(throws: CofferError.wrongKey) { try reads(with: passphrase("leaving")) }
    #expect(try reads(with: store.key) == "there")
  }

  @Test("can be changed: the old secret no longer opens the store")
  func changing() throws {
    try database.addSlot(passphrase("old"), label: "Ada", stretching: cheap)
    let slot = try database.changeSlot(1, to: passphrase("new"), stretching: .pbkdf2HMACSHA512(iterations: 100_000))
    #expect(slot.id == 1 && slot.label == "Ada")
    #expect(slot.costDescription == "PBKDF2-HMAC-SHA512, 100000 iterations")
    #expect(throws: CofferError.wrongKey) { try reads(with: passphrase("old")) }
    #expect(try reads(with: passphrase("new")) == "there")
    try database.setLabel("Ada's own", forSlot: 1)
    #expect(try database.slots()[1].label == "Ada's own")
    #expect(try reads(with: passphrase("new")) == "there")
  }

  @Test("are refused if invalid, and nothing changes")
  func refusals() throws {
    let before = try database.slots()
    #expect(throws: CofferError.lastSlot) { try database.removeSlot(0) }
    for id in [7, -1, 300] {
      #expect(throws: CofferError.slotNotFound(id: id)) { try database.removeSlot(id) }
      #expect(throws: CofferError.slotNotFound(id: id)) { try database.setLabel("x", forSlot: id) }
      #expect(throws: CofferError.slotNotFound(id: id)) { try database.changeSlot(id, to: store.key) }
    }
    for hash: PasswordHash in [.scrypt(log2N: 10, r: 8, p: 1), .scrypt(log2N: 30, r: 8, p: 1)] {
      #expect { try database.addSlot(passphrase("p"), stretching: hash) } throws: {
        if case CofferError.unsupported = $0 { true } else { false }
      }
    }
    #expect { try database.setLabel(String(repeating: "é", count: 33), forSlot: 0) } throws: {
      if case CofferError.unsupported = $0 { true } else { false }
    }
    #expect { try database.addSlot(passphrase("")) } throws: {
      if case CofferError.keyUnavailable = $0 { true } else { false }
    }
    for _ in 1..<16 { try database.addSlot(.key(.random(count: 32))) }
    #expect(throws: CofferError.slotsFull(maximum: 16)) { try database.addSlot(.key(.random(count: 32))) }
    #expect(try database.slots()[0] == before[0])
    #expect { try Database.inMemory().addSlot(store.key) } throws: {
      if case CofferError.unsupported = $0 { true } else { false }
    }
  }

  @Test("refuse a secret that opens one of them already, wherever it comes from, and change nothing")
  func sameSecret() throws {
    try database.addSlot(passphrase("known"), stretching: cheap)
    let paper = KeySource.recoveryKey(try database.addRecoveryKey().text)
    try database.addSlot(.key(.random(count: 32)))
    let key = try KeyFile.read(at: store.keyFile)
    let secrets: [(source: KeySource, slot: Int)] = [
      (store.key, 0), (.key(key), 0), (.keyCommand("cat \(store.keyFile)"), 0), (passphrase("known"), 1), (paper, 2),
    ]
    let before = try store.bytes()
    for (source, slot) in secrets {
      let error = CofferError.secretInUse(slot: slot)
      #expect(throws: error) { try database.addSlot(source, stretching: cheap) }
      for id in 0..<4 { #expect(throws: error) { try database.changeSlot(id, to: source, stretching: cheap) } }
    }
    #expect(try store.bytes() == before)
    // Another cost is another slot's worth of work for who guesses.
    let slower = try database.changeSlot(1, to: passphrase("known"), stretching: .scrypt(log2N: 15, r: 8, p: 1))
    #expect(slower.costDescription == "scrypt N=2^15 r=8 p=1")
    #expect(throws: CofferError.secretInUse(slot: 1)) {
      try database.changeSlot(0, to: passphrase("known"), stretching: .scrypt(log2N: 16, r: 8, p: 1))
    }
  }

  @Test("refuse a secret that another process may have added meanwhile")
  func sameSecretMeanwhile() throws {
    let disk = try database.storeOnDisk()
    let secret = try PreparedSecret(
      .key(.random(count: 32)), owner: disk.storeID, comparedWith: disk.envelope.slots)
    try database.addSlot(passphrase("another kind"), stretching: cheap)
    let other = try PreparedSecret(
      .key(.random(count: 32)), owner: disk.storeID, comparedWith: disk.envelope.slots)
    let connection = try database.makeConnection()
    func apply(_ change: SlotChange) throws {
      _ = try connection.perform { session in
        try session.changeEnvelope({ try $0.apply(change) }) { .changed(change, $0.id) }
      }
    }
    try apply(.add(secret))
    #expect(throws: CofferError.busy) { try apply(.add(other)) }
    #expect(throws: CofferError.busy) { try apply(.replace(0, other)) }
  }

  @Test("that another process adds and removes are seen, and both keep writing")
  func otherProcess() throws {
    try database.addSlot(passphrase("second"), stretching: cheap)
    #expect(try store.worker("set", "from", "the other").status == 0)
    #expect(try store.worker("add-slot", "\(store.folder)/third").status == 0)
    #expect(try database.slots().map(\.id) == [0, 1, 2])
    try database.removeSlot(0)
    // It was opened by the slot that is gone, and its keys are the same.
    try database.makeConnection().readWrite { try $0.setObject("still", forKey: "k") }
    #expect(try reads(with: passphrase("second")) == "still")
    #expect(throws: CofferError.wrongKey) { try reads(with: store.key) }
  }

  @Test("of an older envelope put back are refused")
  func downgrade() throws {
    try database.addSlot(passphrase("revoked"), stretching: cheap)
    let older = try store.bytes().prefix(Layout.envelopeByteCount)
    try database.removeSlot(1)
    try database.close()
    let bytes = try Data(older) + store.bytes().dropFirst(Layout.envelopeByteCount)
    try bytes.write(to: URL(fileURLWithPath: store.path))
    #expect { try Database.open(at: store.path, key: passphrase("revoked")) } throws: {
      if case CofferError.damaged(part: "envelope", _) = $0 { true } else { false }
    }
    #expect(try store.worker("set", "k", "v").status != 0)
  }

  @Test("removed just before a crash are gone from both copies after the next write", arguments: [0, 1])
  func crashBetweenCopies(_ first: Int) throws {
    try database.addSlot(passphrase("revoked"), stretching: cheap)
    let before = try store.bytes()
    try database.removeSlot(1)
    try database.close()
    // As if the power had gone after the first of the two.
    let half = Layout.envelopeCopyByteCount
    var bytes = try Data(store.bytes())
    bytes.replaceSubrange(
      (1 - first) * half..<(2 - first) * half, with: before[(1 - first) * half..<(2 - first) * half])
    try bytes.write(to: URL(fileURLWithPath: store.path))
    #expect(throws: CofferError.wrongKey) { try reads(with: passphrase("revoked")) }
    let reopened = try store.open()
    #expect(try reopened.status().outdatedEnvelopeCopies == [1 - first])
    #expect(try reopened.status().damagedEnvelopeCopies.isEmpty)
    try reopened.makeConnection().readWrite { try $0.setObject("after", forKey: "k") }
    let mended = try store.bytes()
    #expect(mended.prefix(half) == mended.dropFirst(half).prefix(half))
    #expect(try reopened.status().outdatedEnvelopeCopies.isEmpty)
  }
}
