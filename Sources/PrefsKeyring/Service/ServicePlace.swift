#if COFFER_BUS
  import Coffer

  /// The interfaces of the specification.
  enum Interface {
    static let service = "org.freedesktop.Secret.Service"
    static let collection = "org.freedesktop.Secret.Collection"
    static let item = "org.freedesktop.Secret.Item"
    static let session = "org.freedesktop.Secret.Session"
    static let prompt = "org.freedesktop.Secret.Prompt"
  }

  /// An object of the service, by its path.
  enum ServicePlace {
    case service
    case collection(any ServedCollection)
    case item(any ServedCollection, String)
    case session
    case prompt
    /// A path on the way to objects.
    case folder

    static let root = "/org/freedesktop/secrets"

    static func path(_ collection: String) -> String { "\(root)/collection/\(collection)" }
    static func path(_ collection: String, _ element: String) -> String {
      "\(root)/collection/\(collection)/\(element)"
    }

    /// The interface of the object, besides those of all.
    var interface: String? {
      switch self {
      case .service: Interface.service
      case .collection: Interface.collection
      case .item: Interface.item
      case .session: Interface.session
      case .prompt: Interface.prompt
      case .folder: nil
      }
    }
  }

  /// The value of a property.
  enum PropertyValue {
    case text(String)
    case flag(Bool)
    case number(UInt64)
    case paths([String])
    case attributes(ItemAttributes)

    /// Writes it as a variant.
    func write(to message: BusMessage) throws {
      switch self {
      case .text(let text): try message.container("v", "s") { try message.write(text) }
      case .flag(let flag): try message.container("v", "b") { try message.write(flag) }
      case .number(let number): try message.container("v", "t") { try message.write(number) }
      case .paths(let paths): try message.container("v", "ao") { try message.write(paths: paths) }
      case .attributes(let attributes): try message.container("v", "a{ss}") { try message.write(attributes) }
      }
    }
  }

  /// Properties in the order in which they are sent.
  typealias Properties = [(name: String, value: PropertyValue)]

  extension BusMessage {
    func write(_ properties: Properties) throws {
      try container("a", "{sv}") {
        for (name, value) in properties {
          try container("e", "sv") {
            try write(name)
            try value.write(to: self)
          }
        }
      }
    }
  }

  /// What org.freedesktop.DBus.Introspectable answers.
  enum Introspection {
    private static let properties = """
      <interface name="org.freedesktop.DBus.Properties">\
      <method name="Get"><arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="v" direction="out"/></method>\
      <method name="GetAll"><arg type="s" direction="in"/><arg type="a{sv}" direction="out"/></method>\
      <method name="Set"><arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="v" direction="in"/></method>\
      <signal name="PropertiesChanged"><arg type="s"/><arg type="a{sv}"/><arg type="as"/></signal></interface>\
      <interface name="org.freedesktop.DBus.Introspectable">\
      <method name="Introspect"><arg type="s" direction="out"/></method></interface>\
      <interface name="org.freedesktop.DBus.Peer"><method name="Ping"/>\
      <method name="GetMachineId"><arg type="s" direction="out"/></method></interface>
      """

    private static func method(_ name: String, _ input: [String], _ output: [String] = []) -> String {
      let arguments =
        input.map { "<arg type=\"\($0)\" direction=\"in\"/>" }
        + output.map { "<arg type=\"\($0)\" direction=\"out\"/>" }
      return "<method name=\"\(name)\">\(arguments.joined())</method>"
    }

    private static func signal(_ name: String, _ types: [String]) -> String {
      "<signal name=\"\(name)\">\(types.map { "<arg type=\"\($0)\"/>" }.joined())</signal>"
    }

    private static func property(_ name: String, _ type: String, _ access: String = "read") -> String {
      "<property name=\"\(name)\" type=\"\(type)\" access=\"\(access)\"/>"
    }

    private static let dates = property("Created", "t") + property("Modified", "t")

    private static let interfaces: [String: [String]] = [
      Interface.service: [
        method("OpenSession", ["s", "v"], ["v", "o"]), method("CreateCollection", ["a{sv}", "s"], ["o", "o"]),
        method("SearchItems", ["a{ss}"], ["ao", "ao"]), method("Unlock", ["ao"], ["ao", "o"]),
        method("Lock", ["ao"], ["ao", "o"]), method("LockService", []),
        method("GetSecrets", ["ao", "o"], ["a{o(oayays)}"]),
        method("ReadAlias", ["s"], ["o"]), method("SetAlias", ["s", "o"]), signal("CollectionCreated", ["o"]),
        signal("CollectionDeleted", ["o"]), signal("CollectionChanged", ["o"]), property("Collections", "ao"),
      ],
      Interface.collection: [
        method("Delete", [], ["o"]), method("SearchItems", ["a{ss}"], ["ao"]),
        method("CreateItem", ["a{sv}", "(oayays)", "b"], ["o", "o"]), signal("ItemCreated", ["o"]),
        signal("ItemDeleted", ["o"]), signal("ItemChanged", ["o"]), property("Items", "ao"),
        property("Label", "s", "readwrite"), property("Locked", "b"), dates,
      ],
      Interface.item: [
        method("Delete", [], ["o"]), method("GetSecret", ["o"], ["(oayays)"]), method("SetSecret", ["(oayays)"]),
        property("Locked", "b"), property("Attributes", "a{ss}", "readwrite"),
        property("Label", "s", "readwrite"), property("Type", "s"), dates,
      ],
      Interface.session: [method("Close", [])],
      Interface.prompt: [method("Prompt", ["s"]), method("Dismiss", []), signal("Completed", ["b", "v"])],
    ]

    /// - Parameters:
    ///   - interface: That of the object; nil for a path on the way.
    ///   - children: The names one level below it.
    static func text(_ interface: String?, children: [String]) -> String {
      let own = interface.map { "<interface name=\"\($0)\">\((interfaces[$0] ?? []).joined())</interface>" } ?? ""
      let nodes = children.map { "<node name=\"\($0)\"/>" }.joined()
      return """
        <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN" \
        "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
        <node>\(own)\(properties)\(nodes)</node>

        """
    }
  }
#endif
