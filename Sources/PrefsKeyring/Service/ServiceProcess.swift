#if COFFER_BUS
  import Coffer
  import PrefsCommands
  import Synchronization

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  /// Serves the keyring of a session until a signal ends it.
  enum ServiceProcess {
    /// - Throws: ``Failure``; `CofferError`.
    static func run(
      _ session: CommandSession, collection: String, replaces: Bool, lockingAfter idleLimit: Duration?
    ) throws {
      // A pinentry that ends must not end the process.
      signal(SIGPIPE, SIG_IGN)
      let database = try session.openOrCreate()
      defer { try? database.close() }
      let kept = KeptVault(database, session, idleLimit: idleLimit)
      try kept.unlockIfAtHand()
      let store = try ServiceStore(database, session, kept, named: collection)
      if idleLimit != nil, !store.hasVault {
        let seal = CommandHint.text("seal", operand: collection)
        session.options.note("there is no vault yet that --lock-after could lock: \(seal)")
      }
      let waker = try Waker()
      let registration = try database.onCommit { _ in waker.wake() }
      let follower = VaultFollower(kept) { waker.wake() }
      let end = EndFlag()
      let signals = try EndingSignals {
        end.isSet.store(true, ordering: .relaxed)
        waker.wake()
      }
      try withExtendedLifetime((registration, follower, signals)) {
        try serve(store, replaces: replaces, waker) { end.isSet.load(ordering: .relaxed) }
      }
    }

    private static func serve(
      _ store: ServiceStore, replaces: Bool, _ waker: Waker, until hasEnded: () -> Bool
    ) throws {
      let bus = try BusConnection()
      let service = try SecretService(bus, store) { waker.wake() }
      defer {
        service.endDialog()
        PassphraseDialog.waitForAll()
      }
      try bus.receive { service.receive($0) }
      // The sessions of clients end with them.
      try bus.match("type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg2=''")
      try bus.take(name: SecretService.busName, replaces: replaces)
      store.session.options.detail("serving \(SecretService.busName)")
      while !hasEnded() {
        if try bus.process(waitingAlsoFor: waker.reader) { service.report() }
        service.settlePrompts()
        if service.isReplaced { throw Failure(.conflict, "another program has taken over \(SecretService.busName).") }
      }
    }
  }

  /// A pipe by which other threads wake the one that serves.
  private final class Waker: Sendable {
    let reader: Int32
    private let writer: Int32

    init() throws {
      var ends: [Int32] = [-1, -1]
      guard pipe(&ends) == 0 else { throw Failure(.inputOutput, "cannot create a pipe.") }
      for end in ends {
        FileDescriptor.closeOnExecution(end)
        _ = fcntl(end, F_SETFL, O_NONBLOCK)
      }
      (reader, writer) = (ends[0], ends[1])
    }

    deinit {
      close(reader)
      close(writer)
    }

    func wake() {
      // A full pipe wakes as well.
      var byte: UInt8 = 0
      _ = write(writer, &byte, 1)
    }
  }

  private final class EndFlag: Sendable {
    let isSet = Atomic(false)
  }
#endif
