#if Configuration
  import Coffer
  import Configuration

  #if canImport(FoundationEssentials)
    import FoundationEssentials
  #else
    import Foundation
  #endif

  extension ConfigContent {
    /// A stored value as the requested type, or nil.
    init?(_ value: Value, as type: ConfigType) {
      let value = value.decodedJSON
      switch type {
      case .string: self.init(value.text.map { .string($0) })
      case .int: self.init(value.int.map { .int($0) })
      case .double: self.init(value.double.map { .double($0) })
      case .bool: self.init(value.bool.map { .bool($0) })
      case .bytes: self.init(value.bytes.map { .bytes($0) })
      case .stringArray: self.init(value.list(\.text).map { .stringArray($0) })
      case .intArray: self.init(value.list(\.int).map { .intArray($0) })
      case .doubleArray: self.init(value.list(\.double).map { .doubleArray($0) })
      case .boolArray: self.init(value.list(\.bool).map { .boolArray($0) })
      case .byteChunkArray: self.init(value.list(\.bytes).map { .byteChunkArray($0) })
      }
    }

    private init?(_ content: ConfigContent?) {
      guard let content else { return nil }
      self = content
    }
  }

  extension Value {
    fileprivate var text: String? {
      switch self {
      case .string(let text): text
      case .secret(let secret): secret.revealed()
      case .url(let url): url.absoluteString
      case .uuid(let uuid): uuid.uuidString
      default: nil
      }
    }

    fileprivate var int: Int? {
      switch self {
      case .int(let number): Int(exactly: number)
      case .uint64(let number): Int(exactly: number)
      case .double(let number): Int(exactly: number)
      case .bool(let bool): bool ? 1 : 0
      default: text.flatMap { Int($0) }
      }
    }

    fileprivate var double: Double? {
      switch self {
      case .double(let number): number
      case .int(let number): Double(exactly: number)
      case .uint64(let number): Double(exactly: number)
      case .bool(let bool): bool ? 1 : 0
      default: text.flatMap { Double($0) }
      }
    }

    fileprivate var bool: Bool? {
      switch self {
      case .bool(let bool): return bool
      case .int(let number): return number != 0
      case .uint64(let number): return number != 0
      case .double(let number): return number != 0
      default:
        switch text?.lowercased() {
        case "true", "yes", "1": return true
        case "false", "no", "0": return false
        default: return nil
        }
      }
    }

    fileprivate var bytes: [UInt8]? {
      switch self {
      case .data(let data): Array(data)
      default: text.flatMap { Data(base64Encoded: $0) }.map { Array($0) }
      }
    }

    /// The elements, each converted; a text is split at commas, so no text stands for an empty list.
    fileprivate func list<Element>(_ element: (Value) -> Element?) -> [Element]? {
      let values: [Value]
      if case .array(let array) = self {
        values = array
      } else if let text {
        values = text.split(separator: ",", omittingEmptySubsequences: false).map { part in
          .string(String(part.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed()))
        }
      } else {
        return nil
      }
      let elements = values.compactMap(element)
      return elements.count == values.count ? elements : nil
    }
  }
#endif
