#if COFFER_BUS
  import CSystemd
  import Coffer
  import PrefsCommands

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  /// A message of the bus: a call that is read, or an answer or a signal that is written.
  ///
  /// Its owner keeps it for as long as this is used.
  struct BusMessage {
    let raw: OpaquePointer

    /// A type of D-Bus, or the kind of a container.
    typealias Code = Unicode.Scalar

    private static func code(_ scalar: Code) -> CChar { CChar(bitPattern: UInt8(ascii: scalar)) }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }

    // MARK: - What it is about

    var path: String { Self.text(sd_bus_message_get_path(raw)) }
    var interface: String { Self.text(sd_bus_message_get_interface(raw)) }
    var member: String { Self.text(sd_bus_message_get_member(raw)) }
    /// The unique name of the client.
    var sender: String { Self.text(sd_bus_message_get_sender(raw)) }
    var isCall: Bool { sd_bus_message_is_method_call(raw, nil, nil) > 0 }

    func isSignal(_ interface: String, _ member: String) -> Bool {
      sd_bus_message_is_signal(raw, interface, member) > 0
    }

    // MARK: - Reading

    private func check(_ result: Int32) throws {
      if result < 0 { throw BusFailure.invalid("\(member) was called with other arguments than it takes") }
    }

    /// Checks the types of all arguments.
    func requireTypes(_ types: String) throws {
      guard Self.text(sd_bus_message_get_signature(raw, 1)) == types else {
        throw BusFailure.invalid("\(interface).\(member) takes arguments of the types \"\(types)\"")
      }
    }

    /// The next text, path or signature.
    func text(_ type: Code = "s") throws -> String {
      var pointer: UnsafePointer<CChar>?
      let result = sd_bus_message_read_basic(raw, Self.code(type), &pointer)
      try check(result)
      guard result > 0 else { throw BusFailure.invalid("an argument is missing") }
      return Self.text(pointer)
    }

    func boolean() throws -> Bool {
      var value: Int32 = 0
      try check(sd_bus_message_read_basic(raw, Self.code("b"), &value))
      return value != 0
    }

    /// The next array of bytes, in protected memory.
    func bytes() throws -> SecretBytes {
      var (pointer, count): (UnsafeRawPointer?, Int) = (nil, 0)
      try check(sd_bus_message_read_array(raw, Self.code("y"), &pointer, &count))
      return SecretBytes(copying: UnsafeRawBufferPointer(start: pointer, count: pointer == nil ? 0 : count))
    }

    /// Runs `body` in the next container; returns nil at the end of the one that it would be in.
    func inside<R>(_ kind: Code, _ contents: String, _ body: () throws -> R) throws -> R? {
      let result = sd_bus_message_enter_container(raw, Self.code(kind), contents)
      try check(result)
      guard result > 0 else { return nil }
      let value = try body()
      try check(sd_bus_message_exit_container(raw))
      return value
    }

    /// Runs `body` for each element of the next array, which are containers themselves.
    func forEach(_ contents: String, _ kind: Code, _ element: String, _ body: () throws -> Void) throws {
      _ = try inside("a", contents) { while try inside(kind, element, body) != nil {} }
    }

    /// The next array of paths.
    func paths() throws -> [String] {
      try inside("a", "o") {
        var paths: [String] = []
        while sd_bus_message_at_end(raw, 0) == 0 { paths.append(try text("o")) }
        return paths
      } ?? []
    }

    /// The next dictionary of texts.
    func attributes() throws -> ItemAttributes {
      var pairs: [(name: String, value: String)] = []
      try forEach("{ss}", "e", "ss") { pairs.append((try text(), try text())) }
      return ItemAttributes(pairs)
    }

    /// The value of a property as clients set it.
    enum Property {
      case text(String)
      case attributes(ItemAttributes)
      /// Of a type that no property here has.
      case other
    }

    /// The next variant.
    func property() throws -> Property {
      var (kind, contents): (CChar, UnsafePointer<CChar>?) = (0, nil)
      try check(sd_bus_message_peek_type(raw, &kind, &contents))
      switch Self.text(contents) {
      case "s": return try inside("v", "s") { Property.text(try text()) } ?? .other
      case "a{ss}": return try inside("v", "a{ss}") { Property.attributes(try attributes()) } ?? .other
      default:
        try check(sd_bus_message_skip(raw, "v"))
        return .other
      }
    }

    /// The next dictionary of properties.
    func properties() throws -> [String: Property] {
      var properties: [String: Property] = [:]
      try forEach("{sv}", "e", "sv") {
        let name = try text()
        properties[name] = try property()
      }
      return properties
    }

    // MARK: - Writing

    private func require(_ result: Int32) throws {
      if result < 0 { throw BusFailure.failed("a message cannot be written: \(String(cString: strerror(-result)))") }
    }

    /// Has the memory of the message wiped.
    func markSensitive() throws { try require(sd_bus_message_sensitive(raw)) }

    func write(_ text: String, _ type: Code = "s") throws {
      // A NUL would end the text early.
      guard !text.utf8.contains(0) else { throw BusFailure.failed("a text has a NUL, which the bus cannot carry") }
      try require(text.withCString { sd_bus_message_append_basic(raw, Self.code(type), $0) })
    }

    func write(_ flag: Bool) throws {
      var value: Int32 = flag ? 1 : 0
      try require(sd_bus_message_append_basic(raw, Self.code("b"), &value))
    }

    func write(_ number: UInt64) throws {
      var number = number
      try require(sd_bus_message_append_basic(raw, Self.code("t"), &number))
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
      try require(sd_bus_message_append_array(raw, Self.code("y"), bytes.baseAddress, bytes.count))
    }

    /// Writes bytes by a file in memory, which ends with the message.
    ///
    /// sd-bus copies others each time that a message grows, and wipes only the last copy of those that are sensitive. A message with such a
    /// file must not be one: sd-bus would write into the file, which is sealed, and crash.
    func write(secret: SecretBytes) throws {
      try secret.withUnsafeBytes { bytes in
        guard !bytes.isEmpty else { return try write(bytes) }
        let file = coffer_memory_file()
        guard file >= 0 else {
          throw BusFailure.failed("there is no memory for a secret: \(String(cString: strerror(errno)))")
        }
        defer { close(file) }
        try FileDescriptor.writeAll(bytes, to: file, named: "a secret in memory")
        try require(sd_bus_message_append_array_memfd(raw, Self.code("y"), file, 0, UInt64(bytes.count)))
      }
    }

    func container(_ kind: Code, _ contents: String, _ body: () throws -> Void) throws {
      try require(sd_bus_message_open_container(raw, Self.code(kind), contents))
      try body()
      try require(sd_bus_message_close_container(raw))
    }

    func write(paths: [String]) throws {
      try container("a", "o") { for path in paths { try write(path, "o") } }
    }

    func write(_ attributes: ItemAttributes) throws {
      try container("a", "{ss}") {
        for (name, value) in attributes.sorted {
          try container("e", "ss") {
            try write(name)
            try write(value)
          }
        }
      }
    }
  }
#endif
