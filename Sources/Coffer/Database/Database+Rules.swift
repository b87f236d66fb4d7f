extension Database {
  /// Sets how the values of a collection are written and read from now on; nil for the standard way.
  ///
  /// Applies to all connections and proxies of this database, not to other processes. Values that are already stored stay as
  /// they are.
  public func setRules(_ rules: CollectionRules?, forCollection collection: String) {
    core.setRules(rules, collection)
  }

  /// Sets how the values of all collections without rules of their own are written and read from now on; nil for the
  /// standard way.
  ///
  /// The scope is the same as for the rules of a collection.
  public func setDefaultRules(_ rules: CollectionRules?) {
    core.setRules(rules, nil)
  }

  /// Sets how objects and metadata of a type are serialized from now on; nil for the same way as other types.
  ///
  /// ```swift
  /// database.setSerializer(propertyLists, for: Theme.self)
  /// ```
  ///
  /// A serializer in the rules of a collection takes precedence over this one, and this one over that of the default rules.
  /// A value of the type inside another value is written with that value. The scope is the same as for the rules of a
  /// collection.
  public func setSerializer<Object: Codable>(_ serializer: Serializer?, for type: Object.Type) {
    core.setSerializer(serializer, for: type)
  }
}
