#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads property lists, URLs, UUIDs, dates and nulls from NSKeyedArchiver's archives; the input is untrusted.
///
/// An archive is itself a property list: objects that refer to each other by number, as Foundation writes it
/// (swift-corelibs-foundation, NSKeyedArchiver.swift).
package struct KeyedArchive {
  private let objects: [Value]
  /// How many more objects may be visited.
  ///
  /// Objects that refer to the same objects again and again would have exponentially many.
  private var budget: Int

  /// Whether a property list is an archive.
  package static func isArchive(_ list: Value) -> Bool {
    guard case .dictionary(let archive) = list else { return false }
    return archive["$archiver"] == "NSKeyedArchiver"
  }

  /// The archived object; nil for a class without a corresponding value.
  package static func value(_ list: Value) -> Value? {
    guard isArchive(list), case .dictionary(let archive) = list, case .dictionary(let top)? = archive["$top"],
      case .array(let objects)? = archive["$objects"], let root = top["root"] ?? top["$0"]
    else { return nil }
    var reader = KeyedArchive(objects: objects, budget: min(1000 + 16 * objects.count, JSONReader.countLimit))
    return reader.object(root, depth: 0)
  }

  private mutating func object(_ reference: Value?, depth: Int) -> Value? {
    budget -= 1
    guard budget >= 0, depth <= Value.maximumDepth, let number = number(reference) else { return nil }
    // The first object stands for nil.
    guard number > 0 else { return .null }
    guard case .dictionary(let members) = objects[number] else {
      if case .array = objects[number] { return nil }
      return objects[number]
    }
    switch className(members) {
    case "NSString", "NSMutableString": return members["NS.string"]
    case "NSData", "NSMutableData": return members["NS.data"]
    case "NSNull": return .null
    case "NSDate": return date(members["NS.time"])
    case "NSUUID": return uuid(members["NS.uuidbytes"])
    case "NSURL": return url(members, depth: depth).map(Value.url)
    case "NSArray", "NSMutableArray": return elements(members["NS.objects"], depth: depth).map(Value.array)
    case "NSDictionary", "NSMutableDictionary": return dictionary(members, depth: depth)
    default: return nil
    }
  }

  // MARK: References

  private func number(_ reference: Value?) -> Int? {
    guard case .dictionary(let members)? = reference, members.count == 1, case .int(let number)? = members["CF$UID"],
      let number = Int(exactly: number), objects.indices.contains(number)
    else { return nil }
    return number
  }

  private func className(_ members: [String: Value]) -> String? {
    guard let number = number(members["$class"]), case .dictionary(let description) = objects[number],
      case .string(let name)? = description["$classname"]
    else { return nil }
    return name
  }

  // MARK: Classes

  private func date(_ time: Value?) -> Value? {
    switch time {
    case .double(let seconds)?: .date(Date(timeIntervalSinceReferenceDate: seconds))
    case .int(let seconds)?: .date(Date(timeIntervalSinceReferenceDate: Double(seconds)))
    default: nil
    }
  }

  private func uuid(_ bytes: Value?) -> Value? {
    guard case .data(let data)? = bytes, data.count == 16 else { return nil }
    return .uuid(Array(data).withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) })
  }

  private mutating func url(_ members: [String: Value], depth: Int) -> URL? {
    guard case .string(let text)? = object(members["NS.relative"], depth: depth + 1) else { return nil }
    guard let base = members["NS.base"] else { return URL(string: text) }
    switch object(base, depth: depth + 1) {
    case .null?: return URL(string: text)
    case .url(let base)?: return URL(string: text, relativeTo: base)
    default: return nil
    }
  }

  private mutating func elements(_ references: Value?, depth: Int) -> [Value]? {
    guard case .array(let references)? = references else { return nil }
    var elements: [Value] = []
    for reference in references {
      guard let element = object(reference, depth: depth + 1) else { return nil }
      elements.append(element)
    }
    return elements
  }

  private mutating func dictionary(_ members: [String: Value], depth: Int) -> Value? {
    guard let keys = elements(members["NS.keys"], depth: depth),
      let values = elements(members["NS.objects"], depth: depth), keys.count == values.count
    else { return nil }
    var result: [String: Value] = [:]
    for (key, value) in zip(keys, values) {
      guard case .string(let name) = key, result.updateValue(value, forKey: name) == nil else { return nil }
    }
    return .dictionary(result)
  }
}
