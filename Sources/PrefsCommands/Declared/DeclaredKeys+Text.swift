import Coffer

extension DeclaredKeys.Setting {
  /// The applications that declare it, on one line.
  package var ownerText: String {
    owners.map { owner in owner.version.map { "\(owner.application) \($0)" } ?? owner.application }
      .joined(separator: ", ")
  }

  /// The members of a JSON object that are the same in every command.
  var ownerJSON: String {
    JSONText.array(
      owners.map { owner in
        JSONText.object([
          ("application", JSONText.quoted(owner.application)),
          ("version", owner.version.map(JSONText.quoted) ?? "null"),
        ])
      })
  }
}

extension DeclaredKeys {
  /// The keys without the former names of settings that are among them and become the same variable, as `http-port` and
  /// `http.port` do.
  func forVariables(_ keys: [String], in collection: String) -> [String] {
    let renames = renames.filter {
      VariableName.of($0.former.key.string, prefix: "") == VariableName.of($0.current.key.string, prefix: "")
    }
    guard !renames.isEmpty else { return keys }
    let places = Set(keys.map { SettingPlace($0, in: collection) })
    return keys.filter { key in
      !renames.contains { rename in
        rename.former.key == ByteString(key) && rename.current(besides: collection).map(places.contains) ?? false
      }
    }
  }

  /// What is to be said about the other names of a setting, as rows of a table.
  func otherNames(of setting: Setting) -> [(String, String)] {
    let place = setting.declaration.place
    func kept(_ rename: Rename) -> String {
      "kept beside each other "
        + (rename.isOfFleet ? "as long as in the fleet" : "until \(Timestamp.text(milliseconds: rename.until))")
    }
    var rows = setting.declaration.formerNames.map { former in
      let rename = renames.first { $0.current == place && $0.former == former.place }
      return ("formerly", "\(former.place)\(rename.map { ", \(kept($0))" } ?? "")")
    }
    // A rename that the newest version does not state any more.
    for rename in renames where rename.current == place {
      guard !setting.declaration.formerNames.contains(where: { $0.place == rename.former }) else { continue }
      rows.append(("formerly", "\(rename.former), \(kept(rename))"))
    }
    if let renamed = setting.declaration.renamed {
      let rename = renames.first { $0.former == place && $0.current == renamed }
      rows.append(("renamed to", "\(renamed)\(rename.map { ", \(kept($0))" } ?? "")"))
    }
    return rows
  }

  /// The same, with whether the value at a place is behind.
  func otherNames(
    of setting: Setting, at reference: KeyReference, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [(String, String)] {
    let place = SettingPlace(reference.key, in: reference.collection)
    return try otherNames(of: setting)
      + transaction.itemsBehind().filter { $0.place == place }.map { item in
        let reason =
          item.isRefused
          ? "has a value that this setting cannot have"
          : "was set, and no program that can convert its value has run since"
        return ("behind", "\(item.source) \(reason)")
      }
  }
}
