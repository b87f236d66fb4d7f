/// A declaration and its application.
package struct DeclaredSetting: Hashable, Sendable {
  /// The declaration.
  package let declaration: Declaration
  /// The application that declared the setting: the collection of its `Preferences`.
  package let application: String
  /// The version that the application stated.
  package let version: String?
  /// Whether it is in force; if not, an older version declares it, which may run.
  package var isInForce = true

  /// Whether it is a declaration of a collection, where only those count that hold in its suites if `isSuite`.
  func holds(in collection: String, isSuite: Bool) -> Bool {
    ByteString(declaration.collection) == ByteString(collection) && (!isSuite || declaration.hasSuites(of: application))
  }
}
