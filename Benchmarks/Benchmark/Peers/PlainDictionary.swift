/// Swift's `Dictionary` without a mutex, for one reading thread: the cost of a lookup alone.
struct PlainDictionary {
  let name = "Dictionary without a lock"
  private let integers: [String: Int]
  private let texts: [String: String]

  init(keys: [String], integersFrom first: Int, texts: [String]) {
    integers = Dictionary(uniqueKeysWithValues: zip(keys, first...))
    self.texts = Dictionary(uniqueKeysWithValues: zip(keys, texts))
  }

  func sum(ofIntegersFor keys: [String]) -> Int {
    var sum = 0
    for key in keys { sum &+= integers[key] ?? 0 }
    return sum
  }

  func sum(ofLengthsFor keys: [String]) -> Int {
    var sum = 0
    for key in keys { sum &+= texts[key]?.utf8.count ?? 0 }
    return sum
  }
}
