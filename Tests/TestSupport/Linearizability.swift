/// Checks that the operations of several processes are linearizable: each could have happened at one moment between its
/// invocation and its response (Herlihy and Wing, "Linearizability", 1990).
///
/// The search is that of Wing and Gong (1993), with the memory of configurations that Lowe describes ("Testing for
/// linearizability", 2017): which operations have been placed, and what the registers hold then, is not tried twice.
///
/// Its limits: it checks only the recorded history. One object is checked at a
/// time, which is sound, as a history is linearizable if and only if it is so for each object; what spans two objects has
/// to be recorded as one. In the worst case the time doubles with each operation that overlaps the others: histories have
/// to be of a few processes. Every operation must have responded.
package enum Linearizability {
  /// Whether there is an order that explains the operations on one object.
  ///
  /// - Parameter initial: The initial values of its registers.
  package static func explains(_ history: [RecordedOperation], initial: [Int?]) -> Bool {
    var search = Search(history, registers: initial)
    return search.run()
  }

  private struct Configuration: Hashable {
    /// All operations before this one are placed.
    let firstOpen: Int
    let placedBehind: Set<Int>
    let registers: [Int?]
  }

  private struct Step {
    let operation: Int
    let registers: [Int?]
    /// Where to continue if this one fails.
    let next: Int
  }

  private struct Search {
    private let operations: [RecordedOperation]
    private var registers: [Int?]
    private var placed: Set<Int> = []
    /// All operations before this one are placed.
    private var firstOpen = 0
    private var steps: [Step] = []
    private var tried: Set<Configuration> = []

    init(_ history: [RecordedOperation], registers: [Int?]) {
      operations = history.sorted { $0.invoked < $1.invoked }
      self.registers = registers
    }

    mutating func run() -> Bool {
      var candidate = 0
      while placed.count < operations.count {
        if let operation = nextCandidate(from: candidate) {
          candidate = place(operation) ? firstOpen : operation + 1
        } else if let step = steps.popLast() {
          candidate = undo(step)
        } else {
          return false
        }
      }
      return true
    }

    /// The first operation from `start` on that may come next: no unplaced one had responded before it began.
    private func nextCandidate(from start: Int) -> Int? {
      var earliestResponse = UInt64.max
      for index in firstOpen..<operations.count where !placed.contains(index) {
        // Invocations are in order: all that follow began too late as well.
        guard operations[index].invoked <= earliestResponse else { return nil }
        if index >= start { return index }
        earliestResponse = min(earliestResponse, operations[index].responded)
      }
      return nil
    }

    /// Places an operation, if it returns the recorded result, and this was not tried before.
    private mutating func place(_ index: Int) -> Bool {
      var next = registers
      guard operations[index].action.run(on: &next) == operations[index].result else { return false }
      placed.insert(index)
      var open = firstOpen
      while placed.contains(open) { open += 1 }
      let configuration = Configuration(
        firstOpen: open, placedBehind: placed.filter { $0 > open }, registers: next)
      guard tried.insert(configuration).inserted else {
        placed.remove(index)
        return false
      }
      steps.append(Step(operation: index, registers: registers, next: index + 1))
      (registers, firstOpen) = (next, open)
      return true
    }

    private mutating func undo(_ step: Step) -> Int {
      placed.remove(step.operation)
      registers = step.registers
      firstOpen = min(firstOpen, step.operation)
      return step.next
    }
  }
}
