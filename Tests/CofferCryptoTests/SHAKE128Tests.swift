import Testing

@Suite("The SHAKE128 of these tests")
struct SHAKE128Tests {
  @Test("gives FIPS 202's value for the empty message")
  func emptyMessage() {
    var shake = SHAKE128()
    #expect(hex(shake.squeeze(32)) == "7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef26")
  }

  @Test("gives the same output in one piece and in many, across blocks")
  func pieces() {
    let message = (0..<500).map { UInt8(truncatingIfNeeded: $0) }
    var whole = SHAKE128()
    whole.absorb(message)
    let expected = whole.squeeze(500)

    var pieces = SHAKE128()
    for byte in message { pieces.absorb([byte]) }
    #expect((0..<100).flatMap { _ in pieces.squeeze(5) } == expected)
  }
}
