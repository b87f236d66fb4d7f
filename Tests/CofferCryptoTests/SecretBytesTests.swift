import Testing

@testable import CofferCrypto

#if os(Linux)
  import Foundation
#endif

@Suite("A secret")
struct SecretBytesTests {
  // MARK: - Contents

  @Test("holds the bytes it was made from", arguments: [0, 1, 32, 4096, 10_000])
  func contents(count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let secret = bytes.withUnsafeBytes { SecretBytes(copying: $0) }
    #expect(secret.count == count)
    #expect(secret.exposed == bytes)
  }

  @Test("starts as zeros")
  func zeros() {
    var seen: [UInt8] = []
    let secret = SecretBytes(count: 64) { seen = Array($0) }
    #expect(seen == [UInt8](repeating: 0, count: 64))
    #expect(secret.exposed == seen)
  }

  @Test("has an address even when empty")
  func emptyAddress() {
    let secret = SecretBytes(count: 0) { #expect($0.count == 0) }
    secret.withUnsafeBytes {
      #expect($0.baseAddress != nil)
      #expect($0.count == 0)
    }
  }

  @Test("does not exist if its initialization fails")
  func failedInitialization() {
    struct Refusal: Error {}
    #expect(throws: Refusal.self) { try SecretBytes(count: 32) { _ in throw Refusal() } }
  }

  @Test("can be sliced")
  func slices() {
    let secret = SecretBytes([1, 2, 3, 4, 5])
    #expect(secret.slice(1..<4).exposed == [2, 3, 4])
    #expect(secret.slice(0..<5).exposed == [1, 2, 3, 4, 5])
    #expect(secret.slice(5..<5).exposed == [])
  }

  @Test("is equal only to the same bytes")
  func equality() {
    let secret = SecretBytes([1, 2, 3])
    #expect(secret.isEqual(to: SecretBytes([1, 2, 3])))
    #expect(!secret.isEqual(to: SecretBytes([1, 2, 4])))
    #expect(!secret.isEqual(to: SecretBytes([0, 2, 3])))
    #expect(!secret.isEqual(to: SecretBytes([1, 2])))
    #expect(SecretBytes([]).isEqual(to: SecretBytes([])))
  }

  @Test("drawn at random differs from the next one")
  func random() throws {
    let first = try SecretBytes.random(count: 32)
    let second = try SecretBytes.random(count: 32)
    #expect(first.count == 32)
    #expect(!first.isEqual(to: second))
    #expect(try SecretBytes.random(count: 0).count == 0)
  }

  // MARK: - Redaction

  @Test("prints only its length, however it is printed")
  func redaction() {
    let secret = SecretBytes(Array("correct horse battery staple".utf8))
    let redacted = "<secret: 28 bytes>"
    #expect(secret.description == redacted)
    #expect(secret.debugDescription == redacted)
    #expect("\(secret)" == redacted)
    #expect(String(describing: secret) == redacted)
    #expect(String(reflecting: secret) == redacted)
    #expect("\([secret])" == "[\(redacted)]")
    #expect(String(describing: Optional(secret)) == "Optional(\(redacted))")
  }

  @Test("has no children in a mirror or a dump, even within another value")
  func mirror() {
    struct Credentials {
      let user = "ada"
      let password: SecretBytes
    }
    let secret = SecretBytes(Array("correct horse battery staple".utf8))
    #expect(Mirror(reflecting: secret).children.isEmpty)
    #expect(Mirror(reflecting: secret).superclassMirror == nil)

    var text = ""
    dump(Credentials(password: secret), to: &text)
    #expect(text.contains("<secret: 28 bytes>"))
    #expect(!text.contains("memory"))
    #expect(!text.contains("0x"))
    #expect(!text.contains("horse"))
    // 99, 111, 114, 114: how an array of the same bytes would look. The number alone may stand in the address of a type.
    #expect(!text.contains("- 114\n"))
  }

  // MARK: - Memory

  @Test("is wiped when it is released")
  func wiping() {
    let memory = LockedMemory(byteCount: 5000)
    let bytes = memory.bytes
    bytes.initializeMemory(as: UInt8.self, repeating: 0xa5)
    memory.wipe()
    #expect(bytes.allSatisfy { $0 == 0 })
  }

  @Test("uses ordinary memory when the system maps no more, and is still zeroed and wiped")
  func withoutMapping() {
    let memory = LockedMemory(byteCount: 100, map: { _ in nil })
    let (bytes, isLocked) = (memory.bytes, memory.isLocked)
    #expect(!isLocked)
    #expect(bytes.count == 100)
    #expect(bytes.allSatisfy { $0 == 0 })
    bytes.initializeMemory(as: UInt8.self, repeating: 0xa5)
    memory.wipe()
    #expect(bytes.allSatisfy { $0 == 0 })

    let empty = LockedMemory(byteCount: 0, map: { _ in nil })
    let count = empty.bytes.count
    #expect(count == 0)
  }

  @Test("leaves no bytes for the next secret in its page")
  func reused() {
    for _ in 0..<100 {
      let secrets = (0..<20).map { _ in
        SecretBytes(count: 64) { bytes in
          #expect(bytes.allSatisfy { $0 == 0 })
          bytes.initializeMemory(as: UInt8.self, repeating: 0xa5)
        }
      }
      #expect(Set(secrets.map { $0.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }).count == 20)
    }
  }

  @Test("does not share pages with another secret")
  func ownPages() {
    let secrets = (0..<8).map { SecretBytes([UInt8($0)]) }
    let pages = Set(secrets.map { $0.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } >> 12 })
    #expect(pages.count == secrets.count)
  }

