/// The changes of one transaction by key, as in its row in the change log.
package struct ChangeSet: Equatable, Sendable {
  package struct Change: Equatable, Sendable {
    /// The net effect of the transaction on the key.
    package var kind: ChangeKind
    var changesObject: Bool
    var changesMetadata: Bool
    /// When it expired, in milliseconds since 1970, if it was removed for that.
    var expired: Int64?

    static func whole(_ kind: ChangeKind) -> Change {
      Change(kind: kind, changesObject: true, changesMetadata: true)
    }
  }

  package struct CollectionChange: Equatable, Sendable {
    package var isCleared = false
    /// True if there were too many keys to list: any key of the collection may have changed.
    package var isUnlisted = false
    /// Whether its history, and its keys in earlier rows of the change log, went with it.
    var isErased = false
    package var keys: [ByteString: Change] = [:]
    /// The keys removed by clearing, if anyone in this process observes them; never in the change log.
    var clearedKeys: [ByteString] = []

    var isEmpty: Bool { !isCleared && !isUnlisted && keys.isEmpty }
  }

  /// The maximum number of listed keys per collection.
  static let maximumKeyCount = 1000

  /// The collection changed last, usually the only one: found without hashing.
  private var latest: CollectionEntry?
  private var others: [Int64: CollectionChange] = [:]
  /// Everything was removed; `collections` has later changes.
  package private(set) var isAllCleared = false
  /// The same with all history, and all keys in earlier rows of the change log.
  private(set) var isAllErased = false

  private struct CollectionEntry {
    let id: Int64
    var change: CollectionChange
  }

  package var collections: [Int64: CollectionChange] {
    var all = others
    if let latest { all[latest.id] = latest.change }
    return all
  }

  var isEmpty: Bool {
    !isAllCleared && latest?.change.isEmpty ?? true && others.values.allSatisfy(\.isEmpty)
  }

  /// Changes the entry of a collection; a missing one starts as `new`.
  private mutating func update(
    _ id: Int64, new: @autoclosure () -> CollectionChange = CollectionChange(), _ body: (inout CollectionChange) -> Void
  ) {
    if latest?.id != id {
      let change = others.removeValue(forKey: id) ?? new()
      if let latest { others[latest.id] = latest.change }
      latest = CollectionEntry(id: id, change: change)
    }
    body(&latest!.change)
  }

  package static func == (a: Self, b: Self) -> Bool {
    a.isAllCleared == b.isAllCleared && a.isAllErased == b.isAllErased && a.collections == b.collections
  }

  /// - Parameter expectedCount: The expected number of keys; most are of the first collection.
  mutating func record(_ key: String, in collection: Int64, _ change: Change, expectedCount: Int = 0) {
    let capacity = latest == nil ? min(expectedCount, Self.maximumKeyCount) : 0
    update(collection, new: CollectionChange(keys: Dictionary(minimumCapacity: capacity))) {
      $0.record(ByteString(key), change)
    }
  }

  /// All items of the collection are removed; its recorded keys no longer matter.
  mutating func recordClearing(of collection: Int64, keys: [ByteString] = [], isErased: Bool = false) {
    update(collection) {
      $0 = CollectionChange(
        isCleared: true, isErased: isErased || $0.isErased, clearedKeys: $0.clearedKeys + keys)
    }
  }

  /// The declaration of the collection has changed: if no key is recorded, any may have changed.
  mutating func recordDeclaration(of collection: Int64) {
    update(collection) { if $0.isEmpty { $0 = CollectionChange(isUnlisted: true) } }
  }

  /// All items of all collections are removed.
  mutating func recordClearingOfAll(isErased: Bool = false) {
    for id in collections.keys { recordClearing(of: id, isErased: isErased) }
    isAllCleared = true
    isAllErased = isAllErased || isErased
  }
}

extension ChangeSet.CollectionChange {
  mutating func record(_ key: ByteString, _ change: ChangeSet.Change) {
    guard !isUnlisted else { return }
    // One access, so that the key is hashed once.
    Self.add(change, to: &keys[key])
    if keys.count > ChangeSet.maximumKeyCount {
      isUnlisted = true
      keys = [:]
    }
  }

  @inline(__always)
  private static func add(_ change: ChangeSet.Change, to earlier: inout ChangeSet.Change?) {
    guard let first = earlier else { return earlier = change }
    earlier = first.followed(by: change)
  }

