import CofferCrypto
import Testing

@testable import Coffer
@testable import CofferFleet

extension SecretBytes {
  convenience init(_ bytes: [UInt8]) { self.init(count: bytes.count) { $0.copyBytes(from: bytes) } }
}

@Suite("The objects of a fleet")
struct FormatTests {
  let fleet = [UInt8](0..<16)
  let keys: FleetKeys
  let identity: Identity

  init() throws {
    keys = try FleetKeys(Self.secrets(fleet))
    identity = try Identity(
      member: MemberID(bytes: [UInt8](repeating: 9, count: 16)), seed: SecretBytes([UInt8](repeating: 5, count: 32)),
      fleet: fleet)
  }

  private static let folders: [[UInt8]] = [[1, 2, 3, 4, 5, 6, 7, 7], [1, 2, 3, 4, 5, 6, 7, 8]]

  private static func secrets(_ fleet: [UInt8]) -> FleetKeys.Secrets {
    func key(_ byte: UInt8) -> SecretBytes { SecretBytes([UInt8](repeating: byte, count: 32)) }
    return FleetKeys.Secrets(
      fleet: fleet, epoch: 3, folder: [1, 2, 3, 4, 5, 6, 7, 6], fleetKey: key(7),
      collections: [
        .init(folder: folders[0], name: "flags", key: key(6)), .init(folder: folders[1], name: "web", key: key(7)),
      ])
  }

  /// Those of the collection `web`.
  private var web: CollectionKeys { keys.collections[1] }

  private func record(_ content: Record.Content) -> Record {
    Record(
      collection: "web", key: "port", counter: 4, clock: HybridClock(rawValue: 77 << 16 | 3), author: identity.member,
      writer: "prefs\nroot\nweb-1", content: content)
  }

  private var full: Record {
    record(
      .value(
        FleetValue(
          object: StoredValue(kind: .int, bytes: [0, 0, 0, 0, 0, 0, 0x1f, 0x90]),
          metadata: StoredValue(kind: .string, bytes: Array("note".utf8)), dates: ItemDates(expires: 5, due: -1))))
  }

  // MARK: Vectors

  /// Computed by the reader in clients/reader as well.
  @Test("have the names, keys and hashes of FLEET.md")
  func vectors() throws {
    #expect(try FleetKeys.object(web.place(of: "port")).hasPrefix("r/0102030405060708/"))
    #expect(Authority.object(12) == "authority/0000000012")
    #expect(try RecordSet().digest.hex == "202f4e7770b5b389b7f7df29a9ca2eb0615da390e2d4853c6d24df18dfc318f5")
    let set = try RecordSet([("b", 2), ("a", 1), ("B", 3)].map { (Array($0.utf8), [UInt8](repeating: $1, count: 32)) })
    #expect(try set.digest.hex == "8c14fecfb9175d7320ff2b64b8045800bcc2e5abd705cc5163c025efac24a165")
  }

  @Test("distinguish sets that differ by one name or one object, whatever their order, also if updated in parts")
  func recordSet() throws {
    func set(_ elements: [(UInt8, UInt8)]) throws -> RecordSet { try RecordSet(elements.map { ([7, $0.0], [$0.1]) }) }
    let all: [(UInt8, UInt8)] = [(1, 1), (2, 2), (3, 3)]
    #expect(try set(all).digest == set(all.reversed()).digest)
    #expect(try set(all).digest != set([(1, 2), (2, 1), (3, 3)]).digest)
    #expect(try set(all).digest != set([(1, 1), (2, 2)]).digest)
    var updated = try set([(1, 1), (2, 9), (4, 4)])
    try updated.update([[7, 2]: [2], [7, 3]: [3], [7, 4]: nil]) { first in
      first == 7 ? [([7, 1], [1]), ([7, 2], [9]), ([7, 4], [4])] : []
    }
    #expect(try updated == set(all))
    try updated.update([[7, 1]: nil, [7, 2]: nil, [7, 3]: nil]) { _ in
      all.map { ([7, $0.0], [$0.1]) }
    }
    #expect(updated == RecordSet() && RecordSet(bytes: updated.bytes) == updated)
    #expect(RecordSet(bytes: [1]) == nil)
  }

  // MARK: Records

