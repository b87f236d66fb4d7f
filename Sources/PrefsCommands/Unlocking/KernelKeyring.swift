#if os(Linux)
  import CSystemCalls
  import Coffer

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  /// The key of a store's vault in the user's keyring of the kernel; see keyrings(7) and user-keyring(7).
  ///
  /// It never reaches a disk, and the kernel forgets it when its time is over. Every process of the user can read it, as it
  /// could ask an agent.
  struct KernelKeyring {
    private let description: String

    init(storeID: String) {
      description = "prefs:vault:\(storeID)"
    }

    /// All for the possessor; looking at it, reading it and finding it for the user; nothing for anybody else
    /// (KEY_POS_ALL, KEY_USR_VIEW, KEY_USR_READ, KEY_USR_SEARCH of keyutils.h).
    private static let permissions: UInt32 = 0x3f0b_0000

    /// Keeps `key`.
    ///
    /// - Returns: nil, or the error with which the kernel refused: there is no keyring, as in a container, or no room.
    func keep(_ key: SecretBytes, seconds: UInt32) -> Int32? {
      // The keyring of the user is not possessed, and what is made there could not be given permissions: so it is made in
      // one that this process possesses, and linked to when it is as it has to be.
      let added = key.withUnsafeBytes { bytes in
        coffer_add_key(description, bytes.baseAddress, bytes.count, coffer_process_keyring)
      }
      guard added >= 0 else { return Int32(-added) }
      let id = Int32(added)
      defer { _ = coffer_unlink_key(id, coffer_process_keyring) }
      for step in [
        { coffer_set_key_permissions(id, Self.permissions) },
        { coffer_set_key_timeout(id, seconds) },
        { coffer_link_key(id, coffer_user_keyring) },
      ] {
        let result = step()
        if result < 0 { return Int32(-result) }
      }
      return nil
    }

    /// The key, if it is there and its time is not over.
    func key() -> SecretBytes? {
      let id = coffer_search_key(coffer_user_keyring, description)
      guard id >= 0 else { return nil }
      return try? FileDescriptor.secret(capacity: 64) { buffer in
        let count = coffer_read_key(Int32(id), buffer.baseAddress, buffer.count)
        // It may have run out in between; one that is longer than the buffer is none of ours.
        guard (1...buffer.count).contains(count) else { throw Failure(.keyUnavailable, "the key is gone.") }
        return count
      }
    }

    /// Has the kernel wipe the key, if it is there.
    func forget() {
      let id = coffer_search_key(coffer_user_keyring, description)
      if id >= 0 { _ = coffer_invalidate_key(Int32(id)) }
    }
  }
#endif
