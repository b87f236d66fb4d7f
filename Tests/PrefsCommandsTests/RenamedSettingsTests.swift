import Coffer
import Foundation
import Testing

@Suite("Renamed settings in the tool") struct RenamedSettingsTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try load(#"[{"name": "width", "type": "int", "default": 800}]"#, "1")
    try tool.succeed("set", "shop/width", "900")
    try load(
      #"""
      [{"name": "window.width", "type": "int", "default": 800, "limits": [{"minimum": 1, "maximum": 5000}],
        "formerly": [{"name": "width"}]}]
      """#, "2")
  }

  private func load(_ declarations: String, _ version: String) throws {
    let inShop = declarations.replacing(#"{"name": "#, with: #"{"collection": "shop", "name": "#)
    try tool.succeed(
      "schema", "load", tool.write("\(version).json", inShop.utf8), "--application", "shop", "--application-version",
      version)
  }

  @Test("have both names, and each follows the other, by set, unset and import")
  func following() throws {
    #expect(try tool.succeed("get", "shop/window.width") == "900\n")
    try tool.succeed("set", "shop/window.width", "1000")
    #expect(try tool.succeed("get", "shop/width") == "1000\n")
    try tool.succeed("set", "shop/width", "1100")
    #expect(try tool.succeed("get", "shop/window.width") == "1100\n")
    try tool.succeed("unset", "shop/width")
    #expect(try tool.run("list", "shop").code == 3)
    try tool.succeed("import", tool.write("in.json", #"{"shop": {"window.width": 1200}}"#.utf8))
    #expect(try tool.succeed("get", "shop/width") == "1200\n")
    #expect(try tool.succeed("validate").isEmpty)
    // What the new name does not allow stays with the former one, which `describe` says.
    try tool.succeed("set", "shop/width", "9000")
    #expect(try tool.succeed("get", "shop/window.width") == "1200\n")
    let described = try tool.succeed("describe", "shop/window.width")
    #expect(described.contains("shop/width has a value that this setting cannot have"), "\(described)")
  }

  @Test("are shown with their other names, and until when both are kept")
  func shown() throws {
    let current = try tool.succeed("describe", "shop/window.width")
    #expect(current.contains("formerly"))
    #expect(current.contains("shop/width, kept beside each other until 2"), "\(current)")
    let former = try tool.succeed("describe", "shop/width")
    #expect(former.contains("renamed to") && former.contains("shop/window.width, kept beside"), "\(former)")
    let table = try tool.succeed("schema")
    #expect(table.contains("| Formerly shop/width, kept beside each other until 2"), "\(table)")
    // What is loaded elsewhere are the names that version 2 declares.
    let json = try tool.succeed("schema", "--format", "json")
    #expect(json.contains(#""formerly":[{"collection":"shop","name":"width"}]"#), "\(json)")
    #expect(!json.contains("renamed"))
  }

  @Test("keep their former names while version 1 may run: contracting is refused with exit code 11")
  func contracting() throws {
    let run = try tool.run("schema", "contract")
    #expect(run.code == 11 && run.message.contains("shop/width is kept for shop 1, which may run until"), "\(run)")
    #expect(try tool.succeed("get", "shop/width") == "900\n")
    #expect(try tool.run("schema", "contract", "shop/nothing").code == 3)
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    try database.makeConnection().perform {
      try $0.connection.execute("UPDATE renames SET until = 0")
      try $0.connection.execute("UPDATE versions SET until = 0")
    }
    try database.close()
    try tool.succeed("schema", "contract", "shop/window.width")
    #expect(try tool.run("get", "shop/width").code == 3)
    #expect(try tool.succeed("get", "shop/window.width") == "900\n")
    #expect(try tool.succeed("history", "shop/width").contains("900"))
    #expect(try tool.run("describe", "shop/width").code == 3)
  }
}
