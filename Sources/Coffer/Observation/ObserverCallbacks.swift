// The callbacks of an observer need not be there, and so one of another signature, of GRDB's for instance, would be a method
// like any other, which nobody calls. So the compiler is asked for what it finds under their names, whatever it takes and
// gives, and accepts an observer only where that is what is called.

/// What an observer has under the names of callbacks, whichever signature it gives them.
///
/// Where there are two of one name, for another library's protocol as well, a `typealias` says which is Coffer's:
/// `typealias _DidCommit = Connection`.
public protocol _ObserverCallbacks {
  /// What `databaseWillChange(with:)` takes.
  associatedtype _WillChange
  /// What `databaseDidChange(with:)` takes.
  associatedtype _DidChange
  /// What `databaseDidCommit(_:)` takes.
  associatedtype _DidCommit
  /// What `databaseDidRollback(_:)` takes.
  associatedtype _DidRollback
  /// What `databaseDidChange()` gives, `databaseDidCommit()` and `databaseDidRollback()`: there are none.
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
  /// Must not be there.
  func databaseDidChange() -> _ChangeWithoutEvent
  /// Must not be there.
  func databaseDidCommit() -> _CommitWithoutConnection
  /// Must not be there.
  func databaseDidRollback() -> _RollbackWithoutConnection

  /// Met where the callback takes what it has to.
  static func _databaseWillChangeIsCalled()
  /// Met where the callback takes what it has to.
  static func _databaseDidChangeIsCalled()
  /// Met where the callback takes what it has to.
  static func _databaseDidCommitIsCalled()
  /// Met where the callback takes what it has to.
  static func _databaseDidRollbackIsCalled()
  /// Met where no callback is without what it has to take.
  static func _allCallbacksAreCalled()
}

/// Says that there is no such callback.
public struct _NoCallback: Sendable {}

extension _ObserverCallbacks {
  /// Stands for none.
  public func databaseDidChange() -> _NoCallback { _NoCallback() }
  /// Stands for none.
  public func databaseDidCommit() -> _NoCallback { _NoCallback() }
  /// Stands for none.
  public func databaseDidRollback() -> _NoCallback { _NoCallback() }
}

// MARK: - As they have to be

extension _ObserverCallbacks where _WillChange == DatabasePreUpdateEvent {
  /// Nothing to be done.
  public static func _databaseWillChangeIsCalled() {}
}

extension _ObserverCallbacks where _DidChange == DatabaseEvent {
  /// Nothing to be done.
  public static func _databaseDidChangeIsCalled() {}
}

extension _ObserverCallbacks where _DidCommit == Connection {
  /// Nothing to be done.
  public static func _databaseDidCommitIsCalled() {}
}

extension _ObserverCallbacks where _DidRollback == Connection {
  /// Nothing to be done.
  public static func _databaseDidRollbackIsCalled() {}
}

extension _ObserverCallbacks
where
  _ChangeWithoutEvent == _NoCallback, _CommitWithoutConnection == _NoCallback,
  _RollbackWithoutConnection == _NoCallback
{
  /// Nothing to be done.
  public static func _allCallbacksAreCalled() {}
}

// MARK: - Otherwise

extension _ObserverCallbacks {
  /// Taken for any other signature.
  @available(*, unavailable, message: "declare it as 'func databaseWillChange(with event: DatabasePreUpdateEvent)'")
  public static func _databaseWillChangeIsCalled() {}

  /// Taken for any other signature.
  @available(*, unavailable, message: "declare it as 'func databaseDidChange(with event: DatabaseEvent)'")
  public static func _databaseDidChangeIsCalled() {}

  /// Taken for any other signature.
  @available(*, unavailable, message: "declare it as 'func databaseDidCommit(_ connection: Connection)'")
  public static func _databaseDidCommitIsCalled() {}

  /// Taken for any other signature.
  @available(*, unavailable, message: "declare it as 'func databaseDidRollback(_ connection: Connection)'")
  public static func _databaseDidRollbackIsCalled() {}

  /// Taken where a callback takes nothing.
  @available(
    *, unavailable,
    message: "the callbacks are databaseDidChange(with:), databaseDidCommit(_:) and databaseDidRollback(_:)"
  )
  public static func _allCallbacksAreCalled() {}
}
