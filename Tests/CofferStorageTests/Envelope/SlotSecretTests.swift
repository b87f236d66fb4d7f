import CofferCrypto
import CofferStorage
import Testing

@Suite("A slot's secret") struct SlotSecretTests {
  @Test("names the group of a recovery key that was mistyped")
  func mistypedRecoveryKey() throws {
    let store = try SmallStore()
    let text = try RecoveryKey().text.withUnsafeBytes { Array($0) }
    var found = 0
    // Every character, replaced by another one.
    for position in text.indices where text[position] != UInt8(ascii: "-") {
      var wrong = text
      wrong[position] = text[position] == UInt8(ascii: "7") ? UInt8(ascii: "8") : UInt8(ascii: "7")
      let group = position / 6 + 1
      #expect(throws: StorageError.keyUnavailable(reason: "not a recovery key: group \(group) was mistyped")) {
        try Store.open(at: store.path, key: .recoveryKey(wrong.withUnsafeBytes { SecretBytes(copying: $0) }))
      }
      found += 1
    }
    #expect(found == 40)
    for short in ["", "7K3QF", String(repeating: "U", count: 40), String(repeating: "0", count: 41)] {
      #expect { try Store.open(at: store.path, key: .recoveryKey(SecretBytes(copying: short))) } throws: {
        if case StorageError.keyUnavailable = $0 { true } else { false }
      }
    }
  }

  @Test("has the calibrated cost, within the bounds")
  func calibration() throws {
    guard case .scrypt(let quick, _, _) = try PasswordHash.calibrated(for: .milliseconds(1)),
      case .scrypt(let slow, _, _) = try PasswordHash.calibrated(for: .milliseconds(400))
    else {
      Issue.record("it is not scrypt")
      return
    }
    #expect(quick == 14)
    #expect((quick...20).contains(slow))
  }
}
