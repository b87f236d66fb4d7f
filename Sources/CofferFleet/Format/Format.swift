import CofferCrypto

/// The common part of all objects.
enum Format {
  /// The first byte of each object.
  static let version: UInt8 = 1

  /// Runs `body` on an object of this version.
  ///
  /// - Throws: ``FleetError/newerFormat(object:found:supported:)``; `.damaged` if it is malformed or does not authenticate.
  static func read<Result>(
    _ bytes: [UInt8], _ object: String, _ body: (inout ByteReader) throws -> Result
  ) throws -> Result {
    try checking(object) {
      try bytes.withUnsafeBytes { bytes in
        var reader = ByteReader(bytes)
        let found = try reader.number(UInt8.self)
        guard found <= version else {
          throw FleetError.newerFormat(object: object, found: Int(found), supported: Int(version))
        }
        guard found == version else { throw MalformedObject(reason: "its version is \(found)") }
        return try body(&reader)
      }
    }
  }

  /// Runs `body`, and adds the name of the object to its errors.
  static func checking<Result>(_ object: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as MalformedObject {
      throw FleetError.damaged(object: object, reason: error.reason)
    } catch CryptoError.authenticationFailed {
      throw FleetError.damaged(object: object, reason: "it does not authenticate")
    }
  }
}
