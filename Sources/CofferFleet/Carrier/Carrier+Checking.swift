extension Carrier {
  /// Checks a commit against the limits, before anything is sent.
  ///
  /// - Precondition: The names are valid, see ``Carrier``, and each occurs once.
  func check(_ changes: [CarrierChange], _ condition: CarrierCondition) throws(CarrierError) {
    guard changes.count <= limits.operationCount else {
      throw .tooManyChanges(count: changes.count, limit: limits.operationCount)
    }
    checkName(condition.name)
    var names: Set<String> = []
    var byteCount = condition.name.utf8.count + (condition.bytes?.count ?? 0)
    for change in changes {
      checkName(change.name)
      precondition(names.insert(change.name).inserted, "Change each object of a carrier once in a commit.")
      byteCount += change.name.utf8.count
      guard case .put(let object) = change else { continue }
      byteCount += object.bytes.count
      guard object.bytes.count <= limits.objectByteCount else {
        throw .tooLarge(name: object.name, byteCount: object.bytes.count, limit: limits.objectByteCount)
      }
    }
    guard byteCount <= limits.requestByteCount else {
      throw .tooLarge(name: nil, byteCount: byteCount, limit: limits.requestByteCount)
    }
  }

  func checkName(_ name: String) {
    precondition(CarrierName.isValid(name), "Name objects of a carrier with a-z, 0-9, -, . and /, as Carrier says.")
  }
}

extension CarrierChange {
  /// The new object.
  var object: CarrierObject? {
    if case .put(let object) = self { object } else { nil }
  }
}

/// The rules for names of objects; see ``Carrier``.
enum CarrierName {
  static let byteLimit = 200

  static func isValid(_ name: String) -> Bool {
    let bytes = name.utf8
    guard let first = bytes.first, bytes.count <= byteLimit, first != UInt8(ascii: "."), first != UInt8(ascii: "/")
    else {
      return false
    }
    return bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
        UInt8(ascii: "."), UInt8(ascii: "/"):
        true
      default: false
      }
    }
  }
}
