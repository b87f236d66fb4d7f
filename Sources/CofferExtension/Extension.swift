import CSQLite
import CofferStorage

/// Registers the VFS `coffer`, which opens a store for reading, with a key file named in the URI.
///
/// SQLite calls this when it loads the library, https://www.sqlite.org/loadext.html:
///
///     sqlite3
///     .load ./libCofferExtension
///     .open 'file:settings.coffer?vfs=coffer&keyfile=/home/me/.config/prefs/key'
///
/// Writes are refused, because they would bypass the change log.
///
/// SQLite derives the function's name from the library's: `sqlite3_`, the letters of `CofferExtension` in lower case,
/// `_init`. The process must use the system's libsqlite3, as this library does.
@_cdecl("sqlite3_cofferextension_init")
public func initializeExtension(
  _ database: OpaquePointer?, _ message: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
  _ routines: UnsafeRawPointer?
) -> Int32 {
  EncryptingVFS.standard.allowKeyFilesInURIs()
  // The VFS stays when the connection that loaded it is closed.
  return COFFER_OK_LOAD_PERMANENTLY
}
