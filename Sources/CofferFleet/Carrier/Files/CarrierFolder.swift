import Coffer
import CofferCrypto

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The files of a ``FileCarrier``; their layout is in its documentation.
struct CarrierFolder: Sendable {
  private let carrier: String
  let path: String

  var lockPath: String { "\(path)/lock" }
  var pendingPath: String { "\(path)/pending" }
  private var objectsPath: String { "\(path)/objects" }
  private var temporaryPath: String { "\(path)/temporary" }

  init(address: CarrierAddress) throws(CarrierError) {
    guard address.scheme == "file", address.hosts.allSatisfy(\.isEmpty), address.user == nil else {
      throw .badAddress(address.text, reason: "the address of a folder must begin with file:/// and name no host")
    }
    guard address.path.count > 1 else { throw .badAddress(address.text, reason: "it does not name a folder") }
    guard address.options.isEmpty else {
      throw .badAddress(address.text, reason: "the address of a folder has no options")
    }
    (carrier, path) = (address.text, address.path)
  }

  // MARK: - Names

  func objectPath(_ name: String) throws -> String {
    "\(shardPath(try Self.shard(of: name)))/\(Self.fileName(of: name))"
  }

  func shardPath(_ shard: String) -> String { "\(objectsPath)/\(shard)" }

  static func fileName(of name: String) -> String { name.replacing("/", with: "_") }

  /// The name of the object in a shard's file; nil for a file that is not the carrier's.
  static func objectName(ofFile file: String, in shard: String) throws -> String? {
    let name = file.replacing("_", with: "/")
    guard CarrierName.isValid(name), try Self.shard(of: name) == shard else { return nil }
    return name
  }

  private static func shard(of name: String) throws -> String { hex(try ObjectDigest(of: name.utf8).bytes[0]) }

