import Foundation
import TestSupport
import Testing

@testable import CofferFleet

@Suite(
  "A host whose link to the carrier is cut silently", .timeLimit(.minutes(10)),
  .enabled(
    if: Cable.isPossible && EtcdServer.isInstalled, "network namespaces need root and iproute2; etcd is needed, too"))
struct CutLinkTests {
  @Test("keeps working, reports that within a minute, and is in sync once the link is back")
  func silentLoss() async throws {
    let cable = try Cable()
    let etcd = try await EtcdServer(.init(namespace: cable.far))
    let place = "\(etcd.members[0].clientPort)/fleet"
    let (office, lab) = (try ToolHost("office", in: cable.far), try ToolHost("lab", in: cable.near))
    try office.succeed("create", "team", "--at", "etcd://127.0.0.1:\(place)", "-c", "web", "--as", "office")
    let invitation = try office.succeed("invite", "lab", "--role", "writer")
    try lab.succeed("join", "-", "--at", "etcd://\(Cable.farAddress):\(place)", input: invitation)
    let running = try [office, lab].map { try RunningFleet($0) }
    for host in running { try host.say("in step") }

    // Too short for a connection to end.
    try cable.cut()
    try office.set("web/short", "office")
    try lab.set("web/short-too", "lab")
    try cable.mend()
    for host in [office, lab] {
      try await host.await("web/short", "office")
      try await host.await("web/short-too", "lab")
    }

    // Nothing is sent on the connection of the watch: it must notice by itself.
    try cable.cut()
    let start = ContinuousClock.now
    try running[1].say("offline: ")
    #expect(start.duration(to: .now) < .seconds(60))
    try office.set("web/long", "office")
    try lab.set("web/long-too", "lab")
    try office.set("web/both", "1")
    try lab.set("web/both", "2")
    #expect(try lab.get("web/long-too") == "lab" && lab.get("web/long") == nil)
    #expect(try lab.fleet("status", "--json").json()["condition"] as? String == "offline")
    try cable.mend()
    try running[1].say("in step")
    for host in [office, lab] {
      try await host.await("web/long", "office")
      try await host.await("web/long-too", "lab")
      try await host.await("web/both", "2")
    }
    #expect(try lab.fleet("conflicts", "--json").jsonArray().count == 1)
    for host in running { #expect(host.end() == 0) }
  }
}
