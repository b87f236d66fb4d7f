import CofferCrypto

extension Work {
  /// The cipher's share of a page, without SQLite.
  static func pageCost() throws -> String {
    let cipher = try XAES256GCM(key: .random(count: 32))
    let random = RandomSource()
    let page = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 16)
    defer { page.deallocate() }
    page.initializeMemory(as: UInt8.self, repeating: 1, count: 4096)
    let (nonce, tag) = (page + 4048, page + 4072)
    let data = UnsafeRawBufferPointer(start: page, count: 0)
    let count = 20_000
    var seals: [Double] = []
    var opens: [Double] = []
    for _ in 0..<9 {
      seals.append(
        try seconds {
          for _ in 0..<count {
            try random.fill(UnsafeMutableRawBufferPointer(start: nonce, count: 24))
            try cipher.seal(page, count: 4048, into: page, tag: tag, nonce: nonce, additionalData: data)
          }
        })
      let sealed = UnsafeMutableRawPointer.allocate(byteCount: 4048, alignment: 16)
      defer { sealed.deallocate() }
      opens.append(
        try seconds {
          for _ in 0..<count {
            try cipher.open(page, count: 4048, into: sealed, tag: tag, nonce: nonce, additionalData: data)
          }
        })
    }
    func text(_ times: [Double]) -> String { "\((median(times) / Double(count) * 1e8).rounded() / 100) µs" }
    return "seal \(text(seals)), open \(text(opens))"
  }
}