  private static func hex(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16)
    return byte < 16 ? "0\(digits)" : digits
  }

  // MARK: - Reading

  /// The existing shards.
  ///
  /// - Throws: ``CarrierError/unreachable(carrier:reason:)`` if the carrier's folder is missing.
  func shards() throws -> [String] {
    if let names = try fileNames(in: objectsPath) {
      return names.filter { name in UInt8(name, radix: 16).map(Self.hex) == name }.sorted()
    }
    try requirePresence()
    return []
  }

  /// The names in a folder; nil if there is no folder.
  func fileNames(in path: String) throws(CarrierError) -> [String]? {
    do {
      return try FolderNames.read(path).compactMap { String(validating: $0, as: UTF8.self) }.filter {
        !$0.hasPrefix(".")
      }
    } catch {
      guard error.errno == ENOENT else { throw failure(error.errno, path) }
      return nil
    }
  }

  /// The object of this name; nil when it is absent.
  func object(_ name: String) throws -> [UInt8]? {
    let path = try objectPath(name)
    switch try file(at: path) {
    case .whole(let object, _): return object
    case .incomplete: throw incomplete(path)
    case .absent:
      try requirePresence()
      return nil
    }
  }

  var hasPendingFile: Bool { access(pendingPath, F_OK) == 0 }

  enum File {
    case absent
    /// The error for an incomplete file: it is being copied, or damaged.
    case incomplete
    case whole([UInt8], ObjectDigest)
  }

  /// The contents of a file after its digest.
  func file(at path: String) throws -> File {
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT { return .absent }
      if errno == ELOOP { return .incomplete }
      throw failure(errno, path)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(errno, path) }
    guard status.isRegularFile, (ObjectDigest.byteCount...PendingCommit.byteLimit).contains(Int(status.st_size))
    else {
      return .incomplete
    }
    let bytes = try bytes(of: descriptor, count: Int(status.st_size), path)
    guard bytes.count == status.st_size else { return .incomplete }
    let object = Array(bytes[ObjectDigest.byteCount...])
    let digest = try ObjectDigest(of: object)
    return digest == ObjectDigest(bytes: Array(bytes[..<ObjectDigest.byteCount])) ? .whole(object, digest) : .incomplete
  }

  private func bytes(of descriptor: Int32, count: Int, _ path: String) throws(CarrierError) -> [UInt8] {
    var code: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, byteCount in
      byteCount = 0
      while byteCount < count {
        let part = read(descriptor, buffer.baseAddress! + byteCount, count - byteCount)
        if part < 0, errno == EINTR { continue }
        if part < 0 { code = errno }
        guard part > 0 else { return }
        byteCount += part
      }
    }
    guard code == 0 else { throw failure(code, path) }
    return bytes
  }

  // MARK: - Writing

  /// Creates the folder if it is missing and its parent exists.
  func make() throws(CarrierError) {
    if try makeFolder(path) { try syncFolder(above: path) }
  }

  /// - Parameter isWhole: Whether the file must have all contents whenever it has the name, also after a power cut.
  func put(_ name: String, _ bytes: [UInt8], isWhole: Bool = false) throws {
    let path = try objectPath(name)
    var isNew = try makeFolder(objectsPath)
    isNew = try makeFolder(Self.folder(above: path)) || isNew
    if isNew { try syncFolder(above: Self.folder(above: path)) }
    try save(bytes, at: path, isWhole: isWhole)
  }

  /// Writes a file atomically.
  ///
  /// Its contents are durable after ``sync(_:)``, or before it has the name if `isWhole`; its name after ``syncFolder(above:)``.
  func save(_ bytes: [UInt8], at path: String, isWhole: Bool = false) throws {
    try makeFolder(temporaryPath)
    let temporary = "\(temporaryPath)/\(try RandomSource.bytes(count: 8).map(Self.hex).joined())"
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o660)
    guard descriptor >= 0 else { throw failure(errno, temporary) }
    do {
      defer { close(descriptor) }
      try writeAll(try ObjectDigest(of: bytes).bytes + bytes, to: descriptor, path)
      if isWhole { try sync(descriptor, path) }
    } catch {
      unlink(temporary)
      throw error
    }
    guard rename(temporary, path) == 0 else {
      let error = failure(errno, path)
      unlink(temporary)
      throw error
    }
  }

  private func writeAll(_ bytes: [UInt8], to descriptor: Int32, _ path: String) throws(CarrierError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress!, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(errno, path) }
      rest = rest.dropFirst(count)
    }
  }

  /// - Returns: Whether it existed.
  @discardableResult
  func remove(_ path: String) throws(CarrierError) -> Bool {
    if unlink(path) == 0 { return true }
    guard errno == ENOENT else { throw failure(errno, path) }
    return false
  }

  func syncFolder(above path: String) throws(CarrierError) { try sync(Self.folder(above: path)) }

  /// Makes a file durable, or the names in a folder.
  func sync(_ path: String) throws(CarrierError) {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(errno, path) }
    defer { close(descriptor) }
    try sync(descriptor, path)
  }

  private func sync(_ descriptor: Int32, _ path: String) throws(CarrierError) {
    // Some mounts do not support it.
    guard fsync(descriptor) == 0 || errno == EINVAL else { throw failure(errno, path) }
  }

  /// Makes the name of an object durable, or that there is none: a killed writer may not have done that.
  func syncName(of object: String) throws {
    let shard = Self.folder(above: try objectPath(object))
    if access(shard, F_OK) == 0 { try sync(shard) }
  }

  /// Removes the leftovers of killed writers; the caller holds the lock.
  func removeTemporaryFiles() throws(CarrierError) {
    for name in try fileNames(in: temporaryPath) ?? [] { try remove("\(temporaryPath)/\(name)") }
  }

  /// - Returns: Whether it was missing.
  @discardableResult
  private func makeFolder(_ path: String) throws(CarrierError) -> Bool {
    if mkdir(path, 0o770) == 0 { return true }
    guard errno == EEXIST else { throw failure(errno, path) }
    return false
  }

  static func folder(above path: String) -> String { String(path[..<path.lastIndex(of: "/")!]) }

  // MARK: - Errors

  private func requirePresence() throws(CarrierError) {
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw errno == ENOENT ? unreachable("there is no folder \(path); is it mounted?") : failure(errno, path)
    }
  }

  func failure(_ code: Int32, _ path: String) -> CarrierError {
    let reason = "\(path): \(String(cString: strerror(code)))"
    return switch code {
    case EACCES, EPERM, EROFS: .refused(carrier: carrier, reason: reason)
    case ENOSPC, EDQUOT: .full(carrier: carrier, reason: reason)
    default: .unreachable(carrier: carrier, reason: reason)
    }
  }

  func unreachable(_ reason: String) -> CarrierError { .unreachable(carrier: carrier, reason: reason) }

  func incomplete(_ path: String) -> CarrierError {
    unreachable("\(path) is incomplete: it is still being copied, or must be copied again")
  }
}
