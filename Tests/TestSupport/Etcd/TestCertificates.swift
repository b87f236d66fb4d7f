import Foundation

/// An authority for a test, with the certificate of a server on 127.0.0.1 and one of a client.
package final class TestCertificates: Sendable {
  private let folder: ScratchFolder

  /// Made with openssl(1).
  package init() throws {
    folder = try ScratchFolder()
    try make("ca", "/CN=Test", ["-x509", "-days", "2"])
    try make("server", "/CN=server", signedWith: "subjectAltName=IP:127.0.0.1")
    // etcd's gateway refuses a client with a common name.
    try make("client", "/O=Test", signedWith: "extendedKeyUsage=clientAuth")
  }

  package var authority: String { folder.file("ca.pem") }

  package var serverArguments: [String] {
    [
      "--cert-file", folder.file("server.pem"), "--key-file", folder.file("server.key"), "--trusted-ca-file", authority,
      "--client-cert-auth",
    ]
  }

  package var controlArguments: [String] {
    ["--cacert", authority, "--cert", folder.file("client.pem"), "--key", folder.file("client.key")]
  }

  /// The options of an address.
  package func query(authority: String? = nil, hasClient: Bool = true) -> String {
    let client = hasClient ? "&cert=\(folder.file("client.pem"))&key=\(folder.file("client.key"))" : ""
    return "?ca=\(authority ?? self.authority)\(client)"
  }

  private func make(_ name: String, _ subject: String, _ arguments: [String]) throws {
    try run(
      [
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject, "-keyout",
        folder.file("\(name).key"), "-out", folder.file("\(name).pem"),
      ] + arguments)
  }

  private func make(_ name: String, _ subject: String, signedWith extensions: String) throws {
    try make(name, subject, [])
    try Data("\(extensions)\n".utf8).write(to: URL(filePath: folder.file("\(name).ext")))
    try run([
      "x509", "-req", "-in", folder.file("\(name).pem"), "-CA", authority, "-CAkey", folder.file("ca.key"),
      "-CAcreateserial",
      "-days", "2", "-extfile", folder.file("\(name).ext"), "-out", folder.file("\(name).crt"),
    ])
    try FileManager.default.removeItem(atPath: folder.file("\(name).pem"))
    try FileManager.default.moveItem(atPath: folder.file("\(name).crt"), toPath: folder.file("\(name).pem"))
  }

  private func run(_ arguments: [String]) throws {
    let child = try Child.run("/usr/bin/env", ["sh", "-c", "exec openssl \"$@\" 2>/dev/null", "sh"] + arguments)
    guard child.status == 0 else { throw CocoaError(.fileWriteUnknown) }
  }
}
