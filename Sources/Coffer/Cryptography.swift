import CofferCrypto

/// What a program that has its process to itself may choose.
package enum Cryptography {
  /// Leaves OpenSSL's configuration file unread, which belongs to the whole process.
  ///
  /// To be called before anything is opened.
  package static func setUpAlone() { OpenSSLLibrary.setUpAlone() }
}
