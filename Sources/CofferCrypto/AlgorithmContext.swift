internal import COpenSSL

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// An OpenSSL library context with only the algorithms used here.
///
/// Before its first fetch, OpenSSL lists every cipher of its default provider, some 120, and likewise digests, MACs
/// and key derivations; in a short program that is most of OpenSSL's work. This context's own provider, "coffer",
/// offers only ``kinds`` and passes on the default provider's functions and state (`provider-base(7)`), so the same code
/// runs. The default provider itself stays inactive, or OpenSSL would list all of it.
///
/// Algorithms that others need internally are looked up here, too. If one is missing, because a later OpenSSL needs
/// more, the default provider is activated: ``withFallback(_:)``.
final class AlgorithmContext: Sendable {
  /// The algorithms of one kind, by the first of their names in the default provider's lists.
  struct Kind {
    /// `OSSL_OP_…` in core_dispatch.h.
    let operation: Int32
    let names: [StaticString]
  }

  /// The algorithms offered, if this OpenSSL has them, including those that they use internally.
  static let kinds = [
    // PBKDF2 uses SHA-512; Argon2 uses BLAKE2.
    Kind(operation: OSSL_OP_DIGEST, names: ["SHA2-256", "SHA2-512", "BLAKE2B-512", "SHAKE-128"]),
    // The generator uses counter mode and single blocks.
    Kind(operation: OSSL_OP_CIPHER, names: ["AES-256-GCM", "AES-256-ECB", "AES-256-CTR"]),
    Kind(operation: OSSL_OP_MAC, names: ["HMAC", "BLAKE2BMAC"]),
    Kind(operation: OSSL_OP_KDF, names: ["HKDF", "SCRYPT", "PBKDF2", "ARGON2ID"]),
    // Fleets: identities and signatures.
    Kind(operation: OSSL_OP_KEYMGMT, names: ["X25519", "ED25519"]),
    Kind(operation: OSSL_OP_KEYEXCH, names: ["X25519"]),
    Kind(operation: OSSL_OP_SIGNATURE, names: ["ED25519"]),
    // The source of the generators' seeds depends on how OpenSSL was built.
    Kind(operation: OSSL_OP_RAND, names: ["CTR-DRBG", "SEED-SRC", "JITTER"]),
  ]

  /// The `OSSL_LIB_CTX`; never freed, because keys in use refer to it, and thread-safe.
  nonisolated(unsafe) let object: OpaquePointer
  /// A generator from the default provider: a fetched algorithm keeps its provider initialized even while inactive.
  nonisolated(unsafe) private let kept: OpaquePointer

  /// Whether the default provider has become active.
  let isComplete = Lock(false)

  /// - Returns: nil if OpenSSL refuses any step; callers then use the default context.
  init?() {
    guard let object = OSSL_LIB_CTX_new() else {
      ERR_clear_error()
      return nil
    }
    guard let kept = Self.offer(in: object) else {
      ERR_clear_error()
      OSSL_LIB_CTX_free(object)
      return nil
    }
    self.object = object
    self.kept = kept
  }

  // MARK: - Fallback

  /// Runs `body`; if it fails, activates the whole default provider and runs it again.
  static func withFallback<R, Failure: Error>(
    _ context: AlgorithmContext?, _ body: () throws(Failure) -> R
  ) throws(Failure) -> R {
    guard let context, !context.isComplete.withLock({ $0 }) else { return try body() }
    do {
      return try body()
    } catch {
      guard context.complete() else { throw error }
      return try body()
    }
  }

  private func complete() -> Bool {
    isComplete.withLock { isComplete in
      if !isComplete { isComplete = OSSL_PROVIDER_load(object, Self.defaultName) != nil }
      ERR_clear_error()
      return isComplete
    }
  }

  // MARK: - The provider

  static let defaultName = "default"
  private static let name = "coffer"

  /// The lists that our provider returns to OpenSSL, in the order of ``kinds``.
  ///
  /// They point into the default provider's own, which are constants of the library and the same for all contexts.
  private struct Lists {
    let algorithms: [UnsafePointer<OSSL_ALGORITHM>]
    let functions: UnsafePointer<OSSL_DISPATCH>
  }

