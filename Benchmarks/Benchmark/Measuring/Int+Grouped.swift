extension Int {
  /// With commas between the thousands.
  var grouped: String {
    self < 1000 ? "\(self)" : "\((self / 1000).grouped),\(String(1000 + self % 1000).dropFirst())"
  }
}
