import Coffer
import CofferFleet
import PrefsCommands

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Where the access key of an S3-compatible storage is found: in a file that is named for it, else where AWS's tools look.
struct AccessKey {
  /// The file that is named for it; nil for where AWS's tools look.
  let file: String?

  /// - Parameter file: That of an option.
  init(file: String?) {
    // A service has a folder for credentials also if this is none of them.
    let credential = Environment.variable("CREDENTIALS_DIRECTORY").map { "\($0)/prefs-fleet-password" }
    self.file =
      file ?? Environment.variable("PREFS_FLEET_PASSWORD_FILE")
      ?? credential.flatMap { access($0, F_OK) == 0 ? $0 : nil }
  }

  private static let hint =
    "Name a file with it, in the format of ~/.aws/credentials, with --password-file or PREFS_FLEET_PASSWORD_FILE; or set the credential "
    + "prefs-fleet-password, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."

  /// The file with the key; nil if variables have it.
  var path: String? {
    if let file { return file }
    guard Self.ofVariables == nil else { return nil }
    return Environment.variable("AWS_SHARED_CREDENTIALS_FILE")
      ?? Environment.variable("HOME").map { "\($0)/.aws/credentials" }
  }

  private static var ofVariables: S3Credentials? {
    guard let name = Environment.variable("AWS_ACCESS_KEY_ID"),
      let secret = Environment.variable("AWS_SECRET_ACCESS_KEY")
    else { return nil }
    return S3Credentials(
      accessKey: name, secretKey: SecretBytes(copying: secret),
      sessionToken: Environment.variable("AWS_SESSION_TOKEN").map { SecretBytes(copying: $0) })
  }

  /// - Throws: ``Failure``.
  func read() throws -> S3Credentials {
    if let path { return try read(path) }
    guard let credentials = Self.ofVariables else {
      throw Failure(.keyUnavailable, "the access key of the carrier's storage is missing. \(Self.hint)")
    }
    return credentials
  }

  private func read(_ path: String) throws -> S3Credentials {
    let profile = Environment.variable("AWS_PROFILE") ?? "default"
    let contents: SecretBytes
    do {
      contents = try FileDescriptor.readSecretFile(path, droppingNewline: true)
    } catch let failure as Failure {
      throw Failure(
        .keyUnavailable, "the access key of the carrier's storage cannot be read: \(failure.message) \(Self.hint)")
    }
    guard let credentials = S3Credentials(file: contents, profile: profile) else {
      throw Failure(
        .keyUnavailable,
        "\(path) has no aws_access_key_id and aws_secret_access_key in the section [\(profile)]. \(Self.hint)")
    }
    return credentials
  }
}
