import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Keeps the key of a store's vault from `prefs unlock` to `prefs lock`, or until it expires: in the kernel's keyring
/// if available, else in an agent.
///
/// It is found by the store's id, which is readable without a key, so locking never prompts.
package struct UnlockState {
  private let storeID: String
  private let options: SessionOptions

  package init(storeID: String, options: SessionOptions) {
    self.storeID = storeID
    self.options = options
  }

  private var agent: AgentClient { AgentClient(storeID: storeID) }

  /// Keeps the key for `ttl`.
  func keep(_ key: SecretBytes, for ttl: TimeToLive) throws {
    try forget()
    #if os(Linux)
      if let problem = KernelKeyring(storeID: storeID).keep(key, seconds: ttl.seconds) {
        options.detail("the kernel keyring refused (\(Failure.systemMessage(problem))); starting an agent")
      } else {
        return options.detail("the key of the vault is in the kernel keyring")
      }
    #endif
    try agent.start(with: key, for: ttl)
  }

  /// The key, if it is kept.
  package func key() -> SecretBytes? {
    #if os(Linux)
      if let key = KernelKeyring(storeID: storeID).key() { return key }
    #endif
    return agent.key()
  }

  /// When the kept key expires; nil if none is kept.
  func end() -> Date? {
    #if os(Linux)
      if let end = KernelKeyring(storeID: storeID).end() { return end }
    #endif
    return agent.end()
  }

  /// Wipes the key wherever it is kept.
  func forget() throws {
    #if os(Linux)
      KernelKeyring(storeID: storeID).forget()
    #endif
    try agent.stop()
  }
}
