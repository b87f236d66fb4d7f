import Coffer
import CofferMaintenance
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PageStore {
  // MARK: - Export

  /// The settings that a filter accepts, as `prefs export` writes them.
  func export(_ request: PageRequest) throws -> String {
    let filter = try request.filter()
    guard let format = SettingsFormat(rawValue: try request.optionalText("format") ?? SettingsFormat.json.rawValue)
    else { throw Failure(.usage, "unknown format.") }
    let chosen = settings(filter)
    let reader = json.reader
    return try connection.read { transaction in
      var settings = chosen
      if format == .env { settings = try chosen.filter { try !isHidden($0.key, $0.collection, reader, transaction) } }
      let collections = Set(settings.map { ByteString($0.collection) })
      if format == .env, collections.count > 1 {
        throw Failure(.usage, "variables belong to one collection. Choose one on the left.")
      }
      // Only the binary form of property lists holds every value.
      var tree = SettingsTree(format: format, reveals: false, isBinary: true)
      let bytes = try tree.file(ofSettings: settings, transaction)
      try tree.checkReadsBack(bytes, of: format == .env ? collections.first?.string ?? "" : nil)
      return JSONText.object([
        ("name", JSONText.quoted(format == .env ? ".env" : "settings.\(format.rawValue)")),
        ("data", JSONText.quoted(Data(bytes).base64EncodedString())), ("count", "\(tree.itemCount)"),
        ("hidden", "\(tree.redactedCount)"), ("left", "\(chosen.count - settings.count)"),
      ])
    }
  }

  private func isHidden(
    _ key: String, _ collection: String, _ reader: SettingReader, _ transaction: borrowing ReadTransaction
  ) throws -> Bool {
    let kind = try transaction.info(forKey: key, inCollection: collection)?.kind
    return kind == .secret || kind == .sealed
      || reader.declared.isSecret(key, in: collection)
  }

  // MARK: - Import

  /// What a file would change, for ``apply(_:)``.
  func previewImport(_ request: PageRequest) throws -> String {
    try requireWritable()
    let name = try request.text("name")
    guard let data = Data(base64Encoded: try request.text("data")) else {
      throw Failure(.usage, "\"data\" is not base64.")
    }
    let bytes = Array(data)
    guard let format = SettingsFormat(fileName: name) ?? SettingsFormat(contents: bytes) else {
      throw Failure(
        .usage, "the name of the file does not show its format. Those of .env, .json, .yaml, .toml and .plist do.")
    }
    let file = try ImportedSettings(
      bytes, format: format, named: name, collection: try request.optionalText("collection"))
    for collection in file.collections { try scope.require(collection) }
    session.files.forget()
    let reader = json.reader
    let plan = try unlocking {
      try connection.read { transaction in
        let settings = try TypedSettings(file, named: name, force: false).all(as: transaction)
        return try changePlan(settings, reader, transaction)
      }
    }
    return plans.withLock { $0.add(plan) }
  }

  private func changePlan(
    _ settings: [ImportedSetting], _ reader: SettingReader, _ transaction: borrowing ReadTransaction
  ) throws -> ChangePlan {
    var entries: [ChangePlan.Entry] = []
    var (unchanged, hidden) = (0, 0)
    for setting in settings {
      let (key, collection) = (setting.key, setting.collection)
      // A secret that an export did not show.
      guard let value = setting.value else {
        hidden += 1
        continue
      }
      let isSealed = try transaction.isSealed(collection: collection)
      let present = try transaction.value(forKey: key, inCollection: collection)
      if let present,
        try ImportedSetting(collection: collection, key: key, value: present).hasSameValue(as: setting)
      {
        unchanged += 1
        continue
      }
      let change = SettingChange(
        collection: collection, key: key, version: try transaction.storeVersion(forKey: key, inCollection: collection),
        action: .value(value))
      entries.append(
        ChangePlan.Entry(
          change: change, before: line(present, key, collection, isSealed: isSealed, reader),
          after: line(value, key, collection, isSealed: isSealed, reader),
          problem: problem(value, key, collection, transaction)))
    }
    var notes: [String] = []
    if unchanged > 0 { notes.append("\(DisplayText.count(unchanged, "setting is", "settings are")) as in the file.") }
    if hidden > 0 {
      notes.append(
        "\(DisplayText.count(hidden, "secret is", "secrets are")) not shown in the file, and left unchanged here.")
    }
    return ChangePlan(entries: entries, notes: notes)
  }

  /// Why a value cannot be set.
  func problem(
    _ value: Value, _ key: String, _ collection: String, _ transaction: borrowing ReadTransaction
  ) -> String? {
    do {
      try requireEnvironment(collection, transaction)
      try transaction.requireSettable(value, forKey: key, inCollection: collection)
      return nil
    } catch let failure as Failure {
      return failure.message
    } catch {
      return "\(error)"
    }
  }
}
