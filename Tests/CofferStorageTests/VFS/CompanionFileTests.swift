import CSQLite
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

@Suite("The log or the shared memory beside a store") struct CompanionFileTests {
  @Test("is opened again while other programs exchange it, and refused if they never stop", arguments: [1, 3, Int.max])
  func exchanged(_ times: Int) throws {
    let small = try SmallStore()
    let store = try Store.open(at: small.path, key: small.key)
    let context = try ConnectionContext(store: store, isCreating: false)
    let path = small.path + "-shm"
    try Data().write(to: URL(fileURLWithPath: path))
    var (openings, closings) = (0, 0)
    var identity: FileIdentity?
    let code = CompanionFile(path: path, store: store).open(context, as: &identity) {
      openings += 1
      if openings <= times {
        let other = small.folder.file("other")
        #expect(FileManager.default.createFile(atPath: other, contents: nil, attributes: [.posixPermissions: 0o600]))
        #expect(rename(other, path) == 0)
      }
      return SQLITE_OK
    } close: {
      closings += 1
    }
    #expect((code == SQLITE_OK) == (times < .max))
    #expect(times == .max || identity?.found(at: path) == .same)
    #expect(times < .max ? openings == times + 1 && closings == times : openings == closings)
    if times == .max, case .permissionDenied(path, _)? = context.takeFailure() {} else { #expect(times < .max) }
  }
}
