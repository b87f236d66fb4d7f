import Foundation
import Testing

extension Tool {
  /// Runs commands of `prefs` and `prefs fleet` that encrypt, decrypt and sign.
  fileprivate func useAlgorithms(_ environment: [String: String]) throws {
    try succeed("set", "a/b", "value", environment: environment)
    #expect(try succeed("get", "a/b", environment: environment) == "value\n")
    try succeed("rotate", environment: environment)
    try succeed("fleet", "create", "f", "--at", "file://" + path("carrier"), "-c", "a", environment: environment)
    try succeed("fleet", "sync", environment: environment)
  }
}

@Suite("An OpenSSL configuration file named by the environment")
struct OpenSSLConfigurationTests {
  @Test("is not read by prefs or by prefs fleet")
  func ignored() throws {
    let tool = try Tool()
    // With this configuration, OpenSSL finds no algorithm.
    let file = try tool.write(
      "openssl.cnf",
      """
      openssl_conf = start
      [start]
      alg_section = properties
      [properties]
      default_properties = fips=yes

      """.utf8)
    let environment = ["OPENSSL_CONF": file]
    try tool.useAlgorithms(environment)
    let openssl = try tool.run(
      ["openssl", "dgst", "-sha256", file], input: [], environment: environment, program: "/usr/bin/env")
    #expect(openssl.code != 0, "this configuration changes nothing here, so the test shows nothing")
  }
}

@Suite("A folder of OpenSSL's modules named by the environment")
struct OpenSSLModulesTests {
  @Test("is not needed by prefs or by prefs fleet")
  func unused() throws {
    let tool = try Tool()
    // Empty: loading any module fails.
    let folder = tool.path("modules")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    let environment = ["OPENSSL_MODULES": folder]
    try tool.useAlgorithms(environment)
    let openssl = try tool.run(
      ["openssl", "dgst", "-provider", "legacy", "-sha256", tool.store], input: [], environment: environment,
      program: "/usr/bin/env")
    #expect(openssl.code != 0, "this variable changes nothing here, so the test shows nothing")
  }
}
