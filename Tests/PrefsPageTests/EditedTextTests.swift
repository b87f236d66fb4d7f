import Coffer
import Foundation
import Testing

@testable import PrefsPage

@Suite("Edited text") struct EditedTextTests {
  private static let values: [Value] = [
    .bool(true), .int(-3), .uint64(.max), .double(1), .double(0.1), .string("a\n\"b\""), .data(Data([0, 255])),
    .date(Date(timeIntervalSince1970: 1.25)), .array([.int(1), .double(2), .string("x"), .null]),
    .dictionary(["when": .date(Date(timeIntervalSince1970: 5)), "big": .uint64(.max), "$date": .string("no date")]),
    .array([.data(Data([1])), .dictionary([:])]),
  ]

  @Test("A value round-trips through its edited text, with the same type", arguments: values)
  func roundTrip(value: Value) throws {
    let text = try EditedText.text(of: value)
    #expect(try EditedText.value(text, type: value.kind.name, nil) == value)
  }

  @Test(
    "Text that is not a value of the type is refused without being quoted",
    arguments: [
      ("int", "1.5"), ("double", "much"), ("bool", "perhaps"), ("date", "soon"), ("uuid", "x"), ("array", "{}"),
      ("dict", "[]"), ("dict", "{"), ("data", "???"), ("secret", ""), ("nothing", "x"),
    ])
  func refusal(type: String, text: String) {
    #expect(throws: (any Error).self) { try EditedText.value(text, type: type, nil) }
  }
}
