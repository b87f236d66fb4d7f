import Foundation
import TestSupport
import Testing

@testable import CofferStorage

/// What programs left that were killed as they made a store or a key file.
@Suite("Files that killed programs left") struct AbandonedFilesTests {
  private let store: SmallStore

  init() throws { store = try SmallStore() }

  private func path(of name: String, _ tag: Character) -> String {
    store.folder.file(".\(name).\(String(repeating: tag, count: 16)).tmp")
  }

  /// Writes a file to which nothing was written for some hours.
  private func leave(_ bytes: [UInt8], at path: String, hours: Int) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    var times = [timespec](repeating: timespec(tv_sec: time(nil) - hours * 3600, tv_nsec: 0), count: 2)
    #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
  }

  private func exist(_ paths: [String]) -> [Bool] { paths.map { FileManager.default.fileExists(atPath: $0) } }

  private func makeStore(_ name: String) throws {
    try Store.create(at: store.folder.file(name), key: store.key, vfs: store.vfs) { connection, _ in
      try connection.execute("CREATE TABLE kv(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID")
    }
  }

  @Test("are removed by the next one that makes a store or a key file there, an hour after the last write")
  func removed() throws {
    let bytes = try store.bytes()
    for makesKey in [false, true] {
      let old = path(of: "day1.coffer", "a")
      let (young, written) = (path(of: "day2.coffer", "b"), path(of: "day3.coffer", "c"))
      let (key, foreign) = (path(of: "key", "d"), path(of: "report", "e"))
      for suffix in ["", "-wal", "-shm"] { try leave(suffix.isEmpty ? bytes : [1], at: old + suffix, hours: 2) }
      try leave(bytes, at: young, hours: 0)
      try leave(bytes, at: written, hours: 2)
      try leave([1], at: written + "-wal", hours: 0)
      try leave(Array("coffer-key-1:00".utf8), at: key, hours: 2)
      try leave(Array("a report".utf8), at: foreign, hours: 2)
      #expect(StoreCopies.unfinished(besides: store.path) == [old, young, written, key])
      if makesKey { try KeyFile.make(at: store.folder.file("key9")) } else { try makeStore("day9.coffer") }
      #expect(exist([old, old + "-wal", old + "-shm", key]) == [false, false, false, false], "\(makesKey)")
      #expect(exist([young, written, written + "-wal", foreign]) == [true, true, true, true], "\(makesKey)")
    }
    #expect(try store.contents() == [])
  }

  @Test("and are second names of whole files are removed at once, and the files stay")
  func linked() throws {
    let key = store.folder.file("key1")
    try KeyFile.make(at: key)
    let second = path(of: "key1", "a")
    #expect(link(key, second) == 0)
    // A link to another file is none of a killed program.
    let other = path(of: "key2", "b")
    #expect(link(key, other) == 0)
    try KeyFile.make(at: store.folder.file("key9"))
    #expect(exist([key, second, other]) == [true, false, true])
  }
}
