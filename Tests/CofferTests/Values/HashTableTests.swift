import TestSupport
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

  @Test("finds what was not removed, despite colliding hashes", arguments: [1, 8, 64, 1 << 40])
  func removal(hashCount: UInt64) {
    var random = SplitMix64(state: hashCount)
    var table = HashTable<Element>()
    var kept: [Int: Element] = [:]
    func insert(_ number: Int) {
      // From slot 56 of 64 on, so that many collisions wrap to the beginning.
      let element = Element(number, hash: 56 &+ random.next() % hashCount)
      table.insert(element, hash: element.hash)
      kept[number] = element
    }
    func check(_ comment: Comment) {
      let isEachFound = kept.allSatisfy { number, element in
        table.find(element.hash) { $0.number == number }?.object === element
      }
      #expect(isEachFound && table.count == kept.count, comment)
    }
    func sweep(_ slotCount: Int, to count: Int, _ isRemoved: () -> Bool = { true }) {
      table.sweep(slotCount: slotCount, while: { kept.count > count }) { element in
        guard isRemoved() else { return false }
        kept[element.number] = nil
        return true
      }
    }
    for round in 0..<500 {
      insert(round)
      sweep(16, to: 20) { random.next().isMultiple(of: 2) }
      check("round \(round)")
    }
    for number in 500..<800 { insert(number) }
    check("grown to \(table.capacity)")
    sweep(4 * table.capacity, to: 20)
    check("swept")
    table.shrink()
    #expect(table.capacity < 512)
    check("shrunk to \(table.capacity)")
    sweep(4 * table.capacity, to: 0)
    check("emptied")
  }

  @Test("moves a few elements at a time when it grows, and has all of them meanwhile")
  func growth() {
    var table = HashTable<Element>()
    var random = SplitMix64(state: 1)
    var elements: [Element] = []
    var growingCounts: Set<Int> = []
    for number in 0..<3000 {
      elements.append(Element(number, hash: random.next()))
      table.insert(elements[number], hash: elements[number].hash)
      guard table.isGrowing else { continue }
      growingCounts.insert(table.capacity)
      var count = 0
      table.forEach { _ in count += 1 }
      let areFound = elements.allSatisfy { element in table.find(element.hash) { $0 === element } != nil }
      guard count == number + 1, areFound else {
        Issue.record("some are missing after \(number)")
        return
      }
    }
    #expect(growingCounts == [2048, 4096, 8192])
    #expect(table.count == 3000)
  }

  @Test("releases what it removes, and checks no more slots than requested")
  func bounds() {
    var table = HashTable<Element>()
    weak var first: Element?
    for number in 0..<10 {
      let element = Element(number, hash: UInt64(number))
      if number == 0 { first = element }
      table.insert(element, hash: element.hash)
    }
    var seen: [Int] = []
    for slotCount in [3, 2] {
      table.sweep(slotCount: slotCount, while: { true }) { element in
        seen.append(element.number)
        return false
      }
    }
    #expect(seen == [0, 1, 2, 3, 4])
    #expect(first != nil)
    table.sweep(slotCount: table.capacity, while: { true }) { $0.number == 0 }
    #expect(first == nil)
    #expect(table.count == 9)
  }
}
