/// Versions of programs: numbers separated by dots; missing ones count as 0.
enum VersionText {
  static func isLess(_ version: String?, than other: String?) -> Bool {
    guard let version, let other else { return false }
    let (numbers, others) = (numbers(version), numbers(other))
    for index in 0..<max(numbers.count, others.count) {
      let (a, b) = (index < numbers.count ? numbers[index] : 0, index < others.count ? others[index] : 0)
      if a != b { return a < b }
    }
    return false
  }

  private static func numbers(_ version: String) -> [Int] {
    version.split(separator: ".").map { part in
      let digits = part.prefix { $0.isASCII && $0.isNumber }
      return digits.isEmpty ? 0 : Int(digits) ?? .max
    }
  }
}
