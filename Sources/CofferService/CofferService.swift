#if ServiceLifecycle
  import Coffer
  import Logging
  public import ServiceLifecycle

  /// A store as a service: what is set until the end of the program is in it, and it is closed, log folded in.
  ///
  /// Name it first, so that it goes last: a `ServiceGroup` ends its services in the order opposite to that in which they
  /// were given.
  ///
  /// ```swift
  /// let group = ServiceGroup(
  ///   services: [CofferService(database), server], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
  /// try await group.run()
  /// ```
  public struct CofferService: Service {
    private let database: Database

    /// - Parameter database: What is flushed and closed in the end, with all its proxies and `Preferences`.
    public init(_ database: Database) {
      self.database = database
    }

    /// Waits for the end of the program, by a graceful shutdown or a cancellation, and closes the store.
    ///
    /// - Throws: What closing throws, `CofferError.diskFull` for instance. The store is still open then, with what could
    ///   not be written pending, and the error is in the database's log, too.
    public func run() async throws {
      // Cancelled or told to end, it is closed.
      try? await gracefulShutdown()
      do {
        try database.close()
      } catch {
        database.options.logger.error("The store could not be closed: \(error)")
        throw error
      }
    }
  }
#endif
