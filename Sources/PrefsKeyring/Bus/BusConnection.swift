#if COFFER_BUS
  import CSystemd
  import PrefsCommands

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  /// A connection to the user's bus, used by one thread.
  final class BusConnection {
    private let bus: OpaquePointer
    private var handler: ((BusMessage) -> Bool)?

    /// - Throws: ``Failure`` if there is no bus.
    init() throws {
      var bus: OpaquePointer?
      let result = sd_bus_open_user(&bus)
      guard result >= 0, let bus else {
        throw Failure(
          .unreachable,
          "there is no bus of this user: \(Failure.systemMessage(-result)). Start the command with one: dbus-run-session -- COMMAND"
        )
      }
      self.bus = bus
    }

    deinit { sd_bus_flush_close_unref(bus) }

    private static func check(_ result: Int32, _ what: String) throws {
      guard result < 0 else { return }
      throw Failure(.unreachable, "the bus: \(what): \(Failure.systemMessage(-result)).")
    }

    // MARK: - Receiving

    /// Calls `handler` with each call and signal; it returns whether that is settled.
    func receive(_ handler: @escaping (BusMessage) -> Bool) throws {
      self.handler = handler
      let context = Unmanaged.passUnretained(self).toOpaque()
      let added = sd_bus_add_filter(
        bus, nil,
        { message, context, _ in
          guard let message, let context else { return 0 }
          let connection = Unmanaged<BusConnection>.fromOpaque(context).takeUnretainedValue()
          return connection.handler?(BusMessage(raw: message)) == true ? 1 : 0
        }, context)
      try Self.check(added, "no filter")
    }

    /// Has signals delivered that match a rule.
    func match(_ rule: String) throws {
      try Self.check(sd_bus_add_match(bus, nil, rule, { _, _, _ in 0 }, nil), "no match")
    }

    /// Takes a name of the bus.
    ///
    /// - Parameter replaces: Whether to take it from a program that permits that.
    func take(name: String, replaces: Bool) throws {
      // SD_BUS_NAME_ALLOW_REPLACEMENT, SD_BUS_NAME_REPLACE_EXISTING.
      let result = sd_bus_request_name(bus, name, replaces ? 2 | 1 : 2)
      if result == -EEXIST || result == -EALREADY {
        throw Failure(
          .conflict,
          "another program serves \(name) already. End it, such as `gnome-keyring-daemon`, or take the name over with --replace."
        )
      }
      try Self.check(result, "the name \(name) cannot be had")
    }

    /// Answers what has arrived; if nothing has, waits for that, or for a byte at `descriptor`.
    ///
    /// - Returns: Whether there was a byte.
    /// - Throws: ``Failure`` when the bus is gone.
    func process(waitingAlsoFor descriptor: Int32) throws -> Bool {
      let result = sd_bus_process(bus, nil)
      try Self.check(result, "it is gone")
      if result > 0 { return false }
      var deadline = UInt64.max
      _ = sd_bus_get_timeout(bus, &deadline)
      var now = timespec()
      clock_gettime(CLOCK_MONOTONIC, &now)
      let microseconds = UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec) / 1000
      let wait: Int32 =
        deadline == .max ? -1 : Int32(clamping: deadline > microseconds ? (deadline - microseconds) / 1000 + 1 : 0)
      var waits = [
        pollfd(fd: sd_bus_get_fd(bus), events: Int16(truncatingIfNeeded: sd_bus_get_events(bus)), revents: 0),
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      ]
      guard poll(&waits, 2, wait) > 0, waits[1].revents != 0 else { return false }
      var bytes = [UInt8](repeating: 0, count: 64)
      _ = read(descriptor, &bytes, bytes.count)
      return true
    }

    /// The number of a client's process; nil if the bus does not know it.
    func process(of client: String) -> pid_t? {
      var credentials: OpaquePointer?
      // SD_BUS_CREDS_PID.
      guard sd_bus_get_name_creds(bus, client, 1, &credentials) >= 0 else { return nil }
      defer { sd_bus_creds_unref(credentials) }
      var process: pid_t = 0
      return sd_bus_creds_get_pid(credentials, &process) >= 0 ? process : nil
    }

    // MARK: - Sending

    /// Answers a call with what `body` writes.
    func answer(_ call: BusMessage, _ body: (BusMessage) throws -> Void) throws {
      var raw: OpaquePointer?
      try Self.check(sd_bus_message_new_method_return(call.raw, &raw), "no answer")
      try send(raw, body)
    }

    /// Answers a call with an error.
    func refuse(_ call: BusMessage, _ failure: BusFailure) {
      failure.name.withCString { name in
        failure.message.withCString { message in
          var error = sd_bus_error(name: name, message: message, _need_free: 0)
          _ = sd_bus_reply_method_error(call.raw, &error)
        }
      }
    }

    /// Sends a signal to all.
    func signal(_ path: String, _ interface: String, _ member: String, _ body: (BusMessage) throws -> Void) throws {
      var raw: OpaquePointer?
      try Self.check(sd_bus_message_new_signal(bus, &raw, path, interface, member), "no signal")
      try send(raw, body)
    }

    private func send(_ raw: OpaquePointer?, _ body: (BusMessage) throws -> Void) throws {
      guard let raw else { return }
      defer { sd_bus_message_unref(raw) }
      let message = BusMessage(raw: raw)
      try body(message)
      try Self.check(sd_bus_send(bus, raw, nil), "a message cannot be sent")
    }
  }
#endif
