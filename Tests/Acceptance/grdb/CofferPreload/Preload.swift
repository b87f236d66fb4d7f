import CofferStorage

/// Called before the first connection of the program is opened.
@_cdecl("coffer_preload_register")
public func registerDefaultVFS() {
  DefaultVFS.register()
}

/// How many bytes at the end of each page a new database has to leave free.
@_cdecl("coffer_preload_reserve")
public func reserveByteCount() -> Int32 {
  Int32(Layout.reserveByteCount)
}
