import CofferStorage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

extension Database {
  // MARK: Without a key

  /// The slots of the store at `path`.
  ///
  /// It needs no key, so the result is not authenticated.
  ///
  /// - Throws: `CofferError.storeNotFound`, `.notAStore`, `.newerFormat`, `.damaged` or `.permissionDenied`.
  public static func slots(at path: String) throws -> [SlotInfo] {
    try CofferError.translating { try Store.peekEnvelope(at: path).slots.map(SlotInfo.init) }
  }

  /// The random ID that the store at `path` got when it was created, in hexadecimal.
  ///
  /// It needs no key, so the result is not authenticated.
  ///
  /// - Throws: As `slots(at:)`.
  package static func storeID(at path: String) throws -> String {
    try CofferError.translating { try HexText.text(Store.peekEnvelope(at: path).storeID) }
  }

  /// The user whom the store at `path` belongs to; nil if that is this one, or unknown.
  package static func otherOwner(ofStoreAt path: String) -> Int? {
    guard let user = try? Store.owner(at: path).user, user != geteuid() else { return nil }
    return Int(user)
  }

  /// The copies of earlier states that Coffer has made beside the store at `path`: of stores that a restore replaced, and of
  /// logs that lost frames.
  package static func copies(besides path: String) -> [String] { StoreCopies.besides(path) }

  /// What programs that make stores in the folder of `path` have not finished, and killed ones never will.
  package static func unfinishedCopies(besides path: String) -> [String] { StoreCopies.unfinished(besides: path) }

  // MARK: With a key

  /// - Throws: `CofferError.unsupported` for a store in memory; `.closed`.
  package func storeOnDisk() throws -> Store {
    try checkUsable()
    guard case .file(let store) = backing else {
      throw CofferError.unsupported(reason: "an in-memory store has no file to inspect")
    }
    return store
  }

  // MARK: Removal

  /// Removes the store at `path`: its file, its log and its shared memory.
  ///
  /// ```swift
  /// try Database.remove(at: "settings.coffer")
  /// ```
  ///
  /// It needs no key: a damaged store, or one whose keys are lost, is removed too. The standard anchor forgets it; key files
  /// stay.
  ///
  /// - Throws: `CofferError.storeNotFound`; `.notAStore` (the file is left alone); `.unsupported` when the file has another
  ///   name, under which the store would stay; `.busy` when the store is open in this
  ///   process or another; `.permissionDenied` or `.inputOutput`.
  public static func remove(at path: String) throws {
    let store = try CofferError.translating { try Store.remove(at: path) }
    Freshness.automatic.anchor(ofStoreAt: store.path, user: store.user)?.keep(nil, ofStoreAt: store.path)
  }
}
