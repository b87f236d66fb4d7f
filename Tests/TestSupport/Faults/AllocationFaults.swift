#if os(Linux)
  import CSQLite
  import Foundation
  import Synchronization

  /// Makes allocations of a library fail; for a process that has not used the library yet.
  ///
  /// Swift's own allocations cannot fail: the process would end.
  package enum AllocationFaults {
    package enum Library: String, CaseIterable, Sendable {
      case sqlite, openssl
    }

    /// The number of allocations since `start`.
    private static let count = Atomic<Int>(0)
    /// The failing one; 0 for none.
    private static let failing = Atomic<Int>(0)
    private static let isLasting = Atomic<Bool>(false)
    private static let failureCount = Atomic<Int>(0)

    /// From now on allocation `number` fails, counted from 1, and with `isLasting` all later ones.
    package static func start(at number: Int, isLasting: Bool) {
      count.store(0, ordering: .relaxed)
      self.isLasting.store(isLasting, ordering: .relaxed)
      failing.store(number, ordering: .relaxed)
    }

    /// No allocation fails any more.
    package static func stop() {
      failing.store(0, ordering: .relaxed)
    }

    package static var hasFailed: Bool { failureCount.load(ordering: .relaxed) > 0 }

    private static var fails: Bool {
      let failing = failing.load(ordering: .relaxed)
      guard failing > 0 else { return false }
      let number = count.wrappingAdd(1, ordering: .relaxed).newValue
      guard isLasting.load(ordering: .relaxed) ? number >= failing : number == failing else { return false }
      failureCount.wrappingAdd(1, ordering: .relaxed)
      return true
    }

    // MARK: Taking over

    package struct Refused: Error {}

    /// Puts itself between a library and the allocator.
    ///
    /// - Throws: `Refused` when the library has been used before.
    package static func install(in library: Library) throws {
      switch library {
      case .sqlite: try installInSQLite()
      case .openssl: try installInOpenSSL()
      }
    }

    /// SQLite's allocator; written once, before any thread uses SQLite.
    nonisolated(unsafe) private static var original = sqlite3_mem_methods()

    /// https://www.sqlite.org/c3ref/c_config_covering_index_scan.html, SQLITE_CONFIG_MALLOC.
    private static func installInSQLite() throws {
      guard configure(SQLITE_CONFIG_GETMALLOC, &original) == SQLITE_OK else { throw Refused() }
      var methods = original
      methods.xMalloc = { AllocationFaults.fails ? nil : AllocationFaults.original.xMalloc($0) }
      methods.xRealloc = { AllocationFaults.fails ? nil : AllocationFaults.original.xRealloc($0, $1) }
      guard configure(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK else { throw Refused() }
    }

    /// sqlite3_config(3) is variadic in C; integers and pointers are passed alike in both forms here.
    private static func configure(_ option: Int32, _ methods: UnsafeMutablePointer<sqlite3_mem_methods>) -> Int32 {
      typealias Configure = @convention(c) (Int32, UnsafeMutablePointer<sqlite3_mem_methods>) -> Int32
      guard let function = dlsym(nil, "sqlite3_config") else { return SQLITE_ERROR }
      return unsafeBitCast(function, to: Configure.self)(option, methods)
    }

    /// CRYPTO_set_mem_functions(3).
    private static func installInOpenSSL() throws {
      typealias Allocate = @convention(c) (Int, UnsafePointer<CChar>?, Int32) -> UnsafeMutableRawPointer?
      typealias Reallocate =
        @convention(c) (UnsafeMutableRawPointer?, Int, UnsafePointer<CChar>?, Int32) ->
        UnsafeMutableRawPointer?
      typealias Free = @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int32) -> Void
      typealias SetFunctions = @convention(c) (Allocate, Reallocate, Free) -> Int32
      guard let function = dlsym(nil, "CRYPTO_set_mem_functions") else { throw Refused() }
      let result = unsafeBitCast(function, to: SetFunctions.self)(
        { count, _, _ in AllocationFaults.fails ? nil : malloc(count) },
        { memory, count, _, _ in AllocationFaults.fails ? nil : realloc(memory, count) },
        { memory, _, _ in free(memory) })
      guard result == 1 else { throw Refused() }
    }
  }
#endif