  /// Held while a context is made, one at a time: a provider's init function is not told which context it is for.
  private static let making = Lock(())
  /// Written once, under `making`, before any provider that reads it.
  nonisolated(unsafe) private static var lists: Lists?
  /// The default provider's state in the context that is being made; protected by `making`.
  nonisolated(unsafe) private static var state: UnsafeMutableRawPointer?

  /// Registers the provider with `object`; returns the algorithm that keeps the default provider initialized.
  private static func offer(in object: OpaquePointer) -> OpaquePointer? {
    var kept: OpaquePointer?
    making.withLock { _ in
      guard let provider = OSSL_PROVIDER_load(object, defaultName) else { return }
      kept = EVP_RAND_fetch(object, "CTR-DRBG", nil)
      if lists == nil { lists = pick(from: provider) }
      state = OSSL_PROVIDER_get0_provider_ctx(provider)
      guard kept != nil, OSSL_PROVIDER_add_builtin(object, name, initialize) == 1,
        OSSL_PROVIDER_load(object, name) != nil, OSSL_PROVIDER_unload(provider) == 1
      else {
        EVP_RAND_free(kept)
        kept = nil
        return
      }
    }
    return kept
  }

  private static let initialize:
    @convention(c) (
      OpaquePointer?, UnsafePointer<OSSL_DISPATCH>?, UnsafeMutablePointer<UnsafePointer<OSSL_DISPATCH>?>?,
      UnsafeMutablePointer<UnsafeMutableRawPointer?>?
    ) -> Int32 = { _, _, functions, state in
      functions?.pointee = AlgorithmContext.lists?.functions
      state?.pointee = AlgorithmContext.state
      return 1
    }

  /// `OSSL_FUNC_provider_query_operation` of `provider-base(7)`.
  private static let query:
    @convention(c) (
      UnsafeMutableRawPointer?, Int32, UnsafeMutablePointer<Int32>?
    ) -> UnsafePointer<OSSL_ALGORITHM>? = { _, operation, mayNotKeep in
      mayNotKeep?.pointee = 0
      guard let index = AlgorithmContext.kinds.firstIndex(where: { $0.operation == operation }) else { return nil }
      return AlgorithmContext.lists?.algorithms[index]
    }

  /// Copies the offered algorithms from the lists of `provider` into memory that is never freed.
  private static func pick(from provider: OpaquePointer) -> Lists {
    let algorithms = kinds.map { kind in
      let list = UnsafeMutablePointer<OSSL_ALGORITHM>.allocate(capacity: kind.names.count + 1)
      var count = 0
      var mayNotKeep: Int32 = 0
      var next = OSSL_PROVIDER_query_operation(provider, kind.operation, &mayNotKeep)
      while let algorithm = next, algorithm.pointee.algorithm_names != nil, count < kind.names.count {
        if kind.names.contains(where: { isName($0, of: algorithm.pointee) }) {
          (list + count).initialize(to: algorithm.pointee)
          count += 1
        }
        next = algorithm + 1
      }
      (list + count).initialize(to: OSSL_ALGORITHM())
      return UnsafePointer(list)
    }
    let functions = UnsafeMutablePointer<OSSL_DISPATCH>.allocate(capacity: 2)
    let query = unsafeBitCast(query, to: (@convention(c) () -> Void).self)
    functions.initialize(to: OSSL_DISPATCH(function_id: OSSL_FUNC_PROVIDER_QUERY_OPERATION, function: query))
    (functions + 1).initialize(to: OSSL_DISPATCH())
    return Lists(algorithms: algorithms, functions: UnsafePointer(functions))
  }

  /// Whether `name` is the first of an algorithm's names, which are separated by colons.
  private static func isName(_ name: StaticString, of algorithm: OSSL_ALGORITHM) -> Bool {
    guard let names = algorithm.algorithm_names else { return false }
    let count = name.utf8CodeUnitCount
    return strncmp(names, name.utf8Start, count) == 0 && [0, CChar(UInt8(ascii: ":"))].contains(names[count])
  }
}