  /// These changes and later ones of the same collection.
  func followed(by later: Self) -> Self {
    var both = self
    // A cleared collection stays cleared: removed keys are gone, whatever came after.
    both.isCleared = isCleared || later.isCleared
    both.isUnlisted = isUnlisted || later.isUnlisted
    both.isErased = isErased || later.isErased
    both.clearedKeys += later.clearedKeys
    for (key, change) in later.keys { both.record(key, change) }
    if both.clearedKeys.count > ChangeSet.maximumKeyCount {
      both.clearedKeys = []
      both.isUnlisted = true
    }
    return both
  }
}

extension ChangeSet.Change {
  /// Two successive changes of the same key, merged; nil if they cancel out.
  fileprivate func followed(by later: Self) -> Self? {
    kind.followed(by: later.kind).map { kind in
      Self(
        kind: kind, changesObject: changesObject || later.changesObject,
        changesMetadata: changesMetadata || later.changesMetadata, expired: kind == .removed ? later.expired : nil)
    }
  }
}

// MARK: - Packing

extension ChangeSet {
  fileprivate enum Form {
    static let cleared: UInt8 = 1
    static let unlisted: UInt8 = 2
    static let erased: UInt8 = 4
  }

  fileprivate enum Tag {
    static let kind: UInt8 = 3
    static let object: UInt8 = 4
    static let metadata: UInt8 = 8
    static let expired: UInt8 = 16
  }

  /// The packed list of `FORMAT.md`, Change log.
  var packed: [UInt8] {
    var bytes: [UInt8] = []
    // Enough for most commits.
    bytes.reserveCapacity(96)
    bytes.append((isAllCleared ? Form.cleared : 0) | (isAllErased ? Form.erased : 0))
    if let latest, others.isEmpty {
      latest.change.pack(latest.id, into: &bytes)
    } else {
      for (id, change) in collections.sorted(by: { $0.key < $1.key }) { change.pack(id, into: &bytes) }
    }
    return bytes
  }

  /// nil if the bytes are not a packed list.
  package init?(packed: [UInt8]) {
    var bytes = packed[...]
    guard let flags = bytes.popFirst(), Self.areFlags(flags, Form.cleared | Form.erased) else { return nil }
    isAllCleared = flags & Form.cleared != 0
    isAllErased = flags & Form.erased != 0
    while !bytes.isEmpty {
      guard let id = bytes.popVarint(), let id = Int64(exactly: id), let form = bytes.popFirst(),
        Self.areFlags(form, Form.cleared | Form.unlisted | Form.erased), let count = bytes.popVarint(),
        count <= UInt64(bytes.count)
      else { return nil }
      var collection = CollectionChange(
        isCleared: form & Form.cleared != 0, isUnlisted: form & Form.unlisted != 0,
        isErased: form & Form.erased != 0)
      for _ in 0..<count {
        guard let tag = bytes.popFirst(), tag < 2 * Tag.expired, let kind = ChangeKind(tag: tag & Tag.kind),
          tag & Tag.expired == 0 || kind == .removed,
          let length = bytes.popVarint(), length <= UInt64(bytes.count),
          let key = String(validating: bytes.prefix(Int(length)), as: UTF8.self)
        else { return nil }
        bytes = bytes.dropFirst(Int(length))
        var expired: Int64?
        if tag & Tag.expired != 0 {
          guard let time = bytes.popTime() else { return nil }
          expired = time
        }
        collection.keys[ByteString(key)] = Change(
          kind: kind, changesObject: tag & Tag.object != 0, changesMetadata: tag & Tag.metadata != 0,
          expired: expired)
      }
      update(id) { $0 = collection }
    }
  }

  /// Nothing is erased that is not cleared.
  private static func areFlags(_ flags: UInt8, _ known: UInt8) -> Bool {
    flags & ~known == 0 && (flags & Form.erased == 0 || flags & Form.cleared != 0)
  }

  /// An ID as encoded in a packed list.
  static func packed(id: Int64) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(varint: UInt64(bitPattern: id))
    return bytes
  }

  /// The same, with only the ID left of an erased collection (nil: of any); nil if that changes nothing.
  func forgetting(_ collection: Int64?) -> ChangeSet? {
    var copy = self
    for (id, change) in collections where !change.keys.isEmpty && (collection == nil || collection == id) {
      copy.update(id) {
        $0 = CollectionChange(isCleared: change.isCleared, isUnlisted: true, isErased: change.isErased)
      }
    }
    return copy == self ? nil : copy
  }
}

