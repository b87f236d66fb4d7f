extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The length, never the bytes: `<secret: 32 bytes>`.
  public var description: String { "<secret: \(count) bytes>" }

  /// The same as ``description``.
  public var debugDescription: String { description }

  /// A mirror without children, so that `dump` and test frameworks find neither bytes nor an address to read them at.
  public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
