#if os(Linux)
  import CSystemCalls
  import Coffer

  #if canImport(FoundationEssentials)
    import FoundationEssentials
  #else
    import Foundation
  #endif

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  /// The key of a store's vault, or the mark of a `prefs lock`, in the user's kernel keyring; see keyrings(7) and user-keyring(7).
  ///
  /// It never reaches a disk, and the kernel drops it when it expires. Every process of the user can read it, just as
  /// it could ask an agent.
  struct KernelKeyring {
    private let description: String
    private let permissions: UInt32

    init(storeID: String) {
      description = "prefs:vault:\(storeID)"
      permissions = Self.readable
    }

    private init(ofLocksOf storeID: String) {
      description = "prefs:locked:\(storeID)"
      permissions = Self.replaceable
    }

    /// The mark of the last `prefs lock` of a store.
    static func ofLocks(storeID: String) -> Self { Self(ofLocksOf: storeID) }

    /// All rights for the possessor; view, read and search for the user; none for others (KEY_POS_ALL, KEY_USR_VIEW,
    /// KEY_USR_READ, KEY_USR_SEARCH of keyutils.h).
    private static let readable: UInt32 = 0x3f0b_0000

    /// For the user also to write it, and to set its time (KEY_USR_WRITE, KEY_USR_SETATTR).
    private static let replaceable: UInt32 = 0x3f2f_0000

    /// The kernel does not say when a key expires, other than to people: the payload begins with the time, in milliseconds
    /// since 1970 as 8 bytes, the lowest first.
    private static let timeSize = 8

    /// Stores `key`.
    ///
    /// - Returns: nil, or the kernel's error: there is no keyring, as in a container, or no room.
    func keep(_ key: SecretBytes, seconds: UInt32) -> Int32? {
      // The user keyring is not possessed, so permissions of keys created there could not be set. The key is created
      // in a keyring that this process possesses, and linked to the user keyring once its permissions are set.
      let end = Int64(Date().timeIntervalSince1970 * 1000) + Int64(seconds) * 1000
      let payload = SecretBytes(count: Self.timeSize + key.count) { buffer in
        buffer.storeBytes(of: end.littleEndian, as: Int64.self)
        key.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: buffer[Self.timeSize...]).copyMemory(from: $0) }
      }
      let added = payload.withUnsafeBytes { bytes in
        coffer_add_key(description, bytes.baseAddress, bytes.count, coffer_process_keyring)
      }
      guard added >= 0 else { return Int32(-added) }
      let id = Int32(added)
      defer { _ = coffer_unlink_key(id, coffer_process_keyring) }
      for step in [
        { coffer_set_key_permissions(id, permissions) },
        { coffer_set_key_timeout(id, seconds) },
        { coffer_link_key(id, coffer_user_keyring) },
      ] {
        let result = step()
        if result < 0 { return Int32(-result) }
      }
      return nil
    }

    /// The key, if it exists and has not expired.
    func key() -> SecretBytes? { payload().map { $0.slice(Self.timeSize..<$0.count) } }

    /// When the key expires; nil if there is none.
    func end() -> Date? {
      payload().map { payload in
        let end = payload.withUnsafeBytes { Int64(littleEndian: $0.loadUnaligned(as: Int64.self)) }
        return Date(timeIntervalSince1970: Double(end) / 1000)
      }
    }

    private func payload() -> SecretBytes? {
      let id = coffer_search_key(coffer_user_keyring, description)
      guard id >= 0 else { return nil }
      return try? FileDescriptor.secret(capacity: 64) { buffer in
        let count = coffer_read_key(Int32(id), buffer.baseAddress, buffer.count)
        // It may have expired in between; one that is longer than the buffer is not ours.
        guard (Self.timeSize + 1...buffer.count).contains(count) else {
          throw Failure(.keyUnavailable, "the key is gone.")
        }
        return count
      }
    }

    /// Makes the kernel wipe the key, if it exists.
    func forget() {
      let id = coffer_search_key(coffer_user_keyring, description)
      if id >= 0 { _ = coffer_invalidate_key(Int32(id)) }
    }
  }

  // MARK: - Marks

  extension KernelKeyring {
    /// How long a mark stays after it was last looked at, in seconds.
    private static let markTime: UInt32 = 86400
    private static let markSize = 16

    /// What distinguishes the mark from that of an earlier `prefs lock`; nil if there is none.
    ///
    /// It stays for another day then.
    var mark: [UInt8]? {
      let id = coffer_search_key(coffer_user_keyring, description)
      if id >= 0 { _ = coffer_set_key_timeout(Int32(id), Self.markTime) }
      return key().map { key in key.withUnsafeBytes { Array($0) } }
    }

    /// Leaves a mark if there is none.
    ///
    /// - Returns: nil, or the kernel's error: there is no keyring, or no room.
    func leaveMark() throws -> Int32? {
      guard mark == nil else { return nil }
      return keep(try .random(count: Self.markSize), seconds: Self.markTime)
    }

    /// Replaces the mark, if there is one, in its place: that needs no more room.
    func replaceMark() throws {
      let id = coffer_search_key(coffer_user_keyring, description)
      guard id >= 0 else { return }
      let payload = try SecretBytes.random(count: Self.timeSize + Self.markSize)
      let result = payload.withUnsafeBytes { coffer_update_key(Int32(id), $0.baseAddress, $0.count) }
      if result >= 0 {
        // An update ends the time.
        _ = coffer_set_key_timeout(Int32(id), Self.markTime)
      } else if coffer_invalidate_key(Int32(id)) < 0 {
        // One that is gone would differ, too.
        throw Failure.system("the mark in the kernel's keyring", errno: Int32(-result))
      }
    }
  }
#endif
