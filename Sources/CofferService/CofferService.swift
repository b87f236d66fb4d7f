#if ServiceLifecycle
  import Coffer
  import Logging
  public import ServiceLifecycle

  /// A store as a service: at the end of the program, it flushes pending changes, checkpoints the log, and closes the store.
  ///
  /// List it first, so that it ends last: a `ServiceGroup` ends its services in reverse order.
  ///
  /// ```swift
  /// let group = ServiceGroup(
  ///   services: [CofferService(database), server], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
  /// try await group.run()
  /// ```
  public struct CofferService: Service {
    private let database: Database

    /// - Parameter database: The database to flush and close, with all its proxies and `Preferences`.
    public init(_ database: Database) {
      self.database = database
    }

    /// Waits for a graceful shutdown or a cancellation, then closes the store.
    ///
    /// - Throws: The errors of closing, such as `CofferError.diskFull`. The store is still open then, and unwritten changes
    ///   stay pending; the error is also logged.
    public func run() async throws {
      // On cancellation as on shutdown, the store is closed.
      try? await gracefulShutdown()
      do {
        try await database.close()
      } catch {
        database.options.logger.error("The store could not be closed: \(error)")
        throw error
      }
    }
  }
#else
  public import Coffer

  /// Not built: the package's trait `ServiceLifecycle` is not enabled.
  @available(
    *, unavailable,
    message:
      "enable the trait \"ServiceLifecycle\" in your Package.swift, as in .package(…, traits: [\"ServiceLifecycle\"])"
  )
  public struct CofferService {
    /// Not built.
    public init(_ database: Database) { fatalError() }
  }
#endif
