import CofferCrypto

/// The signature of a record by its author, which records that are pushed together share: it is over the root of a small hash tree with all of them
/// as its leaves.
struct RecordSignature: Equatable, Sendable {
  /// The neighbors on the way from the leaf to the root.
  var path: [[UInt8]] = []
  /// Ed25519, over the root.
  var bytes = [UInt8](repeating: 0, count: Ed25519.signatureByteCount)

  static let maximumPathCount = 10
  /// The number of records with one signature: more would make records longer, fewer a large commit slower.
  static let groupCount = 16

  /// The signatures of records with these bytes, in their order.
  static func sign(leaves: [[UInt8]], by identity: Identity, in fleet: [UInt8]) throws -> [RecordSignature] {
    var signatures = [RecordSignature](repeating: RecordSignature(), count: leaves.count)
    // The nodes of a level, each with the leaves below it.
    var nodes = leaves.enumerated().map { (digest: $1, leaves: [$0]) }
    while nodes.count > 1 {
      var parents: [(digest: [UInt8], leaves: [Int])] = []
      for start in stride(from: 0, to: nodes.count, by: 2) {
        guard start + 1 < nodes.count else {
          parents.append(nodes[start])
          continue
        }
        let (left, right) = (nodes[start], nodes[start + 1])
        for leaf in left.leaves { signatures[leaf].path.append(right.digest) }
        for leaf in right.leaves { signatures[leaf].path.append(left.digest) }
        parents.append((try parent(left.digest, right.digest), left.leaves + right.leaves))
      }
      nodes = parents
    }
    guard let root = nodes.first?.digest else { return [] }
    let bytes = try identity.sign(fleet + root, as: .record)
    for index in signatures.indices { signatures[index].bytes = bytes }
    return signatures
  }

  /// The root above a leaf, which is signed.
  func root(above leaf: [UInt8]) throws -> [UInt8] { try path.reduce(leaf) { try Self.parent($0, $1) } }

  static func leaf(of bytes: UnsafeRawBufferPointer) throws -> [UInt8] {
    var leaf = [UInt8](repeating: 0, count: 1)
    leaf.reserveCapacity(bytes.count + 1)
    leaf.append(contentsOf: bytes)
    defer { leaf.withUnsafeMutableBytes { Memory.wipe($0) } }
    return try leaf.digest
  }

  /// The order of the two does not matter, so a path needs no directions.
  private static func parent(_ a: [UInt8], _ b: [UInt8]) throws -> [UInt8] {
    try ([1] + (a.lexicographicallyPrecedes(b) ? a + b : b + a)).digest
  }

  // MARK: Bytes

  func append(to bytes: inout [UInt8]) {
    bytes.append(UInt8(path.count))
    for node in path { bytes += node }
    bytes += self.bytes
  }

  init() {}

  init(_ reader: inout ByteReader) throws(MalformedObject) {
    let count = try reader.number(UInt8.self)
    guard count <= Self.maximumPathCount else { throw MalformedObject(reason: "its signature is malformed") }
    for _ in 0..<count { path.append(try reader.array(SHA256.byteCount)) }
    bytes = try reader.array(Ed25519.signatureByteCount)
  }
}

/// Checks that records were signed by their authors; each signature once.
struct AuthorCheck: Sendable {
  private let fleet: [UInt8]
  private let members: Members
  /// The roots that each author has signed, as far as they were checked.
  private var roots: [MemberID: Set<[UInt8]>] = [:]

  init(_ members: Members, in fleet: [UInt8]) { (self.members, self.fleet) = (members, fleet) }

  mutating func check(_ record: Record, _ object: String) throws {
    let root = try record.signature.root(above: record.leaf)
    if roots[record.author]?.contains(root) ?? false { return }
    guard let author = members.author(record.author) else {
      throw FleetError.damaged(object: object, reason: "its author may not write")
    }
    guard try SignedObject.record.isValid(record.signature.bytes, of: fleet + root, by: author.signingKey) else {
      throw FleetError.damaged(object: object, reason: "it was not signed by its author, \(author.name)")
    }
    roots[record.author, default: []].insert(root)
  }
}
