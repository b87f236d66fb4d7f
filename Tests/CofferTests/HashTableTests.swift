import Testing

@testable import Coffer

@Suite("A hash table")
struct HashTableTests {
  private final class Element {
    let number: Int
    let hash: UInt64

    init(_ number: Int, hash: UInt64) {
      self.number = number
      self.hash = hash
    }
  }

  @Test("finds what was not removed, however hashes collide", arguments: [1, 7, 64, 1 << 40])
  func removal(hashCount: UInt64) {
    var random = SeededGenerator(seed: hashCount)
    var table = HashTable<Element>()
    var kept: [Int: Element] = [:]
    for number in 0..<2000 {
      // The last slots, too, so that some of what collides lies at the beginning.
      let element = Element(number, hash: 60 &+ random.next() % hashCount)
      table.insert(element, hash: element.hash)
      kept[number] = element
      guard number % 4 == 3 else { continue }
      table.sweep(slotCount: 8, while: { true }) { element in
        guard random.next() % 2 == 0 else { return false }
        kept[element.number] = nil
        return true
      }
      if number % 400 == 399 { table.shrink() }
      #expect(table.count == kept.count)
      for (number, element) in kept {
        let found = table.find(element.hash) { $0.number == number }?.takeUnretainedValue()
        guard found !== element else { continue }
        Issue.record("\(number) is not found after \(kept.count) elements")
        return
      }
    }
    table.sweep(slotCount: .max, while: { !kept.isEmpty }) { kept.removeValue(forKey: $0.number) != nil }
    #expect(table.count == 0)
    table.shrink()
    #expect(table.capacity == 64)
  }

  @Test("lets go of what it removes, and looks at no more slots than it is told")
  func bounds() {
    var table = HashTable<Element>()
    weak var first: Element?
    for number in 0..<10 {
      let element = Element(number, hash: UInt64(number))
      if number == 0 { first = element }
      table.insert(element, hash: element.hash)
    }
    var seen: [Int] = []
    table.sweep(slotCount: 3, while: { true }) { element in
      seen.append(element.number)
      return false
    }
    table.sweep(slotCount: 2, while: { true }) { element in
      seen.append(element.number)
      return false
    }
    #expect(seen == [0, 1, 2, 3, 4])
    #expect(first != nil)
    table.sweep(slotCount: 64, while: { true }) { $0.number == 0 }
    #expect(first == nil)
    #expect(table.count == 9)
  }
}
