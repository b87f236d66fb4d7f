import CofferStorage

extension ChangeLogCheck {
  /// Compares the log with the record outside of the store.
  mutating func compare(with record: [UInt8]?, _ store: Store?, _ log: ChangeLog) throws {
    guard let record, let store else { return }
    switch try StoreWitness.verify(record, store, log) {
    case .nothing: break
    case .log(let commit): recordedCommit = commit
    case .passed(let commit): passedCommit = commit
    case .otherLog(let commit):
      problems.append("The change log does not have commit \(commit) as the record outside of the store remembers it.")
    }
  }
}
