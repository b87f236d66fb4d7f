import Coffer
import CofferCrypto
import CofferStorage
import Foundation

/// The calls of a session that fail, and how.
package struct FaultPlan: Sendable {
  package enum Kind: String, CaseIterable, Sendable {
    /// Any call, with EIO.
    case inputOutput
    /// A call that needs space, with ENOSPC.
    case diskFull
    /// A read that ends as at the end of the file.
    case shortRead
    /// A half-completed write, with ENOSPC.
    case shortWrite
  }

  package let kind: Kind
  /// The index, from 1, among the calls that can fail in this way.
  package let number: Int
  /// Whether all later ones fail, too, until the step has failed.
  package let isLasting: Bool

  package init(kind: Kind, number: Int, isLasting: Bool) {
    self.kind = kind
    self.number = number
    self.isLasting = isLasting
  }

  /// How a call of this kind fails; nil if it cannot.
  fileprivate func fault(of call: RecordingVFS.Call) -> RecordingVFS.Fault? {
    switch kind {
    case .inputOutput: return .error(errno: EIO)
    case .diskFull:
      let needsRoom: [RecordingVFS.Call.Kind] = [.write, .sync, .truncate, .mapIndex, .create, .link, .syncFolder]
      return needsRoom.contains(call.kind) ? .error(errno: ENOSPC) : nil
    case .shortRead: return call.kind == .read ? .half(errno: 0) : nil
    case .shortWrite: return call.kind == .write ? .half(errno: ENOSPC) : nil
    }
  }
}

extension FaultPlan {
  /// Whether this error is a true report of the fault.
  func explains(_ error: CofferError) -> Bool {
    switch (kind, error) {
    case (.inputOutput, .inputOutput), (.diskFull, .diskFull), (.shortWrite, .diskFull): true
    case (_, .unfinished(_, _, let cause)): explains(cause)
    // As far as the program can see, the file ends there; a log that does not reach as far as its index must be recovered.
    case (.shortRead, .inputOutput), (.shortRead, .damaged), (.shortRead, .notAStore), (.shortRead, .busy): true
    // The same in a rotation, whose checkpoint is refused again and again.
    case (.shortRead, .oldKeyInUse): true
    default: false
    }
  }

  func explains(_ error: StorageError) -> Bool {
    switch (kind, error) {
    case (.inputOutput, .inputOutput), (.diskFull, .diskFull), (.shortWrite, .diskFull): true
    case (.shortRead, .inputOutput), (.shortRead, .damaged), (.shortRead, .notAStore), (.shortRead, .busy): true
    default: false
    }
  }
}

/// Counts the calls that can fail, and makes some fail.
package final class FaultInjector: Sendable {
  private struct State {
    var count = 0
    var failedCalls: [RecordingVFS.Call] = []
    var isActive = true
  }

  private let state = Lock(State())

  /// From now on the calls of `recorder` fail as planned.
  package convenience init(_ plan: FaultPlan, in recorder: RecordingVFS) {
    self.init(in: recorder, from: plan.number, count: plan.isLasting ? .max : 1) { plan.fault(of: $0) }
  }

  /// From now on calls of `recorder` fail: this many, starting at this number, of those with a `fault`.
  package init(
    in recorder: RecordingVFS, from first: Int = 1, count: Int,
    _ fault: @escaping @Sendable (RecordingVFS.Call) -> RecordingVFS.Fault?
  ) {
    recorder.failCalls { [self] call in
      guard let fault = fault(call) else { return nil }
      return state.withLock { state in
        guard state.isActive else { return nil }
        state.count += 1
        guard state.count >= first, state.failedCalls.count < count else { return nil }
        state.failedCalls.append(call)
        return fault
      }
    }
  }

  /// The calls that have failed.
  package var failedCalls: [RecordingVFS.Call] { state.withLock { $0.failedCalls } }

  /// No call fails any more.
  package func stop() {
    state.withLock { $0.isActive = false }
  }
}
