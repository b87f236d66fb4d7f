// The callbacks of an observer are optional, so one with another signature, GRDB's for instance, would be an ordinary method
// that is never called. The associated types below let the compiler find what an observer has under their names, with any
// signature, and it accepts the observer only if the signature is right.

/// The methods that an observer has under the names of callbacks, with any signature.
///
/// If it has two of one name, because it also conforms to another library's protocol, a `typealias` selects Coffer's:
/// `typealias _DidCommit = Connection`.
public protocol _ObserverCallbacks {
  /// The parameter of `databaseWillChange(with:)`.
  associatedtype _WillChange
  /// The parameter of `databaseDidChange(with:)`.
  associatedtype _DidChange
  /// The parameter of `databaseDidCommit(_:)`.
  associatedtype _DidCommit
  /// The parameter of `databaseDidRollback(_:)`.
  associatedtype _DidRollback
  /// The results of `databaseDidChange()`, `databaseDidCommit()` and `databaseDidRollback()`, which must not exist.
  associatedtype _ChangeWithoutEvent
  associatedtype _CommitWithoutConnection
  associatedtype _RollbackWithoutConnection

  /// Has to take a ``DatabasePreUpdateEvent``.
  func databaseWillChange(with event: _WillChange)
  /// Has to take a ``DatabaseEvent``.
  func databaseDidChange(with event: _DidChange)
  /// Has to take a ``Connection``.
  func databaseDidCommit(_ connection: _DidCommit)
  /// Has to take a ``Connection``.
  func databaseDidRollback(_ connection: _DidRollback)
  /// Must not exist.
  func databaseDidChange() -> _ChangeWithoutEvent
  /// Must not exist.
  func databaseDidCommit() -> _CommitWithoutConnection
  /// Must not exist.
  func databaseDidRollback() -> _RollbackWithoutConnection

  /// Satisfied if the callback has the right parameter.
  static func _databaseWillChangeIsCalled()
  /// Satisfied if the callback has the right parameter.
  static func _databaseDidChangeIsCalled()
  /// Satisfied if the callback has the right parameter.
  static func _databaseDidCommitIsCalled()
  /// Satisfied if the callback has the right parameter.
  static func _databaseDidRollbackIsCalled()
  /// Satisfied if no callback lacks its parameter.
  static func _allCallbacksAreCalled()
}

/// Marks a callback that does not exist.
public struct _NoCallback: Sendable {}

extension _ObserverCallbacks {
  /// The default: no such method.
  public func databaseDidChange() -> _NoCallback { _NoCallback() }
  /// The default: no such method.
  public func databaseDidCommit() -> _NoCallback { _NoCallback() }
  /// The default: no such method.
  public func databaseDidRollback() -> _NoCallback { _NoCallback() }
}

// MARK: - Right signatures

extension _ObserverCallbacks where _WillChange == DatabasePreUpdateEvent {
  /// Does nothing.
  public static func _databaseWillChangeIsCalled() {}
}

extension _ObserverCallbacks where _DidChange == DatabaseEvent {
  /// Does nothing.
  public static func _databaseDidChangeIsCalled() {}
}

extension _ObserverCallbacks where _DidCommit == Connection {
  /// Does nothing.
  public static func _databaseDidCommitIsCalled() {}
}

extension _ObserverCallbacks where _DidRollback == Connection {
  /// Does nothing.
  public static func _databaseDidRollbackIsCalled() {}
}

extension _ObserverCallbacks
where
  _ChangeWithoutEvent == _NoCallback, _CommitWithoutConnection == _NoCallback,
  _RollbackWithoutConnection == _NoCallback
{
  /// Does nothing.
  public static func _allCallbacksAreCalled() {}
}

// MARK: - Wrong signatures

extension _ObserverCallbacks {
  /// Chosen for any other signature.
  @available(*, unavailable, message: "declare it as 'func databaseWillChange(with event: DatabasePreUpdateEvent)'")
  public static func _databaseWillChangeIsCalled() {}

  /// Chosen for any other signature.
  @available(*, unavailable, message: "declare it as 'func databaseDidChange(with event: DatabaseEvent)'")
  public static func _databaseDidChangeIsCalled() {}

  /// Chosen for any other signature.
  @available(*, unavailable, message: "declare it as 'func databaseDidCommit(_ connection: Connection)'")
  public static func _databaseDidCommitIsCalled() {}

  /// Chosen for any other signature.
  @available(*, unavailable, message: "declare it as 'func databaseDidRollback(_ connection: Connection)'")
  public static func _databaseDidRollbackIsCalled() {}

  /// Chosen if a callback has no parameter.
  @available(
    *, unavailable,
    message: "the callbacks are databaseDidChange(with:), databaseDidCommit(_:) and databaseDidRollback(_:)"
  )
  public static func _allCallbacksAreCalled() {}
}