/// A packed list, taken apart without decoding its keys.
struct PackedChanges {
  /// The part of one collection.
  struct Part {
    let id: UInt64
    fileprivate let form: UInt8
    fileprivate let count: UInt64
    /// The number of keys and the keys, as bytes.
    let list: UnsafeRawBufferPointer

    /// Whether it has no keys, and says that any may have changed: the form that an erased list has.
    var isEmptied: Bool { form & ChangeSet.Form.unlisted != 0 && count == 0 }
    var isErased: Bool { form & ChangeSet.Form.erased != 0 }

    /// Everything but the list, as it was when the list was committed, if it was emptied since.
    func form(isEmptied: Bool) -> UInt8 { isEmptied ? form & ~ChangeSet.Form.unlisted : form }
  }

  let flags: UInt8
  private var rest: UnsafeRawBufferPointer

  var isAllErased: Bool { flags & ChangeSet.Form.erased != 0 }

  /// nil if there are no bytes.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard let flags = bytes.first else { return nil }
    self.flags = flags
    rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
  }

  var isAtEnd: Bool { rest.isEmpty }

  /// The next part; nil if the bytes are not one.
  mutating func next() -> Part? {
    var bytes = rest[...]
    guard let id = bytes.popVarint(), let form = bytes.popFirst() else { return nil }
    let start = bytes.startIndex
    guard let count = bytes.popVarint() else { return nil }
    for _ in 0..<count {
      guard let tag = bytes.popFirst(), let length = bytes.popVarint() else { return nil }
      let byteCount = length.addingReportingOverflow(tag & ChangeSet.Tag.expired == 0 ? 0 : 8)
      guard !byteCount.overflow, byteCount.partialValue <= UInt64(bytes.count) else { return nil }
      bytes = bytes.dropFirst(Int(byteCount.partialValue))
    }
    let list = UnsafeRawBufferPointer(rebasing: rest[start..<bytes.startIndex])
    rest = UnsafeRawBufferPointer(rebasing: bytes)
    return Part(id: id, form: form, count: count, list: list)
  }

  /// Whether it lists keys of a collection (nil: of any).
  ///
  /// Also true if it is not a packed list: unpacking reports that.
  static func lists(_ collection: Int64?, packed: UnsafeRawBufferPointer) -> Bool {
    guard var changes = PackedChanges(packed) else { return true }
    while !changes.isAtEnd {
      guard let part = changes.next() else { return true }
      if part.count > 0, collection.map({ UInt64(bitPattern: $0) == part.id }) ?? true { return true }
    }
    return false
  }
}

extension ArraySlice<UInt8> {
  /// The next eight bytes, big-endian.
  fileprivate mutating func popTime() -> Int64? {
    guard count >= 8 else { return nil }
    defer { self = dropFirst(8) }
    return Int64(bitPattern: prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
  }
}

extension ChangeKind {
  /// The number of a kind in a packed list.
  fileprivate var tag: UInt8 {
    switch self {
    case .inserted: 0
    case .updated: 1
    case .removed: 2
    case .touched: 3
    }
  }

  fileprivate init?(tag: UInt8) {
    switch tag {
    case 0: self = .inserted
    case 1: self = .updated
    case 2: self = .removed
    case 3: self = .touched
    default: return nil
    }
  }
}

extension ChangeSet.CollectionChange {
  fileprivate func pack(_ id: Int64, into bytes: inout [UInt8]) {
    guard !isEmpty else { return }
    bytes.append(varint: UInt64(id))
    bytes.append(
      (isCleared ? ChangeSet.Form.cleared : 0) | (isUnlisted ? ChangeSet.Form.unlisted : 0)
        | (isErased ? ChangeSet.Form.erased : 0))
    bytes.append(varint: UInt64(keys.count))
    for (key, change) in keys {
      bytes.append(
        change.kind.tag | (change.changesObject ? ChangeSet.Tag.object : 0)
          | (change.changesMetadata ? ChangeSet.Tag.metadata : 0)
          | (change.expired == nil ? 0 : ChangeSet.Tag.expired))
      key.string.withUTF8Bytes { key in
        bytes.append(varint: UInt64(key.count))
        bytes.append(contentsOf: key)
      }
      if let expired = change.expired { bytes.append(bigEndian: UInt64(bitPattern: expired)) }
    }
  }
}
