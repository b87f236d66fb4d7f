#if COFFER_BUS

  /// An error as a client of the bus gets it.
  struct BusFailure: Error {
    let name: String
    let message: String

    private init(_ name: String, _ message: String) { (self.name, self.message) = (name, message) }

    static func noObject(_ path: String) -> BusFailure {
      BusFailure("org.freedesktop.Secret.Error.NoSuchObject", "there is no object \(path)")
    }

    static func noSession(_ path: String) -> BusFailure {
      BusFailure("org.freedesktop.Secret.Error.NoSession", "\(path) is no session of this client")
    }

    private static let lockedName = "org.freedesktop.Secret.Error.IsLocked"

    static func isLocked(_ how: String) -> BusFailure { BusFailure(lockedName, how) }

    var isOfLock: Bool { name == Self.lockedName }

    static func invalid(_ message: String) -> BusFailure {
      BusFailure("org.freedesktop.DBus.Error.InvalidArgs", message)
    }

    static func notSupported(_ message: String) -> BusFailure {
      BusFailure("org.freedesktop.DBus.Error.NotSupported", message)
    }

    static func unknownMethod(_ name: String) -> BusFailure {
      BusFailure("org.freedesktop.DBus.Error.UnknownMethod", "there is no method \(name)")
    }

    static func unknownProperty(_ name: String) -> BusFailure {
      BusFailure("org.freedesktop.DBus.Error.UnknownProperty", "there is no property \(name)")
    }

    static func readOnly(_ name: String) -> BusFailure {
      BusFailure("org.freedesktop.DBus.Error.PropertyReadOnly", "\(name) cannot be set")
    }

    static func limits(_ message: String) -> BusFailure {
      BusFailure("org.freedesktop.DBus.Error.LimitsExceeded", message)
    }

    static func failed(_ message: String) -> BusFailure { BusFailure("org.freedesktop.DBus.Error.Failed", message) }
  }
#endif
