import CofferObservation
import Foundation
import Testing

@testable import Coffer

private struct Frame: Codable, Equatable {
  var width = 80
  var height = 24
}

extension Keys {
  fileprivate static let size = Key("size", default: 12, limits: .range(6...72))
  fileprivate static let names = Key("names", in: "ui", default: [String]())
  fileprivate static let frame = Key("frame", default: Frame())
}

@Suite("A change in place") struct ChangeInPlaceTests {
  private let preferences: Preferences
  private var proxy: ConnectionProxy { preferences.proxy }

  init() throws {
    preferences = try Preferences.inMemory()
  }

  private struct Editor {
    @Preference var size: Int
    @Preference var names: [String]
  }

  @Test("is refused and reported while the stored value cannot be read, and an assignment replaces it")
  func refused() async throws {
    let errors = preferences.errors
    let model = Setting(.size, in: preferences)
    let editor = Editor(
      size: Preference(.size, in: preferences), names: Preference(.names, in: preferences))
    preferences[.size] = 20
    #expect(preferences[.size] == 20)
    for bad: Value in ["large", 400] {
      try preferences.set(bad, forKey: "size")
      preferences[.size] += 1
      proxy[Key("size", in: preferences.collection, default: 12, limits: .range(6...72))] += 1
      editor.size += 1
      model.value += 1
      #expect(preferences.value(forKey: "size") == bad)
      // The last good value is still shown.
      #expect(preferences[.size] == 20)
    }
    var refusals: [CofferError] = []
    for await failure in errors {
      if let error = failure.error as? CofferError, case .notMutable = error { refusals.append(error) }
      if refusals.count == 8 { break }
    }
    #expect(
      refusals[0]
        == .notMutable(collection: "application", key: "size", reason: "of type int, not string"))
    #expect(refusals[7] == .notMutable(collection: "application", key: "size", reason: "6 to 72, not 400"))
    preferences[.size] = 30
    preferences[.size] += 1
    editor.size += 1
    model.value += 1
    #expect(preferences.integer(forKey: "size") == 33)
  }

  @Test("of a list or a structure is set as a whole, also if it throws")
  func values() throws {
    preferences[.names].append("a")
    preferences[.names].append("b")
    preferences[.frame].width = 100
    #expect(preferences[.names] == ["a", "b"] && preferences[.frame] == Frame(width: 100))
    func change(_ names: inout [String]) throws {
      names.append("c")
      throw CancellationError()
    }
    #expect(throws: CancellationError.self) { try change(&preferences[.names]) }
    #expect(preferences[.names] == ["a", "b", "c"])
    try proxy.setObject("none", forKey: "names", inCollection: "ui")
    preferences[.names].append("d")
    #expect(try proxy.object(forKey: "names", inCollection: "ui") == "none")
  }

  @Test("by update is atomic, and throws while the stored value cannot be read")
  func update() throws {
    #expect(try preferences.update(.size) { $0 += 1 } == 13)
    #expect(try preferences.update(.size, durability: .synced) { $0 + 1 } == 14)
    #expect(try preferences.update(.names) { $0.append("a") } == ["a"])
    #expect(throws: CofferError.invalidValue(collection: "application", key: "size", reason: "6 to 72, not 73")) {
      try preferences.update(.size) { $0 = 73 }
    }
    try preferences.set("large", forKey: "size")
    #expect(throws: CofferError.self) { try preferences.update(.size) { $0 += 1 } }
    #expect(preferences.value(forKey: "size") == "large")
  }
}
