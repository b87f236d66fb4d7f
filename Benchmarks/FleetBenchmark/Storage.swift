import Coffer
import CofferFleet
import Foundation
import TestSupport

/// A fleet on S3-compatible storage: moto, a server in Python that takes some ten milliseconds for each request, one at a time.
func measureStorage(_ folder: String, count: Int) async throws {
  guard let server = try await S3Server.common() else { return report("S3", "moto is not installed") }
  let key = S3Credentials(accessKey: server.writer.name, secretKey: SecretBytes(copying: server.writer.secret))
  let carrier = try Fleet.carrier(at: server.address(prefix: "carrier"), credentials: { key })
  var last: [UInt8]?
  var times: [Duration] = []
  for number in 0..<110 {
    let bytes = Array("\(number)".utf8) + [UInt8](repeating: 0, count: 500)
    let start = ContinuousClock.now
    _ = try await carrier.commit(
      [.put(CarrierObject(name: "head", bytes: bytes))], if: CarrierCondition(name: "head", bytes: last))
    if number >= 10 { times.append(start.duration(to: .now)) }
    last = bytes
  }
  report("S3: a commit of the carrier", summary(times))
  for seconds in ["0.1", "1"] {
    try await measureChange(
      at: server.address(prefix: "change-\(seconds)", options: "&poll=\(seconds)"), folder, key, count: 44,
      "S3: a commit to a handler, poll=\(seconds)")
  }
  let (office, web) = (try Host(in: folder), try Host(in: folder))
  try await office.connection.readWrite { transaction in
    for number in 0..<count {
      try transaction.setObject("value \(number)", forKey: "key-\(number)", inCollection: "web")
    }
  }
  let fleet = try await office.create(at: server.address(prefix: "many"), key)
  try await measure("first sync, S3: push", count) { _ = try await fleet.sync() }
  let invitation = try await fleet.invite("web", role: .reader)
  try await measure("first sync, S3: pull", count) { _ = try await web.join(invitation, key) }
}
