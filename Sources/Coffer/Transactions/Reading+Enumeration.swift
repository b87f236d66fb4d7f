// An enumeration visits the keys of a collection in the order of their UTF-8 bytes. It sees the rows as of its start,
// regardless of later changes, and can be nested. A body ends its enumeration by setting `stop`. The filter runs before a
// value is decoded.

extension Reading where Self: ~Copyable {
  /// Visits the keys of a collection with their objects.
  ///
  /// ```swift
  /// try transaction.enumerateKeysAndObjects(inCollection: "accounts", as: Account.self) { key, account, stop in
  ///   print(key, account.name)
  /// }
  /// ```
  ///
  /// - Throws: `CofferError.notDecodable` at the first object of another type; the errors of `filter` and `body`.
  public borrowing func enumerateKeysAndObjects<Object: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Object.Type = Object.self,
    where filter: ((_ key: String) throws -> Bool)? = nil,
    _ body: (_ key: String, _ object: Object, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerate(collection, range, .objects, filter) { key, cursor, stop in
      try body(key, try core.decode(cursor.object(), as: type, key, in: collection), &stop)
    }
  }

  /// Visits the keys of a collection with their texts, both as UTF-8, without a `String` for each.
  ///
  /// ```swift
  /// var lineCount = 0
  /// try transaction.enumerateUTF8(inCollection: "notes") { _, text, _ in
  ///   for index in text.indices where text[index] == UInt8(ascii: "\n") { lineCount += 1 }
  /// }
  /// ```
  ///
  /// The bytes are lent until `body` returns, as they are stored: valid UTF-8 if Coffer wrote them.
  ///
  /// - Throws: `CofferError.notDecodable` at the first object that is not a text; the errors of `body`.
  public borrowing func enumerateUTF8(
    inCollection collection: String = "", within range: KeyRange = .all,
    _ body: (_ key: Span<UInt8>, _ text: Span<UInt8>, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    // A change by `body` would move on the statement whose memory is lent.
    let mayLend = session.call.mode == .reading && !core.hasAnyRules
    var stop = false
    try session.enumerate(collection, range, .objects) { _, cursor in
      if mayLend, try cursor.lendText({ try body($0, $1, &stop) }) { return !stop }
      let key = cursor.key
      let text = try core.decode(cursor.object(), as: String.self, key, in: collection)
      let (keyBytes, textBytes) = (Array(key.utf8), Array(text.utf8))
      try body(keyBytes.span, textBytes.span, &stop)
      return !stop
    }
  }

  /// Visits the keys of a collection with their objects and metadata.
  ///
  /// - Throws: `CofferError.notDecodable` at the first value of another type; the errors of `filter` and `body`.
  public borrowing func enumerateRows<Object: Decodable, Metadata: Decodable>(
    inCollection collection: String = "", within range: KeyRange = .all, as type: Object.Type = Object.self,
    metadata metadataType: Metadata.Type = Metadata.self, where filter: ((_ key: String) throws -> Bool)? = nil,
    _ body: (_ key: String, _ object: Object, _ metadata: Metadata?, _ stop: inout Bool) throws -> Void
  ) throws {
    let core = session.core
    try enumerate(collection, range, .rows, filter) { key, cursor, stop in
      try body(
        key, try core.decode(cursor.object(), as: type, key, in: collection),
        try core.metadata(cursor.metadata(), as: metadataType, key, in: collection), &stop)
    }
  }

  /// Visits the keys of a collection that the filter accepts, with the `columns` of their rows.
  package borrowing func enumerate(
    _ collection: String, _ range: KeyRange, _ columns: Cursor.Columns, _ filter: ((String) throws -> Bool)?,
    _ body: (String, Cursor, inout Bool) throws -> Void
  ) throws {
    var stop = false
    try session.enumerate(collection, range, columns) { _, cursor in
      let key = cursor.key
      if try filter?(key) ?? true { try body(key, cursor, &stop) }
      return !stop
    }
  }
}
