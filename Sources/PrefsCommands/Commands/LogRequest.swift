import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The implementation of `prefs log`, after parsing, except for `--verify`.
struct LogRequest: Request {
  let filter: ChangeFilter
  /// The argument, if any.
  let name: String?
  var since: Date?
  var limit: Int?
  var form = ListForm.Choice.text
  var pager: Pager?
  var color = ColorChoice.auto
  var options = SessionOptions()

  func run() throws {
    var filter = filter
    let (changes, isDefaultKey) = try CommandSession(options).read { transaction in
      filter = try filter.resolved(transaction)
      let commits = try transaction.rememberedCommits()
      var changes = commits.flatMap(filter.changes)
      if let collection = filter.collection?.name, let key = filter.key {
        let first = commits.first?.number ?? .max
        changes = try Self.changes(of: key, in: collection, before: first, transaction) + changes
      }
      return (changes, try name.map { try transaction.hasObject(forKey: $0) } ?? false)
    }
    let wanted = changes.reversed().filter { change in
      since.map { since in change.time.map { $0 >= since } ?? false } ?? true
    }
    try write(wanted.prefix(limit ?? .max))
    if wanted.isEmpty, let collection = filter.collection {
      let name = filter.key.map { "key \"\($0)\" in " } ?? ""
      let hint = isDefaultKey && filter.key == nil ? " Name a key of the default collection with -c \"\"." : ""
      options.note("the log has no matching change of \(name)\(DisplayText.collection(collection.name)).\(hint)")
    }
  }

  /// The changes in a key's history from commits that the change log no longer contains, oldest first.
  private static func changes(
    of key: String, in collection: String, before first: CommitNumber, _ transaction: borrowing ReadTransaction
  ) throws -> [KeyChange] {
    func change(_ commit: CommitNumber, _ what: String, _ time: Date, _ author: Author?) -> KeyChange {
      KeyChange(commit: commit, what: what, collection: collection, key: key, time: time, author: author)
    }
    let history = try transaction.history(forKey: key, inCollection: collection).reversed()
    var changes: [KeyChange] = []
    var lastEnd: CommitNumber?
    for item in history {
      changes.append(change(item.version, item.version == lastEnd ? "updated" : "inserted", item.modified, item.author))
      changes.append(change(item.endVersion, item.hasExpired ? "expired" : "removed", item.ended, item.endedBy))
      lastEnd = item.endVersion
    }
    if let item = try transaction.info(forKey: key, inCollection: collection) {
      let author = try? transaction.item(forKey: key, inCollection: collection)?.author
      changes.append(change(item.version, item.version == lastEnd ? "updated" : "inserted", item.modified, author))
    }
    // An overwritten value was not removed.
    let set = Set(changes.filter { $0.what == "updated" }.map(\.commit))
    return changes.filter { $0.commit < first && ($0.what == "updated" || !set.contains($0.commit)) }
  }

  private func write(_ changes: ArraySlice<KeyChange>) throws {
    var output = StandardOutput(pager: pager)
    let text = ChangeText(form: .json)
    switch form {
    case .json: output.write(JSONText.array(changes.map { text.object($0) }) + "\n")
    case .plain, .nul: try output.write(records: changes.lazy.map(fields), endsWithNul: form == .nul)
    case .text:
      var table = Table()
      if !changes.isEmpty { table.add(["COMMIT", "TIME", "AUTHOR", "CHANGE", "KEY"]) }
      for change in changes { table.add(row(change).map { DisplayText.escapingControls($0) }) }
      let style = Style(isOn: color.applies(to: 1))
      for line in table.lines(rightAligned: [0], colored: { column, cell in column < 2 ? style.faint(cell) : cell }) {
        output.write(line)
        try output.breathe()
      }
    }
    try output.finish()
  }

  private func row(_ change: KeyChange) -> [String] {
    let place = change.collection.map { KeyText.of(change.key ?? "", in: $0) } ?? ""
    return [
      "\(change.commit)", change.time.map(Timestamp.text) ?? "", change.author?.description ?? "",
      change.action == nil ? change.what : "", change.action ?? place,
    ]
  }

  /// Number, time, program, user, host, actor, what happened, collection, key.
  private func fields(_ change: KeyChange) -> [String] {
    let author = change.author
    return [
      "\(change.commit)", change.time.map(Timestamp.text) ?? "", author?.program ?? "", author?.user ?? "",
      author?.host ?? "", author?.actor ?? "", change.what, change.collection ?? "", change.key ?? "",
    ]
  }
}

extension LogRequest {
  /// The request of a plain command line; nil if the argument parser has to parse it.
  init?(_ line: PlainArguments) throws {
    let (since, limit) = (line.value("--since"), line.value("--limit"))
    let (date, count) = (since.flatMap(PastDate.init)?.date, limit.flatMap { Int($0) })
    guard line.words.count <= 1, let form = line.listForm, (date == nil) == (since == nil),
      (count == nil) == (limit == nil), count ?? 0 >= 0
    else { return nil }
    let filter = try ChangeFilter(line.words.first, line)
    self.init(
      filter: filter, name: line.words.first, since: date, limit: count, form: form,
      pager: form.pager(isOff: line.has("--no-pager")),
      options: line.ofSession(in: filter.certainPlaces, mayBeGone: true))
  }
}
