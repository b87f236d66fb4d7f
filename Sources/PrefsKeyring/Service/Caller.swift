#if COFFER_BUS
  import PrefsCommands

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  /// The process that a client of the bus is, by the number that the bus knows and the name that it has given itself.
  ///
  /// For people to read, and no proof: any program can take any name.
  struct Caller: CustomStringConvertible {
    /// Such as `git (process 4711)`.
    let description: String

    /// - Parameter process: Its number; nil if the bus does not say.
    init(process: pid_t?) {
      guard let process, process > 0 else {
        description = "an unknown process"
        return
      }
      description = Self.name(of: process).map { "\($0) (process \(process))" } ?? "process \(process)"
    }

    /// Nil if it is gone.
    private static func name(of process: pid_t) -> String? {
      let path = "/proc/\(process)/comm"
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return nil }
      defer { close(descriptor) }
      guard let bytes = try? FileDescriptor.readAll(descriptor, named: path) else { return nil }
      return DisplayText.escapingControls(String(decoding: bytes.dropLast(), as: UTF8.self))
    }
  }

  extension SecretService {
    /// The process that has sent a call.
    func caller(_ call: BusMessage) -> Caller {
      if let known = callers[call.sender] { return known }
      let caller = Caller(process: bus.process(of: call.sender))
      callers[call.sender] = caller
      return caller
    }

    /// Prints what a client does, with `--verbose`.
    func note(_ call: BusMessage, _ deed: @autoclosure () -> String) {
      let options = store.session.options
      // Asking the bus for the process takes time.
      if options.verbose { options.detail("\(caller(call)) \(deed())") }
    }

    /// An item, with the names of its attributes: their values may be known to fewer than the log.
    static func text(_ element: String, in collection: any ServedCollection) -> String {
      let names = collection.attributes(of: element)?.sorted.prefix(8).map { String($0.name.prefix(40)) } ?? []
      return DisplayText.escapingControls("\(collection.id)/\(element) (\(names.joined(separator: ", ")))")
    }
  }
#endif
