// What the code in the documents uses without declaring it.

import Coffer

/// The usual names; each block of code has them as constants.
struct Usual: Sendable {
  let path: String
  let bundledPath: String
  let keyPath: String
  let key: KeySource
  let passphrase: SecretBytes
  let database: Database
  let connection: Connection
  let settings: ConnectionProxy
  let preferences: Preferences
}