  #if os(Linux)
    @Test("is left out of core dumps and, where allowed, locked", arguments: [0, 32, 10_000])
    func flags(count: Int) throws {
      let secret = SecretBytes(count: count) { _ in }
      let flags = try #require(secret.withUnsafeBytes { try mappingFlags(at: $0.baseAddress) })
      #expect(flags.contains("dd"))
      if !Self.isSanitized { #expect(flags.contains("lo") == secret.isLocked) }
    }

    /// The sanitizers replace `mlock` by nothing that says it succeeded.
    private static let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

    @Test("in a forked child is in no page whose lock stayed with the parent", .enabled(if: !isSanitized))
    func pageOfParent() throws {
      nonisolated(unsafe) var ofParent: SecretBytes? = SecretBytes([1])
      let child = try #require(
        inForkedChild(byteCount: 2000) { buffer in
          ofParent = nil
          let secret = SecretBytes([2])
          buffer[0] = secret.isLocked ? 1 : 0
          let status = open("/proc/self/status", O_RDONLY)
          defer { close(status) }
          return read(status, buffer.baseAddress! + 1, buffer.count - 1) > 0
        })
      // Locks are not inherited (mlock(2)): what is locked in the child, the child has locked.
      let lines = String(decoding: child.dropFirst(), as: UTF8.self).split(separator: "\n")
      let locked = try #require(lines.first { $0.hasPrefix("VmLck:") })
      let kibibytes = try #require(locked.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }.first)
      #expect((kibibytes > 0) == (child[0] == 1))
      withExtendedLifetime(ofParent) {}
    }

    /// The `VmFlags` that `/proc/self/smaps` shows for the mapping around `address`.
    private func mappingFlags(at address: UnsafeRawPointer?) throws -> [Substring]? {
      let address = UInt(bitPattern: address)
      // `String(contentsOfFile:)` ends early on files that claim to be empty, as those in /proc do.
      let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/smaps"))
      let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
      var isInside = false
      for line in text.split(separator: "\n") {
        let words = line.split(separator: " ")
        guard let first = words.first else { continue }
        let bounds = first.split(separator: "-").compactMap { UInt($0, radix: 16) }
        if bounds.count == 2 {
          isInside = (bounds[0]..<bounds[1]).contains(address)
        } else if isInside, first == "VmFlags:" {
          return Array(words.dropFirst())
        }
      }
      return nil
    }
  #endif
}
