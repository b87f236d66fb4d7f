/// The observers of one transaction, whom the database knows.
protocol TransactionObservation {
  /// Whether any observer selects such changes.
  func observes(_ kind: DatabaseEventKind) -> Bool
  /// Notifies the observers that select it of a change that is not undone separately any more.
  func deliver(_ change: ObservedChange, _ core: DatabaseCore)
  /// - Throws: The error of the first observer that rejects the commit.
  func willCommit(_ session: Session) throws
  /// Ends the observation.
  ///
  /// - Returns: What notifies each observer of the end, in order.
  func end(isCommitted: Bool) -> [@Sendable () -> Void]
}

/// A change to an item, with its values.
struct ObservedChange {
  let event: DatabaseEvent
  let old: HeldItem?
  let new: HeldItem?
}

/// What a session needs of the connection that it is of.
protocol SessionOwner: AnyObject, Sendable {
  var id: ConnectionID { get }
  var lending: Lending { get }
  /// The observers of a transaction that begins now; nil if there are none.
  func beginObservation() -> (any TransactionObservation)?
  /// Reports a value that cannot be used, when no error can be thrown.
  func report(_ problem: SettingProblem, instead: String)
}
