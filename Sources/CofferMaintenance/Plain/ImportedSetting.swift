import Coffer

/// A setting as a file of another format has it.
package struct ImportedSetting {
  package let collection: String
  package let key: String
  /// Its value; nil where the file only shows that there is one, as it does of a secret.
  package let value: Value?

  package init(collection: String, key: String, value: Value?) {
    self.collection = collection
    self.key = key
    self.value = value
  }
}
