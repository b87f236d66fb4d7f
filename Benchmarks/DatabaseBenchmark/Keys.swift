import Coffer
import Foundation

/// What keys cost: slots, opening, re-encryption.
func measureKeys(megabytes: Int, rounds: Int) throws {
  try withStore { path, key, _ in
    let phrase = Array("correct horse battery staple".utf8)
    let passphrase = KeySource.passphrase(phrase.withUnsafeBytes(SecretBytes.init(copying:)))
    var rows: [(name: String, milliseconds: [Double])] = []
    func measure(_ name: String, _ body: () throws -> Void) rethrows {
      let start = nanoseconds()
      try body()
      let time = Double(nanoseconds() - start) / 1e6
      if let index = rows.firstIndex(where: { $0.name == name }) {
        rows[index].milliseconds.append(time)
      } else {
        rows.append((name, [time]))
      }
    }

    let database = try Database.create(at: path, key: key)
    try database.makeConnection().readWrite { transaction in
      for number in 0..<megabytes * 500 {
        try transaction.setObject(Data(repeating: UInt8(number & 255), count: 1900), forKey: "\(number)")
      }
    }
    for _ in 0..<rounds {
      try measure("add a slot for a random key") { try database.addSlot(.key(.random(count: 32))) }
      try measure("add a slot for a passphrase (scrypt, 128 MiB)") { try database.addSlot(passphrase) }
      try database.removeSlot(1)
      try measure("remove a slot") { try database.removeSlot(2) }
    }
    try database.addSlot(passphrase)
    let connection = try database.makeConnection()
    for _ in 0..<max(1, rounds / 3) {
      try measure("rotate \(megabytes) MB") { try database.rotate() }
      try connection.readWrite { try $0.setObject(1, forKey: "k") }
    }
    try database.close()
    for _ in 0..<rounds {
      try measure("open by key file, first read, close") { try readOnce(path, key) }
      try measure("open by passphrase, first read, close") { try readOnce(path, passphrase) }
    }
    print("| keys | milliseconds: median (lowest–highest) |\n| --- | --- |")
    for row in rows {
      let times = row.milliseconds.sorted()
      print("| \(row.name) | \(String(format: "%.1f (%.1f–%.1f)", median(times), times[0], times[times.count - 1])) |")
    }
  }
}

/// What sealing adds to a value of 100 bytes: one set in a transaction of many, one read of it.
func measureSealing(rounds: Int) throws {
  try withStore { path, key, _ in
    let database = try Database.create(at: path, key: key)
    try database.vault.create(key: .key(.random(count: 32)))
    try database.seal(collection: "sealed")
    let connection = try database.makeConnection()
    // Each read goes to the table.
    try connection.setCacheLimit(0)
    let count = 5000
    var times: [String: [Double]] = [:]
    for round in 0..<rounds {
      let value = Data(repeating: UInt8(round & 255), count: 100)
      for collection in round.isMultiple(of: 2) ? ["plain", "sealed"] : ["sealed", "plain"] {
        var start = nanoseconds()
        try connection.readWrite { transaction in
          for number in 0..<count { try transaction.setObject(value, forKey: "\(number)", inCollection: collection) }
        }
        times["set, \(collection)", default: []].append(Double(nanoseconds() - start) / Double(count) / 1000)
        start = nanoseconds()
        try connection.read { transaction in
          for number in 0..<count {
            let read: Data? = try transaction.object(forKey: "\(number)", inCollection: collection)
            precondition(read == value)
          }
        }
        times["read, \(collection)", default: []].append(Double(nanoseconds() - start) / Double(count) / 1000)
      }
    }
    print("| a value of 100 bytes | µs, median | sealed beside plain |\n| --- | --- | --- |")
    for work in ["set", "read"] {
      guard let plain = times["\(work), plain"], let sealed = times["\(work), sealed"] else { continue }
      let ratio = median(zip(sealed, plain).map { $0 / $1 })
      print("| \(work) | \(String(format: "%.2f → %.2f | %.2f", median(plain), median(sealed), ratio)) |")
    }
  }
}

private func readOnce(_ path: String, _ key: KeySource) throws {
  let database = try Database.open(at: path, key: key)
  let isThere = try database.makeConnection().read { try $0.hasObject(forKey: "1") }
  precondition(isThere)
  try database.close()
}
