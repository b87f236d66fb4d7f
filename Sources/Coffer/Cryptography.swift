import CofferCrypto

/// What a program that has its process to itself may choose.
package enum Cryptography {
  /// Leaves OpenSSL's configuration file unread, and gives OpenSSL memory that is left out of core dumps, locked and wiped;
  /// both belong to the whole process.
  ///
  /// To be called before anything is opened.
  ///
  /// - Parameter withNamesAndWords: Whether other libraries of the process, as SQLCipher's, may ask for algorithms by the names
  ///   from before OpenSSL 3, and errors of OpenSSL's be told in words; entering both takes time.
  package static func setUpAlone(withNamesAndWords: Bool) {
    OpenSSLLibrary.setUpAlone(withNamesAndWords: withNamesAndWords)
  }
}
