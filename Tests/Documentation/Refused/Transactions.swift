// What would take a transaction out of its closure; without `borrowing _` Swift 6.3.1 crashes over it.

import Coffer

func escape(_ connection: Connection) throws {
  try connection.readWrite { (transaction: borrowing _) in  // error: cannot be captured by an escaping closure
    let set = { (number: Int) in try transaction.setObject(number, forKey: "k") }
    try set(1)
  }
  try connection.read { (transaction: borrowing _) in  // error: cannot be captured by an escaping closure
    let keys = ["a", "b"].lazy.filter { (try? transaction.hasObject(forKey: $0)) ?? false }
    print(Array(keys))
  }
}

func stay(_ connection: Connection) throws {
  try connection.readWrite { (transaction: borrowing _) in
    func set(_ number: Int) throws { try transaction.setObject(number, forKey: "k") }
    try set(1)
    try [1, 2].forEach { try transaction.setObject($0, forKey: "k") }
  }
  try connection.readWrite { transaction in
    func set(_ number: Int, _ transaction: borrowing ReadWriteTransaction) throws {
      try transaction.setObject(number, forKey: "k")
    }
    try set(1, transaction)
  }
}
