import Foundation
import Testing

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
    try tool.succeed("set", "a/b", "value", environment: environment)
    #expect(try tool.succeed("get", "a/b", environment: environment) == "value\n")
    try tool.succeed("rotate", environment: environment)
    try tool.succeed(
      "fleet", "create", "f", "--at", "file://" + tool.path("carrier"), "-c", "a", environment: environment)
    try tool.succeed("fleet", "sync", environment: environment)
    let openssl = try tool.run(
      ["openssl", "dgst", "-sha256", file], input: [], environment: environment, program: "/usr/bin/env")
    #expect(openssl.code != 0, "this configuration changes nothing here, so the test shows nothing")
  }
}
