import Foundation

extension CraftedStore {
  // MARK: Declarations

  static let declarations: [CraftedStore] = joined(
    damagedDeclarations.map {
      CraftedStore("UPDATE declarations SET declaration = '\($0)' WHERE key = 'port'", finding: "shop/port")
    },
    [
      CraftedStore(
        "UPDATE declarations SET declaration = CAST(x'7bff7d' AS TEXT) WHERE key = 'port'", finding: "shop/port"),
      CraftedStore("UPDATE declarations SET key = 'other' WHERE key = 'port'", finding: "shop/other"),
      CraftedStore("UPDATE declarations SET collection = 'c' WHERE key = 'port'", finding: "c/port"),
      CraftedStore("UPDATE declarations SET application = 'none' WHERE key = 'port'", finding: "none"),
      CraftedStore("DELETE FROM applications", finding: "shop"),
      CraftedStore(
        """
        INSERT INTO applications VALUES ('zoo', NULL, x'');
        INSERT INTO declarations VALUES ('shop', 'port', 'zoo', '{"name":"port","collection":"shop","type":"string"}')
        """, finding: "shop/port"),
      CraftedStore("UPDATE applications SET fingerprint = x'00'", finding: nil),
      CraftedStore("INSERT INTO applications VALUES ('zoo', NULL, x'')", finding: nil),
      CraftedStore("DELETE FROM declarations", finding: nil),
      CraftedStore("DELETE FROM applications; DELETE FROM declarations", finding: nil),
    ])

  /// Declarations of an integer named `port` in `shop` that do not parse.
  private static let damagedDeclarations: [String] = {
    let members: [String] = [
      #""name":7,"type":"int""#, #""name":"port""#, #""name":"port","type":7"#, #""name":"port","type":"integer""#,
      #""name":"port","type":"array<integer>""#,
      #""name":"port","type":"\#(String(repeating: "array<", count: 9))int\#(String(repeating: ">", count: 9))""#,
      #""name":"port","type":"int","default":"a""#, #""name":"port","type":"int","default":0,"limits":[{"minimum":1}]"#,
      #""name":"port","type":"secret","default":"a""#, #""name":"port","type":"int","limits":7"#,
      #""name":"port","type":"int","limits":[7]"#, #""name":"port","type":"int","limits":[{"least":1}]"#,
      #""name":"port","type":"int","limits":[{"minimum":"a"}]"#,
      #""name":"port","type":"int","limits":[{"minimum":9,"maximum":1}]"#,
      #""name":"port","type":"string","limits":[{"minimumCount":-1}]"#,
      #""name":"port","type":"string","limits":[{"minimumCount":2,"maximumCount":1}]"#,
      #""name":"port","type":"int","limits":[{"choices":["a"]}]"#,
      #""name":"port","type":"string","limits":[{"pattern":"["}]"#,
      #""name":"port","type":"int","effect":"never""#, #""name":"port","type":"int","summary":7"#,
      #""name":"port","type":"int","since":[]"#, #""name":"port","type":"int","deprecated":{}"#,
      #""name":"other","type":"int""#,
    ]
    return [
      "", "x", "[]", "{}", "null", String(repeating: "[", count: 5000),
      #"{"name":"port","collection":"c","type":"int"}"#,
    ]
      + members.map { "{\"collection\":\"shop\",\($0)}" }
  }()
}