  @Test("return every record unchanged, under the name of its setting")
  func records() throws {
    let declaration = SharedDeclaration(application: "shop", version: nil, json: "{}")
    for record in [
      full, record(.tombstone), record(.value(FleetValue(object: StoredValue(kind: .string, bytes: [])))),
      record(.declaration(declaration)), record(.declarationTombstone),
    ] {
      let object = try record.sealed(web)
      let name = try #require(keys.place(ofObject: object.name))
      #expect(try Record(opening: object.bytes, at: name, keys) == record)
    }
    #expect(try full.place(web) != record(.declaration(declaration)).place(web))
  }

  @Test("of a declaration cannot be taken for those of its value, nor the other way round")
  func purposes() throws {
    let (value, declaration) = (try full.place(web), try record(.declarationTombstone).place(web))
    for (record, name) in [(full, declaration), (record(.declarationTombstone), value)] {
      let object = try record.sealed(web, at: name)
      #expect(throws: FleetError.damaged(object: object.name, reason: "it belongs to another setting")) {
        try Record(opening: object.bytes, at: name, keys)
      }
    }
  }

  @Test("refuse a record with a changed byte, under another name, or under another key")
  func tamperedRecords() throws {
    let object = try full.sealed(web)
    let name = try #require(keys.place(ofObject: object.name))
    for index in object.bytes.indices {
      var bytes = object.bytes
      bytes[index] ^= 1
      #expect(throws: FleetError.self) { try Record(opening: bytes, at: name, keys) }
    }
    for count in object.bytes.indices {
      #expect(throws: FleetError.self) { try Record(opening: Array(object.bytes.prefix(count)), at: name, keys) }
    }
    let other = try web.place(of: "host")
    #expect(throws: FleetError.damaged(object: FleetKeys.object(other), reason: "it does not authenticate")) {
      try Record(opening: object.bytes, at: other, keys)
    }
    // The same key of another folder.
    var secrets = Self.secrets(fleet)
    secrets.collections[1].folder[0] = 2
    let moved = [2] + name.dropFirst()
    let later = try FleetKeys(secrets)
    #expect(throws: FleetError.damaged(object: FleetKeys.object(moved), reason: "it does not authenticate")) {
      try Record(opening: object.bytes, at: moved, later)
    }
    #expect(throws: FleetError.self) { try Record(opening: object.bytes, at: name, later) }
  }

  @Test("of a newer version are distinguished from damaged ones")
  func newer() throws {
    var object = try full.sealed(web)
    let name = try #require(keys.place(ofObject: object.name))
    object.bytes[0] = 2
    #expect(throws: FleetError.newerFormat(object: object.name, found: 2, supported: 1)) {
      try Record(opening: object.bytes, at: name, keys)
    }
  }

  @Test("refuse a malformed value, or one of a kind that is never shared, even if sealed by a member")
  func malformedValues() throws {
    for value in [
      StoredValue(kind: .int, bytes: [1]), StoredValue(kind: .string, bytes: [0xff]),
      StoredValue(kind: .null, bytes: []),
      StoredValue(kind: .sealed, bytes: [1, 2]),
    ] {
      let object = try record(.value(FleetValue(object: value))).sealed(web)
      let name = try #require(keys.place(ofObject: object.name))
      #expect(throws: FleetError.damaged(object: object.name, reason: "its value is malformed")) {
        try Record(opening: object.bytes, at: name, keys)
      }
    }
  }

  // MARK: Members and heads

  private func members(_ others: [(Identity, FleetRole)] = []) -> Members {
    let all = [(identity, FleetRole.admin)] + others
    return Members(
      version: 1, fleetName: "team", retentionDays: 90,
      shared: zip(Self.folders, ["flags", "web"]).map { SharedCollection(folder: $0, name: $1, since: 1) },
      members: all.enumerated().map { index, member in
        Members.Member(
          id: member.0.member, name: "host \(index)", role: member.1, standing: .admitted,
          signingKey: member.0.signingKey,
          publicKey: member.0.publicKey, created: 5)
      })
  }

  private func head() throws -> Head {
    try Head(
      number: 8, time: 99, author: identity.member, membersVersion: 1, authority: [UInt8](repeating: 1, count: 32),
      collections: collections(by: identity), log: log(of: 5),
      pieces: [Head.PieceReference(id: [UInt8](0..<8), digest: [UInt8](repeating: 4, count: 32))])
  }

  private func collections(by author: Identity, horizon: UInt64 = 2) throws -> [CollectionHead] {
    try Self.folders.map { folder in
      try CollectionHead(
        folder: folder, set: RecordSet(), recordCount: 3, horizon: horizon, number: 8, by: author, in: fleet)
    }
  }

  @Test("open a head only if each collection in it was signed by a member who may write there, and name its author")
  func collectionHeads() throws {
    let (contractor, reader) = (try Identity.make(fleet: fleet), try Identity.make(fleet: fleet))
    var members = members([(contractor, .writer), (reader, .reader)])
    members.members[1].access = .some([Self.folders[1]])
    func open(_ collections: [CollectionHead]) throws {
      var head = try head()
      (head.author, head.collections) = (contractor.member, collections)
      _ = try Head(opening: head.sealed(keys, by: contractor), keys, members: members, authority: head.authority)
    }
    let (by, others) = (try collections(by: contractor), try collections(by: identity))
    try open([others[0], by[1]])
    var forged = by[0]
    forged.author = identity.member
    var moved = others[0]
    moved.folder = Self.folders[1]
    var changed = others[0]
    changed.recordCount += 1
    for collections in [
      [by[0], by[1]], [try self.collections(by: reader)[0], by[1]], [forged, by[1]], [changed, by[1]],
      [others[0], moved],
    ] {
      #expect(
        throws: FleetError.damaged(object: "head", reason: "its author, host 1, has changed a collection of others")
      ) { try open(collections) }
    }
    for collections in [[by[1]], [by[1], others[0]], [others[0], by[1], by[1]], []] {
      #expect(
        throws: FleetError.damaged(
          object: "head", reason: "its author, host 1, has other collections than the members")
      ) { try open(collections) }
    }
    #expect(others[0].follows(others[0]) && !by[0].follows(others[0]))
  }

  @Test("open a head signed by a member who may write")
  func heads() throws {
    let bytes = try head().sealed(keys, by: identity)
    let opened = try Head(opening: bytes, keys, members: members(), authority: head().authority)
    #expect(try opened == head())
    for index in bytes.indices {
      var bytes = bytes
      bytes[index] ^= 1
      #expect(throws: FleetError.self) {
        try Head(opening: bytes, keys, members: members(), authority: head().authority)
      }
    }
  }

  @Test("refuse a head signed by a reader, a stranger, or another member in the author's name")
  func forgedHeads() throws {
    let reader = try Identity.make(fleet: fleet)
    let members = members([(reader, .reader)])
    func open(by signer: Identity, as author: Identity) throws -> Head {
      var head = try head()
      head.author = author.member
      return try Head(opening: head.sealed(keys, by: signer), keys, members: members, authority: head.authority)
    }
    #expect(throws: FleetError.damaged(object: "head", reason: "its author, host 1, may not write")) {
      try open(by: reader, as: reader)
    }
    #expect(throws: FleetError.damaged(object: "head", reason: "it was not signed by host 0")) {
      try open(by: reader, as: identity)
    }
    let stranger = try Identity.make(fleet: fleet)
    #expect(throws: FleetError.damaged(object: "head", reason: "its author is not a member")) {
      try open(by: stranger, as: stranger)
    }
  }

  @Test("give the fleet key to each member, and only to members, unchanged")
  func memberObjects() throws {
    let other = try Identity.make(fleet: fleet)
    let edition = try MembersEdition(first: members([(other, .reader)]), fleet: fleet, by: identity, time: 1)
    let first = try Authority(first: edition.authorityBytes, digest: edition.authorityBytes.digest)
    for identity in [identity, other] {
      let (keys, opened) = try Members.open(edition.membersBytes, of: first, for: identity)
      #expect(opened == members([(other, .reader)]) && keys.collections.map(\.name) == ["flags", "web"])
    }
    #expect(throws: FleetError.removed) {
      try Members.open(edition.membersBytes, of: first, for: .make(fleet: fleet))
    }
    for index in edition.membersBytes.indices {
      var bytes = edition.membersBytes
      bytes[index] ^= 1
      #expect(throws: FleetError.damaged(object: "members", reason: "it does not match what an admin signed")) {
        try Members.open(bytes, of: first, for: other)
      }
    }
    for index in edition.authorityBytes.indices {
      var bytes = edition.authorityBytes
      bytes[index] ^= 1
      #expect(throws: FleetError.self) { try Authority(first: bytes, digest: edition.authorityBytes.digest) }
      // With the digest that belongs to it, the signature is wrong.
      #expect(throws: FleetError.self) { try Authority(first: bytes, digest: bytes.digest) }
    }
  }

  @Test("give a member the keys and names of its collections, and of others only how many there are")
  func memberAccess() throws {
    let identities = try (0..<3).map { _ in try Identity.make(fleet: fleet) }
    var members = members(identities.map { ($0, .writer) })
    let accesses: [CollectionAccess] = [.some([Self.folders[1]]), .some([]), .some(Set(Self.folders))]
    for (index, access) in accesses.enumerated() { members.members[index + 1].access = access }
    let edition = try MembersEdition(first: members, fleet: fleet, by: identity, time: 1)
    for (identity, names) in zip(identities, [["web"], [], ["flags", "web"]]) {
      let (keys, opened) = try Members.open(edition.membersBytes, of: edition.authority, for: identity)
      #expect(keys.collections.map(\.name) == names && opened.collections == names)
      #expect(opened.shared.map(\.folder) == Self.folders && opened.members.map(\.access) == [.all] + accesses)
    }
    // An admin has all.
    members.members[0].access = accesses[0]
    #expect(throws: FleetError.damaged(object: "members", reason: "a member has an unknown ring")) {
      let edition = try MembersEdition(first: members, fleet: fleet, by: identity, time: 1)
      _ = try Members.open(edition.membersBytes, of: edition.authority, for: identity)
    }
  }

  @Test("form versions, each signed by an admin of the previous one")
  func authorities() throws {
    let writer = try Identity.make(fleet: fleet)
    var all = members([(writer, .writer)])
    let one = try MembersEdition(first: all, fleet: fleet, by: identity, time: 1)
    let digest = try one.authorityBytes.digest
    let first = try Authority(first: one.authorityBytes, digest: digest)
    func second(by signer: Identity, version: UInt32 = 2) throws -> Authority {
      var authority = first
      (authority.version, authority.previous) = (version, digest)
      return try Authority(authority.signed(by: signer), after: first, digest: digest)
    }
    #expect(try second(by: identity).version == 2)
    #expect(throws: FleetError.damaged(object: "authority/0000000002", reason: "its signer was not an admin")) {
      try second(by: writer)
    }
    #expect(
      throws: FleetError.damaged(object: "authority/0000000002", reason: "it does not follow the previous version")
    ) {
      try second(by: identity, version: 3)
    }
    all.members[1].role = .admin
    // A member that makes itself an admin was not one before.
    var forged = first
    (forged.version, forged.previous, forged.admins) = (2, digest, [writer.signingKey])
    #expect(throws: FleetError.damaged(object: "authority/0000000002", reason: "its signer was not an admin")) {
      try Authority(forged.signed(by: writer), after: first, digest: digest)
    }
  }

  // MARK: Logs

  @Test("prove which head was at each place of a log, at any distance, and nothing else")
  func logs() throws {
    func digest(_ index: Int) -> [UInt8] { [UInt8(index >> 8), UInt8(index & 255)] + [UInt8](repeating: 7, count: 30) }
    var log = HeadLog()
    var blocks: [String: [UInt8]] = [:]
    for count in 0..<600 {
      if [0, 1, 15, 16, 17, 255, 256, 257, 272, 599].contains(count) {
        let read = try log.bytes.withUnsafeBytes { bytes in
          var reader = ByteReader(bytes)
          return try HeadLog(&reader)
        }
        #expect(read == log && log.count == count)
        for index in 0..<count {
          let proof = log.proof(at: UInt64(index))
          #expect(proof.count <= 2)
          let shown = blocks.filter { proof.contains($0.key) }
          #expect(try log.has(digest(index), at: UInt64(index), by: shown))
          #expect(try !log.has(digest(index + 1), at: UInt64(index), by: shown))
          for name in proof {
            #expect(try !log.has(digest(index), at: UInt64(index), by: shown.filter { $0.key != name }))
            var changed = shown
            changed[name]?[1 + 32 * ((index + 1) % 16)] ^= 1
            #expect(try !log.has(digest(index), at: UInt64(index), by: changed))
          }
        }
        #expect(try !log.has(digest(count), at: UInt64(count), by: blocks))
        #expect(try !log.has(digest(count), at: .max, by: blocks))
      }
      for block in try log.append(digest(count)) { blocks[block.name] = block.bytes }
    }
    #expect(blocks.keys.sorted().first == "l/0/0000000000000000" && blocks.count == 37 + 2)
  }

  // MARK: Signatures

  @Test("have an author who signed them, alone or in a group, and no other one", arguments: [1, 2, 3, 5, 16, 17, 40])
  func signatures(count: Int) throws {
    let other = try Identity.make(fleet: fleet)
    let reader = try Identity.make(fleet: fleet)
    var records = (0..<count).map { index in
      var record = full
      (record.key, record.author) = ("\(index)", identity.member)
      return record
    }
    try Record.sign(&records, by: identity, in: fleet)
    var check = AuthorCheck(members([(other, .writer), (reader, .reader)]), in: fleet)
    for record in records {
      #expect(record.signature.path.count <= 4)
      try check.check(record, "r")
      var changed = record
      changed.counter += 1
      #expect(throws: FleetError.damaged(object: "r", reason: "it was not signed by its author, host 0")) {
        try check.check(changed, "r")
      }
      changed = record
      changed.author = other.member
      #expect(throws: FleetError.damaged(object: "r", reason: "it was not signed by its author, host 1")) {
        try check.check(changed, "r")
      }
      for author in [reader.member, MemberID(bytes: [UInt8](repeating: 8, count: 16))] {
        changed.author = author
        #expect(throws: FleetError.damaged(object: "r", reason: "its author may not write")) {
          try check.check(changed, "r")
        }
      }
      var elsewhere = AuthorCheck(members(), in: [UInt8](repeating: 9, count: 16))
      #expect(throws: FleetError.self) { try elsewhere.check(record, "r") }
    }
    // A former member's records stay.
    var later = members([(other, .writer)])
    (records[0].author, records[0].signature) = (other.member, RecordSignature())
    var alone = [records[0]]
    try Record.sign(&alone, by: other, in: fleet)
    try later.remove(later.members[1])
    var laterCheck = AuthorCheck(later, in: fleet)
    try laterCheck.check(alone[0], "r")
  }

  // MARK: Limits

  @Test("open at each limit of FLEET.md, and not beyond it, even if a member signed or sealed them")
  func limits() throws {
    let most = 1 << 60
    expectLimit(Head.object, "its numbers are out of range", accepted: [8, most], refused: [most + 1]) { number in
      try openHead { $0.number = UInt64(number) }
    }
    expectLimit(Head.object, "its numbers are out of range", accepted: [0, 7], refused: [8, 9, 16]) { count in
      let log = try log(of: count)
      try openHead { $0.log = log }
    }
    expectLimit(Head.object, "its numbers are out of range", accepted: [0, 7], refused: [8]) { number in
      let collections = try collections(by: identity, horizon: UInt64(number))
      try openHead { $0.collections = collections }
    }
    expectLimit(Head.object, "it has too many pieces", accepted: [0, 1024], refused: [1025]) { count in
      try openHead { $0.pieces = Array(repeating: $0.pieces[0], count: count) }
    }
    let authority = Authority.object(1)
    expectLimit(authority, "its numbers are out of range", accepted: [1, 64], refused: [0, 65]) { count in
      let others = (UInt8(1)...64).map { [UInt8](repeating: $0, count: 32) }
      try openAuthority { $0.admins = Array(([identity.signingKey] + others).prefix(count)) }
    }
    expectLimit(authority, "its numbers are out of range", accepted: [1], refused: [0]) { epoch in
      try openAuthority { $0.epoch = UInt32(epoch) }
    }
    let other = try Identity.make(fleet: fleet)
    expectLimit(Members.object, "it lists a member twice", accepted: [0, 1], refused: [2]) { count in
      try openMembers(Array(repeating: (other, .reader), count: count))
    }
    let name = try web.place(of: "port")
    let setting = FleetKeys.object(name)
    expectLimit(setting, "its counter is out of range", accepted: [1, most], refused: [0, most + 1]) { counter in
      var record = full
      record.counter = UInt64(counter)
      _ = try Record(opening: record.sealed(web).bytes, at: name, keys)
    }
  }

  private func expectLimit(
    _ object: String, _ reason: String, accepted: [Int], refused: [Int],
    sourceLocation: SourceLocation = #_sourceLocation, _ open: (Int) throws -> Void
  ) {
    for number in accepted {
      #expect(throws: Never.self, "\(number)", sourceLocation: sourceLocation) { try open(number) }
    }
    let error = FleetError.damaged(object: object, reason: reason)
    for number in refused {
      #expect(throws: error, "\(number)", sourceLocation: sourceLocation) { try open(number) }
    }
  }

  private func log(of count: Int) throws -> HeadLog {
    var log = HeadLog()
    for index in 0..<count { _ = try log.append([UInt8](repeating: UInt8(index), count: 32)) }
    return log
  }

  private func openHead(_ change: (inout Head) -> Void) throws {
    var head = try head()
    change(&head)
    _ = try Head(opening: head.sealed(keys, by: identity), keys, members: members(), authority: head.authority)
  }

  private func openAuthority(_ change: (inout Authority) -> Void) throws {
    var authority = try MembersEdition(first: members(), fleet: fleet, by: identity, time: 1).authority
    change(&authority)
    let bytes = try authority.signed(by: identity)
    _ = try Authority(first: bytes, digest: bytes.digest)
  }

  private func openMembers(_ others: [(Identity, FleetRole)]) throws {
    let edition = try MembersEdition(first: members(others), fleet: fleet, by: identity, time: 1)
    let authority = try Authority(first: edition.authorityBytes, digest: edition.authorityBytes.digest)
    _ = try Members.open(edition.membersBytes, of: authority, for: identity)
  }

  // MARK: Invitations

  @Test("decode an invitation, and refuse it with any digit mistyped")
  func invitations() throws {
    let seed = try SecretBytes.random(count: 32)
    let invitation = Invitation(
      carrier: "etcd://127.0.0.1:2379/team", expires: nil, fleet: fleet,
      firstAuthority: [UInt8](repeating: 1, count: 32), version: 3, member: identity.member, seed: seed)
    let text = try invitation.text.withUnsafeBytes { Array($0) }
    let read = try Invitation(text: SecretBytes(text + [0x0a]))
    #expect(read.carrier == invitation.carrier && read.fleet == fleet && read.member == identity.member)
    #expect(read.seed.isEqual(to: seed) && read.firstAuthority == invitation.firstAuthority && read.expires == nil)
    #expect(read.version == 3)
    for index in text.indices {
      var wrong = text
      wrong[index] = wrong[index] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
      #expect(throws: FleetError.self) { try Invitation(text: SecretBytes(wrong)) }
      #expect(throws: FleetError.self) { try Invitation(text: SecretBytes(Array(text.prefix(index)))) }
    }
    #expect(!"\(invitation)".contains("coffer-fleet"))
  }

  @Test("decode an invitation with upper-case digits and white space around it")
  func spelledInvitations() throws {
    let text = try invitation(carrier: Array("file:///team".utf8))
    let digits = String(decoding: text, as: UTF8.self).dropFirst("coffer-fleet-1:".count)
    let upper = Array("coffer-fleet-1:\(digits.uppercased())".utf8)
    #expect(upper != text)
    let spellings: [[UInt8]] = [text, upper, [0x20, 0x09] + text + [0x0d, 0x0a], [0x00] + upper + [0x20]]
    for spelling in spellings {
      #expect(try Invitation(text: SecretBytes(spelling)).carrier == "file:///team")
    }
  }

  @Test("refuse an invitation of more than 8,192 digits, or with an address that is not UTF-8")
  func impossibleInvitations() throws {
    func address(of carrier: [UInt8]) throws -> String {
      try Invitation(text: SecretBytes(invitation(carrier: carrier))).carrier
    }
    // The address is all but 112 of the bytes.
    let longest = [UInt8](repeating: UInt8(ascii: "x"), count: 4096 - 112)
    #expect(try address(of: longest).utf8.elementsEqual(longest))
    #expect(throws: FleetError.badInvitation(reason: "it is too long")) {
      try address(of: longest + [UInt8(ascii: "x")])
    }
    for carrier: [UInt8] in [[0xff], Array("file:///".utf8) + [0xc3]] {
      #expect(throws: FleetError.badInvitation(reason: "its address is not UTF-8")) { try address(of: carrier) }
    }
  }

  /// The line of an invitation whose address may be anything.
  private func invitation(carrier: [UInt8]) throws -> [UInt8] {
    var bytes = fleet
    bytes += [UInt8](repeating: 1, count: 32)
    bytes += [UInt8](repeating: 0, count: 4)
    bytes += identity.member.bytes
    bytes += [UInt8](repeating: 5, count: 32)
    bytes += [UInt8](repeating: 0, count: 8)
    bytes += carrier
    bytes += try bytes.digest.prefix(4)
    return Array("coffer-fleet-1:\(bytes.hex)".utf8)
  }
}
