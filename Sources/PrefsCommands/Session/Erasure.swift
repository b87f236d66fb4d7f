import Coffer

/// Erasing for good, with `--purge`.
enum Erasure {
  /// Asks whether to erase `what`.
  ///
  /// - Throws: If the answer is no, or there is no terminal.
  static func confirm(_ what: String, _ common: CommonOptions) throws {
    let answer = common.noInput ? nil : try Terminal.confirm("Erase \(what) for good?")
    guard let answer else {
      throw Failure(.usage, "--purge erases \(what) for good. Confirm with --force; there is no terminal to ask on.")
    }
    guard answer else { throw Failure(.other, "nothing was erased.") }
  }

  /// Removes erased data from the store's files as well, which may keep it while other programs have them open.
  static func clearTraces(_ database: Database, _ common: CommonOptions) throws {
    do {
      try database.clearTraces(after: "It was erased", next: "Compact the store to clear them.")
    } catch CofferError.unfinished(_, _, .busy) {
      common.note(
        "the store's files still have what was erased, for a program that reads an earlier state. Once it has ended, run: "
          + CommandHint.text("compact"))
    }
  }
}
