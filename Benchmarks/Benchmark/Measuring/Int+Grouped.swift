extension Int {
  /// With thousands separators.
  var grouped: String {
    self < 1000 ? "\(self)" : "\((self / 1000).grouped),\(String(1000 + self % 1000).dropFirst())"
  }
}
