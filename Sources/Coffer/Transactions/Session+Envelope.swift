import CofferStorage

extension Session {
  /// Changes the envelope, in a transaction that records it, so that an older envelope put back is rejected.
  ///
  /// - Parameter action: What the log says about it.
  func changeEnvelope<Result>(
    _ change: (inout EnvelopeChange) throws -> Result, _ action: (Result) -> CommitAction
  ) throws -> Result {
    try recordingEnvelope { record in
      let (result, sequence) = try connection.changeEnvelope(change)
      try record(result, sequence, action(result))
      return result
    }
  }

  /// Runs `body` in a transaction, and makes sure that its result is true: an envelope that was written is in force,
  /// whether or not the commit that records it succeeds.
  ///
  /// - Parameter body: Calls its argument with the result as soon as a new envelope is written.
  func recordingEnvelope<Result>(
    _ body: (_ record: (Result, _ sequence: UInt64, CommitAction) throws -> Void) throws -> Result
  ) throws -> Result {
    let path = connection.store?.path ?? ""
    var written: (result: Result, action: CommitAction)?
    do {
      return try write(.full) {
        try CofferError.translating {
          try body { result, sequence, action in
            written = (result, action)
            note(action)
            try noteEnvelope(sequence)
            if connection.store?.hasUnwrittenEnvelopeCopy ?? false {
              core.options.logger.warning(
                """
                \(path): only one of the two copies of the header could be written. What it says is in force; the other \
                copy is from before until the next change of the store.
                """)
            }
          }
        }
      }
    } catch {
      guard let written else { throw error }
      let failure = (error as? CofferError)?.failure ?? "\(error)"
      core.options.logger.warning(
        "\(path): \(written.action) is in force, and gets into the log only if this program commits again. \(failure)")
      core.unrecordedActions.withLock { $0.append(written.action) }
      core.hasUnrecordedEnvelope.store(true, ordering: .relaxed)
      return written.result
    }
  }

  /// Records the number of the newest envelope.
  func noteEnvelope(_ sequence: UInt64) throws {
    try Metadata(connection: connection).setEnvelopeSequence(sequence)
    transaction.changesDeclarations = true
  }

  /// Records an envelope that no commit has recorded so far.
  func noteUnrecordedEnvelope() throws {
    guard core.hasUnrecordedEnvelope.load(ordering: .relaxed), let store = connection.store else { return }
    try noteEnvelope(store.envelopeSequence)
    core.unrecordedActions.withLock { $0 }.forEach(note)
  }

  /// Called after a commit.
  func didRecordEnvelope() {
    guard core.hasUnrecordedEnvelope.exchange(false, ordering: .relaxed) else { return }
    core.unrecordedActions.withLock { $0 = [] }
  }
}
