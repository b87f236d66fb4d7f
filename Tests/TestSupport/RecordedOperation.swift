/// An operation of one process on registers, with its times and result.
///
/// Times are of the system's monotonic clock, which all processes of one machine share.
package struct RecordedOperation: Codable, Sendable {
  /// The operation; registers are identified by their index in the object.
  package enum Action: Codable, Sendable, Hashable {
    case get(Int)
    case set(Int, to: Int)
    case compareAndSet(Int, expected: Int?, new: Int)
    /// Counts up by one; nothing counts as 0.
    case increment(Int)
    /// Reads all registers of the object in one transaction.
    case getAll
    /// Reads all registers of the object and sets them, in one transaction.
    case exchangeAll([Int])
  }

  package enum Result: Codable, Sendable, Hashable {
    case value(Int?)
    case values([Int?])
    case success(Bool)
    case done
  }

  package let object: String
  package let action: Action
  package let result: Result
  package let invoked: UInt64
  package let responded: UInt64

  package init(object: String, action: Action, result: Result, invoked: UInt64, responded: UInt64) {
    self.object = object
    self.action = action
    self.result = result
    self.invoked = invoked
    self.responded = responded
  }
}

extension RecordedOperation.Action {
  /// Applies this to unshared registers.
  package func run(on registers: inout [Int?]) -> RecordedOperation.Result {
    switch self {
    case .get(let place): return .value(registers[place])
    case .set(let place, let value):
      registers[place] = value
      return .done
    case .compareAndSet(let place, let expected, let new):
      guard registers[place] == expected else { return .success(false) }
      registers[place] = new
      return .success(true)
    case .increment(let place):
      registers[place] = (registers[place] ?? 0) + 1
      return .value(registers[place])
    case .getAll: return .values(registers)
    case .exchangeAll(let new):
      let old = registers
      registers = new
      return .values(old)
    }
  }
}
