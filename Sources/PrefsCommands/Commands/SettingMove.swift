import Coffer

/// A move of a value to another name: what `prefs rename` does, and the settings page.
package struct SettingMove {
  private let from: KeyReference
  private let to: KeyReference
  /// The names as they were given.
  private let old: String
  private let new: String

  init(from: KeyReference, to: KeyReference, _ old: String, _ new: String) {
    (self.from, self.to, self.old, self.new) = (from, to, old, new)
  }

  package init(from: SettingPlace, to: SettingPlace) {
    func reference(_ place: SettingPlace) -> KeyReference {
      KeyReference(place.key.string, in: NamedCollection(place.collection.string))
    }
    func name(_ place: SettingPlace) -> String { KeyText.of(place.key.string, in: place.collection.string) }
    self.init(from: reference(from), to: reference(to), name(from), name(to))
  }

  /// - Returns: What else there is to know, as sentences.
  /// - Throws: ``Failure`` where something would be lost or revealed that `force` permits to lose or reveal.
  package func make(_ transaction: borrowing ReadWriteTransaction, force: Bool) throws -> [String] {
    guard try transaction.hasObject(forKey: from.key, inCollection: from.collection) else {
      throw from.notFound(in: transaction)
    }
    if from.isSame(as: to) { return [] }
    let others = try transaction.otherNames(ofKey: from.key, inCollection: from.collection)
    if others.contains(SettingPlace(to.key, in: to.collection)) {
      let isBehind = try hasOtherValue(to.key, in: to.collection, transaction)
      let values = isBehind ? "one of them has not followed the other yet" : "have one value"
      return ["\(old) and \(new) are names of one setting, and \(values); nothing was changed."]
    }
    // They would go with it.
    if !force,
      let lost = try others.first(where: {
        try hasOtherValue($0.key.string, in: $0.collection.string, transaction)
      })
    {
      throw Failure(
        .conflict,
        "\(old) and \(lost) are names of one setting, of which \(lost) has another value, that would be removed, too; "
          + "nothing was changed. Give --force to remove it.")
    }
    try transaction.requireUnlocked(forKey: to.key, inCollection: to.collection)
    if !force { try check(transaction) }
    try transaction.moveObject(
      forKey: from.key, inCollection: from.collection, toKey: to.key, inCollection: to.collection)
    return try transaction.notesOfLocks([from.key], in: from.collection)
  }

  private func hasOtherValue(
    _ key: String, in collection: String, _ transaction: borrowing ReadWriteTransaction
  ) throws -> Bool {
    guard let other = try transaction.value(forKey: key, inCollection: collection) else { return false }
    return try other != transaction.value(forKey: from.key, inCollection: from.collection)
  }

  private func check(_ transaction: borrowing ReadWriteTransaction) throws {
    if try transaction.hasObject(forKey: to.key, inCollection: to.collection) {
      throw Failure(
        .conflict,
        "key \"\(to.key)\" in \(DisplayText.collection(to.collection)) exists already; nothing was changed. "
          + "Replace it with --force.")
    }
    let becomesClear = try transaction.isSealed(collection: from.collection)
    if becomesClear, try !transaction.isSealed(collection: to.collection) {
      throw Failure(
        .refused,
        "\(DisplayText.collection(from.collection)) is sealed, but \(DisplayText.collection(to.collection)) is not; "
          + "nothing was changed. Move the value unencrypted with --force.")
    }
  }
}
