import Foundation

/// The functions of SQLCipher, which is loaded dynamically: linked, its names would clash with the system's SQLite.
struct SQLCipherLibrary: Sendable {
  typealias Handle = OpaquePointer
  typealias Destructor = @convention(c) (UnsafeMutableRawPointer?) -> Void

  let open:
    @convention(c) (UnsafePointer<CChar>?, UnsafeMutablePointer<Handle?>?, Int32, UnsafePointer<CChar>?) -> Int32
  let close: @convention(c) (Handle?) -> Int32
  let message: @convention(c) (Handle?) -> UnsafePointer<CChar>?
  let execute:
    @convention(c) (
      Handle?, UnsafePointer<CChar>?,
      (
        @convention(c) (
          UnsafeMutableRawPointer?, Int32, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
          UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        ) -> Int32
      )?,
      UnsafeMutableRawPointer?, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    ) -> Int32
  let prepare:
    @convention(c) (
      Handle?, UnsafePointer<CChar>?, Int32, UnsafeMutablePointer<Handle?>?,
      UnsafeMutablePointer<UnsafePointer<CChar>?>?
    ) -> Int32
  let step: @convention(c) (Handle?) -> Int32
  let reset: @convention(c) (Handle?) -> Int32
  let finalize: @convention(c) (Handle?) -> Int32
  let bindText: @convention(c) (Handle?, Int32, UnsafePointer<CChar>?, Int32, Destructor?) -> Int32
  let bindInteger: @convention(c) (Handle?, Int32, Int64) -> Int32
  let text: @convention(c) (Handle?, Int32) -> UnsafePointer<UInt8>?
  let byteCount: @convention(c) (Handle?, Int32) -> Int32
  let integer: @convention(c) (Handle?, Int32) -> Int64
  let changeCount: @convention(c) (Handle?) -> Int32

  static let shared = Result { try SQLCipherLibrary() }

  private init() throws {
    var flags = RTLD_NOW | RTLD_LOCAL
    #if os(Linux)
      // RTLD_DEEPBIND: it must find its own functions under SQLite's names.
      flags |= 0x8
    #endif
    let names = ["libsqlcipher.so.1", "libsqlcipher.so.0", "libsqlcipher.dylib", "libsqlcipher.so"]
    guard let library = names.lazy.compactMap({ dlopen($0, flags) }).first else {
      throw Failure(reason: "SQLCipher's library is not installed; `make bench` installs it")
    }
    func find<Function>(_ name: String, as type: Function.Type = Function.self) throws -> Function {
      guard let symbol = dlsym(library, name) else { throw Failure(reason: "SQLCipher has no \(name)") }
      return unsafeBitCast(symbol, to: type)
    }
    open = try find("sqlite3_open_v2")
    close = try find("sqlite3_close")
    message = try find("sqlite3_errmsg")
    execute = try find("sqlite3_exec")
    prepare = try find("sqlite3_prepare_v2")
    step = try find("sqlite3_step")
    reset = try find("sqlite3_reset")
    finalize = try find("sqlite3_finalize")
    bindText = try find("sqlite3_bind_text")
    bindInteger = try find("sqlite3_bind_int64")
    text = try find("sqlite3_column_text")
    byteCount = try find("sqlite3_column_bytes")
    integer = try find("sqlite3_column_int64")
    changeCount = try find("sqlite3_changes")
  }
}
