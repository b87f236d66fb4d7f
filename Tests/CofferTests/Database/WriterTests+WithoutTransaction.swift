import CofferCompat
import CofferStorage
import Foundation
import Testing

@testable import Coffer

extension WriterTests {
  @Test("5.9 commit each operation by itself without a transaction, and keep what was committed before an error")
  func withoutTransaction() throws {
    #expect(throws: Refusal.self) {
      try connection.writeWithoutTransaction { transaction in
        for key in ["a", "b"] {
          try transaction.setObject(1, forKey: key)
          let keys = try keys()
          #expect(keys.last == key)
          #expect(try transaction.commitNumber() == CommitNumber(keys.count + 1))
        }
        try other.readWrite { try $0.setObject(1, forKey: "c") }
        #expect(try transaction.allKeys() == ["a", "b", "c"])
        throw Refusal()
      }
    }
    #expect(try keys() == ["a", "b", "c"])
    #expect(try connection.read { try $0.commitNumber() } == 4)
  }

  @Test("5.9 make a savepoint, or a reentrant write, one transaction if there is none")
  func savepointWithoutTransaction() throws {
    try connection.writeWithoutTransaction { transaction in
      try transaction.inSavepoint {
        try transaction.setObject(1, forKey: "a")
        try transaction.setObject(1, forKey: "b")
        #expect(try keys().isEmpty)
        return .commit
      }
      #expect(try keys() == ["a", "b"])
      try transaction.inSavepoint {
        try transaction.setObject(1, forKey: "c")
        return .rollback
      }
      #expect(throws: Refusal.self) {
        try transaction.inSavepoint {
          try transaction.removeAllObjects()
          throw Refusal()
        }
      }
      #expect(throws: Refusal.self) {
        try connection.unsafeReentrantWrite { transaction in
          try transaction.setObject(1, forKey: "d")
          throw Refusal()
        }
      }
      try connection.unsafeReentrantWrite { transaction in
        try transaction.setObject(1, forKey: "e")
        #expect(try keys() == ["a", "b"])
      }
      // Each of them is over.
      try other.readWrite { _ in }
    }
    #expect(try keys() == ["a", "b", "e"])
  }

  @Test("5.9 enumerate without a transaction as of the start, despite concurrent writes, also nested")
  func enumerationWithoutTransaction() throws {
    try connection.readWrite { transaction in
      for key in ["a", "b"] {
        try transaction.setObject(1, forKey: key)
        try transaction.setObject(1, forKey: key, inCollection: "c")
      }
    }
    var visited: [String] = []
    try connection.writeWithoutTransaction { transaction in
      try transaction.enumerateKeys { outer, _ in
        try transaction.setObject(1, forKey: "new \(outer)")
        try transaction.enumerateKeysInAllCollections { collection, inner, _ in
          try transaction.removeObject(forKey: inner, inCollection: "c")
          visited.append("\(outer) \(collection)/\(inner)")
        }
      }
    }
    #expect(
      visited == [
        "a /a", "a /b", "a /new a", "a c/a", "a c/b", "b /a", "b /b", "b /new a", "b /new b",
      ])
  }

  @Test("1.15 run sanitizers inside the transaction of the operation, also without a transaction")
  func sanitizersWithoutTransaction() throws {
    let other = other
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, value in
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
      return value
    }
    rules.objectPostSanitizer = { _, _, _ in
      // It is stored, and not committed.
      #expect(try! other.read { try $0.numberOfKeys(inCollection: "c") } == 0)
      #expect(throws: CofferError.nestedTransaction) { try other.readWrite { _ in } }
    }
    database.setRules(rules, forCollection: "c")
    try connection.writeWithoutTransaction { try $0.setObject(1, forKey: "k", inCollection: "c") }
    #expect(try other.read { try $0.numberOfKeys(inCollection: "c") } == 1)
  }
}
