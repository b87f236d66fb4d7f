import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The file beside a store with a key that a TPM has sealed.
///
/// It says which slot the key opens, so that it is known without the TPM when that slot is gone. What it holds is secret to no one
/// who lacks the TPM.
///
///     coffer-tpm-1
///     slot 1 1790000000000
///     public 002e…
///     private 009e…
struct TPMFile {
  let path: String
  let store: String
  let isOfVault: Bool

  /// More bytes than a TPM's key takes.
  private static let limit = 64 << 10

  /// - Parameter isOfVault: Whether the key opens the vault of the store.
  init(ofStoreAt store: String, isOfVault: Bool = false) {
    (self.store, self.isOfVault) = (store, isOfVault)
    path = store + (isOfVault ? ".tpm-vault" : ".tpm")
  }

  /// What a file says.
  struct Contents: Equatable {
    /// The number of the slot, and when it was made, in milliseconds since 1970: a number may be used again.
    let slot: Int
    let created: Int64
    let sealed: TPM.SealedKey

    init(slot: SlotInfo, sealed: TPM.SealedKey) {
      (self.slot, created, self.sealed) = (slot.id, Self.time(slot), sealed)
    }

    func names(_ slot: SlotInfo) -> Bool { self.slot == slot.id && created == Self.time(slot) }

    private static func time(_ slot: SlotInfo) -> Int64 { Int64((slot.created.timeIntervalSince1970 * 1000).rounded()) }
  }

  /// - Returns: nil if there is no file, or only the user who added the slot can read it.
  /// - Throws: `CofferError.keyUnavailable` when it is not what `write` has written.
  func read() throws -> Contents? {
    var status = stat()
    guard KeyFile.regularFile(at: path) != nil, canBeRead, stat(path, &status) == 0 else { return nil }
    guard status.st_size <= Self.limit,
      let contents = Contents(text: String(decoding: try FileDescriptor.readFile(path), as: UTF8.self))
    else {
      throw CofferError.keyUnavailable(reason: "\(path), which a TPM's key was kept in, is damaged")
    }
    return contents
  }

  /// The same; nil also for what is damaged.
  func readIfWhole() -> Contents? { try? read() }

  var canBeRead: Bool { access(path, R_OK) == 0 }

  /// The slot of `slots` that its key opens; if the file is gone, damaged, an earlier one or another user's, one that looks like it.
  func slot(in slots: [SlotInfo]) -> SlotInfo? {
    readIfWhole().flatMap { slots.first(where: $0.names) } ?? slots.first(where: Self.isLabelled)
  }

  /// Whether the file is there, and its key opens none of `slots`.
  func isOfNone(of slots: [SlotInfo]) -> Bool {
    readIfWhole().map { !slots.contains(where: $0.names) } ?? false
  }

  /// What the label of a slot begins with whose key a TPM seals.
  static let label = "TPM"

  /// A label for such a slot.
  static func label(_ text: String) -> String { text.hasPrefix(label) ? text : "\(label) \(text)" }

  /// The label of a slot that something else opens from now on, if it had one for a TPM.
  func labelWithoutTPM(of slot: SlotInfo, in slots: [SlotInfo]) -> String {
    guard self.slot(in: slots) == slot, slot.label.hasPrefix(Self.label) else { return slot.label }
    return String(slot.label.dropFirst(Self.label.count).drop { $0 == " " })
  }

  private static func isLabelled(_ slot: SlotInfo) -> Bool { slot.kind == .keyCommand && slot.label.hasPrefix(label) }

  /// Writes the file whole and durable, or not at all.
  func write(_ contents: Contents) throws { try OutputFile.place(Array(contents.text.utf8), at: path) }

  /// Refuses to replace what is not a file of an earlier slot.
  func checkPlace() throws {
    guard FilePlace.isTaken(path), readIfWhole() == nil else { return }
    throw Failure(
      .conflict,
      "\(path) is in the way: prefs cannot read it as a key that a TPM has sealed. Remove it. Nothing was changed.")
  }

  /// Removes the file, if it is one that `write` has written.
  ///
  /// - Returns: Whether it was removed.
  @discardableResult
  func remove() -> Bool {
    guard readIfWhole() != nil else { return false }
    return (try? FileHand(path).acting { unlink(path) }) == 0
  }
}

extension TPMFile.Contents {
  private static let heading = "coffer-tpm-1"

  fileprivate var text: String {
    """
    \(Self.heading)
    slot \(slot) \(created)
    public \(HexText.text(sealed.publicPart))
    private \(HexText.text(sealed.privatePart))

    """
  }

  fileprivate init?(text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.split(separator: " ") }
    guard lines.count == 5, lines[0] == [Self.heading[...]], lines[4].isEmpty,
      lines[1].count == 3, lines[1][0] == "slot", let slot = Int(lines[1][1]), let created = Int64(lines[1][2]),
      lines[2].count == 2, lines[2][0] == "public", let publicPart = HexText.bytes(String(lines[2][1])),
      lines[3].count == 2, lines[3][0] == "private", let privatePart = HexText.bytes(String(lines[3][1]))
    else { return nil }
    (self.slot, self.created) = (slot, created)
    sealed = TPM.SealedKey(publicPart: publicPart, privatePart: privatePart)
  }
}
