// As `Transactions.swift`, for what the compiler finds earlier.

import Coffer

func escape(_ connection: Connection) throws {
  let task = try connection.readWrite { (transaction: borrowing _) in
    // error: cannot be captured by an escaping closure
    Task { try transaction.setObject(1, forKey: "k") }  // error: risks causing data races
  }
  print(task)
}
