import CofferCompat
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

extension RowTests {
  @Test("1.7 may be changed during an enumeration, which shows them as of its start")
  func changesDuringEnumeration() throws {
    try connection.readWrite { transaction in
      for number in 0..<600 { try transaction.setObject(number, forKey: "\(1000 + number)") }
    }
    try connection.readWrite { transaction in
      var seen: [Int] = []
      try transaction.enumerateKeysAndObjects(as: Int.self) { key, object, _ in
        seen.append(object)
        // Behind, here and ahead.
        try transaction.removeObject(forKey: "\(1000 + object - 1)")
        try transaction.setObject(-1, forKey: "\(1000 + object + 1)")
        try transaction.setObject(-2, forKey: "\(key).5")
      }
      #expect(seen == Array(0..<600))
      #expect(try transaction.object(forKey: "1600") == -1)
    }
    try connection.readWrite { transaction in
      var count = 0
      try transaction.enumerateKeysInAllCollections { collection, key, _ in
        count += 1
        try transaction.removeAllObjects(inCollection: collection)
        try transaction.setObject(1, forKey: key, inCollection: "z")
      }
      #expect(count == 602)
      #expect(try transaction.numberOfKeys(inCollection: "z") == 602)
    }
  }

  @Test("1.7 that cannot be read before a change end their enumeration with the error, not early")
  func unreadableRest() throws {
    try connection.readWrite { transaction in
      for key in ["a", "b", "c"] { try transaction.setObject(1, forKey: key) }
    }
    try connection.perform { try $0.connection.execute("UPDATE items SET type = 99 WHERE key = 'c'") }
    var visited: [String] = []
    #expect(throws: CofferError.self) {
      try connection.readWrite { transaction in
        try transaction.enumerateKeysAndObjects(as: Int.self) { key, _, _ in
          visited.append(key)
          // Reads the rest first, and cannot.
          try? transaction.setObject(2, forKey: "d")
        }
      }
    }
    #expect(visited == ["a"])
    #expect(try connection.read { try $0.allKeys() } == ["a", "b", "c"])
  }

  @Test("1.6 that are damaged end an enumeration with an error")
  func damagedRow() throws {
    try connection.readWrite { try $0.setObject(1, forKey: "k", withMetadata: 2) }
    for damage in ["type = 99", "type = 2, metadata = x''"] {
      try connection.perform { try $0.connection.execute("UPDATE items SET \(damage)") }
      let error = #expect(throws: CofferError.self) {
        try connection.read { transaction in
          try transaction.enumerateRows(as: Int.self, metadata: Int.self) { _, _, _, _ in }
        }
      }
      guard case .damaged? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
  }

  @Test("1.7 are enumerated in nested enumerations, and may be changed in either, each as of its start")
  func nestedChanges() throws {
    try connection.readWrite { transaction in
      for key in ["a", "b", "c"] { try transaction.setObject(1, forKey: key, withMetadata: 1) }
      var visited: [String] = []
      try transaction.enumerateRows(as: Int.self, metadata: Int.self) { outer, object, metadata, _ in
        #expect(object == 1 && metadata == 1)
        try transaction.enumerateRows(as: Int.self, metadata: Int.self) { inner, object, metadata, _ in
          visited.append(outer + inner)
          try transaction.setObject(object + 1, forKey: inner, withMetadata: metadata)
          try transaction.setObject(0, forKey: inner + outer, inCollection: "other")
        }
      }
      #expect(visited == ["aa", "ab", "ac", "ba", "bb", "bc", "ca", "cb", "cc"])
      #expect(try transaction.object(forKey: "b") == 4)
    }
  }

  @Test("1.12 are still enumerated as of the start when a savepoint inside is undone")
  func savepointInside() throws {
    struct Undo: Error {}
    try connection.readWrite { transaction in
      for key in ["a", "b", "c"] { try transaction.setObject(1, forKey: key) }
      var visited: [String] = []
      try transaction.enumerateKeysAndObjects(as: Int.self) { key, object, _ in
        visited.append("\(key)\(object)")
        #expect(throws: Undo.self) {
          try transaction.inSavepoint {
            try transaction.removeAllObjects(inCollection: "")
            throw Undo()
          }
        }
      }
      #expect(visited == ["a1", "b1", "c1"])
    }
  }

  @Test("1.8 are enumerated in the order of collection and key, nested, and until stopped")
  func order() throws {
    try connection.readWrite { transaction in
      for collection in ["b", "a"] {
        for key in ["é", "z", "B", "a"] {
          try transaction.setObject("\(collection).\(key)", forKey: key, inCollection: collection, withMetadata: key)
        }
      }
      try transaction.setObject("none", forKey: "c", inCollection: "c")
    }
    let sorted = ["B", "a", "z", "é"]
    try connection.read { transaction in
      var visited: [String] = []
      try transaction.enumerateCollections { outer, _ in
        try transaction.enumerateKeysAndObjects(inCollection: outer, as: String.self) { key, object, _ in
          try transaction.enumerateKeysAndObjects(inCollection: outer, as: String.self) { inner, _, stop in
            visited.append("\(object)>\(inner)")
            stop = true
          }
        }
      }
      #expect(
        visited == ["a", "b"].flatMap { name in sorted.map { "\(name).\($0)>B" } } + ["c.c"].map { _ in "none>c" })

      var rows: [String] = []
      try transaction.enumerateRowsInAllCollections(as: String.self, metadata: String.self) {
        collection, key, object, metadata, stop in
        rows.append("\(collection)/\(key)/\(object)/\(metadata ?? "-")")
        stop = collection == "c"
      }
      #expect(rows.count == 9 && rows[0] == "a/B/a.B/B" && rows[8] == "c/c/none/-")

      var metadata: [String?] = []
      try transaction.enumerateKeysAndMetadataInAllCollections(as: String.self, where: { _, key in key != "z" }) {
        metadata.append($2)
        _ = ($0, $1, $3)
      }
      #expect(metadata == ["B", "a", "é", "B", "a", "é", nil])
      metadata = []
      try transaction.enumerateKeysAndMetadata(inCollection: "a", as: String.self) { _, value, _ in
        metadata.append(value)
      }
      #expect(metadata == ["B", "a", "z", "é"])
      var objects: [String] = []
      try transaction.enumerateKeysAndObjectsInAllCollections(as: String.self, where: { $1 == "z" && !$0.isEmpty }) {
        objects.append($2)
        _ = ($0, $1, $3)
      }
      #expect(objects == ["a.z", "b.z"])
    }
  }

  @Test("1.8 are enumerated by a list of keys: each once, in order, absent ones as nil")
  func keyLists() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "a", withMetadata: "m")
      try transaction.setObject(2, forKey: "b")
    }
    try connection.read { transaction in
      var visited: [String] = []
      try transaction.enumerateObjects(forKeys: ["b", "none", "a", "b"], as: Int.self) { key, object, _ in
        visited.append("\(key)=\(object.map(String.init) ?? "nil")")
      }
      #expect(visited == ["b=2", "none=nil", "a=1"])
      visited = []
      try transaction.enumerateMetadata(forKeys: ["a", "b", "c"], as: String.self) { key, metadata, _ in
        visited.append("\(key)=\(metadata ?? "nil")")
      }
      #expect(visited == ["a=m", "b=nil", "c=nil"])
      visited = []
      try transaction.enumerateRows(forKeys: ["c", "a", "b"], as: Int.self, metadata: String.self) {
        key, object, metadata, stop in
        visited.append("\(key)=\(object ?? 0),\(metadata ?? "nil")")
        stop = key == "a"
      }
      #expect(visited == ["c=0,nil", "a=1,m"])
    }
  }

  @Test("1.8 are listed by prefix and by range, by the bytes of their keys")
  func ranges() throws {
    let keys = ["", "a", "a.", "a.1", "a.1\0", "a.é", "a/", "b", "é", "\u{10ffff}", "\u{10ffff}x"]
    try connection.readWrite { transaction in
      for key in keys { try transaction.setObject(key, forKey: key) }
    }
    try connection.read { transaction in
      #expect(try transaction.allKeys(within: .prefix("a.")) == ["a.", "a.1", "a.1\0", "a.é"])
      #expect(try transaction.allKeys(within: .prefix("")) == keys)
      #expect(try transaction.allKeys(within: .prefix("\u{10ffff}")) == ["\u{10ffff}", "\u{10ffff}x"])
      #expect(try transaction.allKeys(within: .prefix("none")).isEmpty)
      #expect(try transaction.allKeys(within: .from("a.1", upTo: "b")) == ["a.1", "a.1\0", "a.é", "a/"])
      #expect(try transaction.allKeys(within: .from("b")) == ["b", "é", "\u{10ffff}", "\u{10ffff}x"])
      #expect(try transaction.allKeys(within: .from("b", upTo: "a")).isEmpty)
      var objects: [String] = []
      try transaction.enumerateKeysAndObjects(within: .prefix("a."), as: String.self, where: { $0 != "a.1" }) {
        _, object, _ in
        objects.append(object)
      }
      #expect(objects == ["a.", "a.1\0", "a.é"])
    }
  }

  @Test("1.7 are lent as UTF-8, in order and as they are stored, also where the enumeration changes them")
  func utf8() throws {
    let texts = ["": "empty key", "a": "", "b": String(repeating: "long ", count: 3_000), "é": "ü\0😀"]
    let keys = ["", "a", "b", "é"]
    try connection.readWrite { transaction in
      for (key, text) in texts { try transaction.setObject(text, forKey: key, inCollection: "c") }
      try transaction.setObject(1, forKey: "not a text", inCollection: "other")
    }
    func read(_ key: Span<UInt8>, _ text: Span<UInt8>, _ found: inout [[String]]) {
      func string(_ bytes: Span<UInt8>) -> String { String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self) }
      found.append([string(key), string(text)])
    }
    let expected = keys.map { [$0, texts[$0]!] }
    try connection.read { transaction in
      var found: [[String]] = []
      try transaction.enumerateUTF8(inCollection: "c") { key, text, _ in read(key, text, &found) }
      #expect(found == expected)
      found = []
      try transaction.enumerateUTF8(inCollection: "c", within: .from("a")) { key, text, stop in
        read(key, text, &found)
        stop = found.count == 2
      }
      #expect(found == Array(expected[1...2]))
      #expect {
        try transaction.enumerateUTF8(inCollection: "other") { _, _, _ in }
      } throws: { error in
        if case CofferError.notDecodable("other", "not a text", "int", "String", _) = error { true } else { false }
      }
    }
    try connection.readWrite { transaction in
      var found: [[String]] = []
      try transaction.enumerateUTF8(inCollection: "c") { key, text, _ in
        try transaction.setObject("changed", forKey: "b", inCollection: "c")
        try transaction.setObject("new", forKey: "z", inCollection: "c")
        read(key, text, &found)
      }
      #expect(found == expected)
    }
  }

  @Test("1.6 that do not decode end an enumeration with an error that names them")
  func decoding() throws {
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "a", inCollection: "c", withMetadata: 1)
      try transaction.setObject("text", forKey: "b", inCollection: "c", withMetadata: 1)
    }
    try connection.read { transaction in
      var seen: [Int] = []
      #expect {
        try transaction.enumerateKeysAndObjects(inCollection: "c", as: Int.self) { _, object, _ in seen.append(object) }
      } throws: { error in
        if case CofferError.notDecodable("c", "b", "string", "Int", _) = error { true } else { false }
      }
      #expect(seen == [1])
      #expect(throws: CofferError.self) {
        _ = try transaction.metadata(forKey: "a", inCollection: "c", as: String.self)
      }
    }
  }
}
