import Coffer
import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

@Suite("Small parts")
struct TextTests {
  @Test("Dates agree with Foundation's over eight centuries")
  func timestamps() throws {
    let formatter = ISO8601DateFormatter()
    formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
    for step in 0..<2000 {
      // A prime number of milliseconds, so that days, months and times of day all vary.
      let date = Date(timeIntervalSince1970: -12_000_000_000 + Double(step) * 12_345_678.901)
      let text = Timestamp.text(date)
      // Foundation's calendar is the Julian one before October 1582; no settings are that old.
      guard date.timeIntervalSince1970 > -12_219_292_800 else { continue }
      #expect(text == formatter.string(from: date))
      let back = try #require(Timestamp.date(text))
      #expect(abs(back.timeIntervalSince(date)) < 0.001)
    }
  }

  @Test("Dates print with as many digits as it takes to read them again")
  func exactDates() throws {
    for text in ["08:30:00.250Z", "08:30:00.1234Z", "08:30:00.000001Z", "08:30:00.999999Z", "08:30:59.1234567Z"] {
      let text = "2026-01-31T\(text)"
      #expect(try Timestamp.exactText(#require(Timestamp.date(text))) == text)
    }
    var random = SplitMix64(state: 46)
    for _ in 0..<1000 {
      let date = Date(timeIntervalSince1970: .random(in: 0...2e9, using: &random))
      #expect(Timestamp.exactDate(Timestamp.exactText(date)) == date)
    }
    for text in ["08:30:00.123456789Z", "08:30:00.12345678+02:00"] {
      #expect(Timestamp.exactDate("2026-01-31T\(text)") == nil && Timestamp.date("2026-01-31T\(text)") != nil)
    }
    #expect(Timestamp.exactDate("2026-01-31T08:30:00.123450000Z") != nil && Timestamp.exactDate("1969-12-31") != nil)
  }

  @Test(
    "Dates far away print, too",
    arguments: [
      (Date(timeIntervalSince1970: -62_167_219_200), "0000-01-01T00:00:00.000Z"),
      (Date.distantFuture, "4001-01-01T00:00:00.000Z"),
      (Date(timeIntervalSince1970: 253_402_300_800), "+10000-01-01T00:00:00.000Z"),
      (Date(timeIntervalSince1970: .infinity), "inf"),
      (Date(timeIntervalSince1970: 0.9996), "1970-01-01T00:00:01.000Z"),
      (Date(timeIntervalSince1970: -0.0004), "1970-01-01T00:00:00.000Z"),
    ])
  func farDates(_ date: Date, _ text: String) {
    #expect(Timestamp.text(date) == text)
  }

  @Test(
    "Patterns",
    arguments: [
      ("", "", true), ("", "a", false), ("*", "", true), ("**", "abc", true), ("a*c", "abbc", true),
      ("a*c", "abcd", false),
      ("*.*", "a/b.c", true), ("?", "🗝", true), ("?", "", false), ("[a-c]x", "bx", true), ("[^a-c]x", "bx", false),
      ("[]]", "]", true), ("[a", "[a", true), ("\\*", "*", true), ("\\*", "a", false), ("a*b*c", "aXbXbXc", true),
      ("*a*a*a*a*b", String(repeating: "a", count: 500), false), ("[z-a]", "m", true), ("\\", "\\", true),
    ])
  func globs(_ pattern: String, _ text: String, _ matches: Bool) {
    #expect(Glob(pattern).matches(text) == matches)
  }

  @Test(
    "Near names",
    arguments: [
      ("teme", "theme"), ("thmee", "theme"), ("THEME", "theme"), ("sise", "size"), ("completely", nil), ("", nil),
      ("ab", nil),
    ])
  func nearNames(_ name: String, _ expected: String?) {
    #expect(NearName.best(for: name, among: ["theme", "size", "font-family"]) == expected)
  }

  @Test("Negative numbers are values, except -0 where it is an option")
  func negativeNumbers() {
    func passed(_ arguments: String...) -> [Bool] {
      zip(CommandArguments.marked(arguments), arguments).map { $0 != $1 }
    }
    #expect(passed("set", "x", "-5", "-.5", "-1e3", "-inf", "-0") == [false, false, true, true, true, true, true])
    #expect(passed("list", "-0", "-l", "-") == [false, false, false, false])
    #expect(passed("set", "x", "--", "-5") == [false, false, false, false])
    #expect(passed("-n", "--int", "-..5", "-c") == [false, false, false, false])
    #expect(CommandArguments.marked(["-5"]).map(CommandArguments.value) == ["-5"])
  }

  @Test(
    "Sizes for people",
    arguments: [
      (0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"),
    ])
  func sizes(_ count: Int, _ text: String) {
    #expect(DisplayText.byteCount(count) == text)
  }

  @Test("A progress bar never wraps", arguments: [1, 5, 10, 20, 40, 80, 200])
  func progress(_ columns: Int) {
    for fraction in [0, 0.5, 1, 7, -1, .nan, .infinity] {
      #expect(ProgressBar.line(fraction, of: "re-encrypting", columns: columns).count < max(1, columns) || columns == 1)
    }
    #expect(
      ProgressBar.line(0.5, of: "x", columns: 80) == "x [" + String(repeating: "#", count: 15) + "---------------] 50 %"
    )
  }

  @Test(
    "A text fits a screen by its rows, with wrapped lines counted as several, and colour as nothing")
  func fits() {
    let line = String(repeating: "x", count: 25)
    #expect(Pager.fits(Array("\(line)\n".utf8), rows: 4, columns: 10))
    #expect(!Pager.fits(Array("\(line)\n".utf8), rows: 3, columns: 10))
    #expect(Pager.fits(Array("\u{1b}[36m0123456789\u{1b}[0m\n\n".utf8), rows: 3, columns: 10))
    #expect(!Pager.fits(Array("a\nb\nc\n".utf8), rows: 3, columns: 10))
    #expect(Pager.fits(Array("ééééé\n".utf8), rows: 2, columns: 5))
  }

  @Test(
    "An unknown command suggests the nearest one",
    arguments: [
      (["gte", "x"], "get"), (["-c", "list", "lst"], "list"), (["key", "lst"], "list"), (["help", "sett"], "set"),
      (["hlep"], "help"), (["--timeout", "5", "wach"], "watch"), (["hist"], "history"), (["help", "keys"], "key"),
      (["keys"], "list"), (["key", "rm"], "remove"), (["env", "del"], "remove"), (["env", "new"], "create"),
      (["rm"], "unset"),
    ])
  func unknownCommand(_ arguments: [String], _ near: String) {
    let message = CommandArguments.unknownCommand(in: arguments, of: PrefsCommand.self)?.message
    #expect(message?.contains("did you mean \"\(near)\"?") == true, "\(message ?? "")")
  }

  @Test(
    "A known command is not a mistake",
    arguments: [
      [], ["get", "gte"], ["key", "add", "lst"], ["help", "key", "add"], ["-c", "gte", "get"], ["--version"],
    ])
  func knownCommand(_ arguments: [String]) {
    #expect(CommandArguments.unknownCommand(in: arguments, of: PrefsCommand.self) == nil)
  }
}
