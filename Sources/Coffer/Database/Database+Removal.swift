import CofferStorage

extension Database {
  /// Removes the store at `path`: its file, its log and its shared memory.
  ///
  /// ```swift
  /// try Database.remove(at: "settings.coffer")
  /// ```
  ///
  /// That takes no key: a store that nobody can open goes, too, and so does a damaged one. Key files stay.
  ///
  /// - Throws: `CofferError.storeNotFound`; `.notAStore` with the file left as it is; `.busy` when the store is open in this
  ///   process or another; `.permissionDenied` or `.inputOutput`.
  public static func remove(at path: String) throws {
    try CofferError.translating { try Store.remove(at: path) }
  }
}
