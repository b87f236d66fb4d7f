import Coffer
import PrefsCommands

extension PageStore {
  /// Gives a setting another name, as `prefs rename` does without `--force`.
  ///
  /// - Throws: ``ChangeConflict`` if the setting is no longer what the user saw; what ``SettingMove/make(_:force:)`` throws.
  func rename(_ request: PageRequest) throws -> String {
    let (collection, key) = try name(in: request)
    guard let target = try request.object("to") else { throw Failure(.usage, "\"to\" is missing.") }
    let to = try name(in: target)
    let version = try StoreVersion(request)
    try requireWritable()
    session.files.forget()
    let json = json
    let (entries, notes) = try unlocking {
      try connection.readWrite { transaction in
        try requireUnchanged([(collection, key, version)], json, transaction)
        try transaction.requireUnlocked(forKey: key, inCollection: collection)
        try requireEnvironment(to.collection, transaction)
        let before = try snapshot([(collection, key), to], transaction)
        let move = SettingMove(
          from: SettingPlace(key, in: collection), to: SettingPlace(to.key, in: to.collection))
        let notes = try move.make(transaction, force: false)
        return (try left(before, transaction), notes)
      }
    }
    return try answer(entries, notes: notes)
  }
}
