/// A system call by which a new store comes to be: what is done beside SQLite, and so by no VFS.
package enum FileCall: Equatable, Sendable {
  case create(path: String)
  case write(path: String, offset: Int, bytes: [UInt8])
  case sync(path: String)
  case link(from: String, to: String)
  case syncFolder(path: String)
  case remove(path: String)

  /// Hears of each call before it is made; what it gives is the error that the call fails with instead.
  package typealias Observer = @Sendable (FileCall) -> Int32?
}
