/// Why a file has no valid settings, or a value cannot be written; never contains a value.
package struct FormatProblem: Error {
  package let reason: String

  package init(_ reason: String) {
    self.reason = reason
  }
}
