/// Every script that is played.
let scripts = [
  Script(
    name: "Changes of each kind, two observers", observers: [.init(name: "a"), .init(name: "b")],
    transactions: [
      .commit([.set(1, to: 1), .set(2, to: 1)]), .commit([.set(1, to: 2), .remove(2), .remove(3)]), .read,
    ]),
  Script(
    name: "An observer of insertions alone",
    observers: [.init(name: "a", action: .insertionsOnly), .init(name: "b")],
    transactions: [.commit([.set(1, to: 1), .set(1, to: 2), .remove(1)])]),
  Script(
    name: "Setting the value that is there", observers: [.init(name: "a")],
    transactions: [.commit([.set(1, to: 1)]), .commit([.set(1, to: 1)])]),
  Script(
    name: "Removing everything", observers: [.init(name: "a")],
    transactions: [.commit([.set(1, to: 1), .set(2, to: 1)]), .commit([.removeAll])]),
  Script(
    name: "An empty transaction", observers: [.init(name: "a")],
    transactions: [.commit([]), .rollback([]), .failure([])]),
  Script(
    name: "A transaction that is rolled back", observers: [.init(name: "a")],
    transactions: [.rollback([.set(1, to: 1)]), .commit([.set(1, to: 1)])]),
  Script(
    name: "A transaction that fails", observers: [.init(name: "a"), .init(name: "b")],
    transactions: [.failure([.set(1, to: 1)]), .commit([.set(1, to: 1)])]),
  Script(
    name: "A veto of the second of three",
    observers: [.init(name: "a"), .init(name: "b", action: .veto), .init(name: "c")],
    transactions: [.commit([.set(1, to: 1)]), .read]),
  Script(
    name: "Each operation for itself", observers: [.init(name: "a")],
    transactions: [
      .separate([.set(1, to: 1), .set(2, to: 1), .savepoint([.set(3, to: 1), .remove(1)], isKept: true)])
    ]),
  Script(
    name: "A savepoint that is kept", observers: [.init(name: "a")],
    transactions: [.commit([.set(1, to: 1), .savepoint([.set(2, to: 1)], isKept: true), .set(3, to: 1)])]),
  Script(
    name: "A savepoint that is rolled back", observers: [.init(name: "a")],
    transactions: [.commit([.set(1, to: 1), .savepoint([.set(2, to: 1)], isKept: false), .set(3, to: 1)])]),
  Script(
    name: "Savepoints in savepoints", observers: [.init(name: "a")],
    transactions: [
      .commit([
        .savepoint(
          [
            .set(1, to: 1), .savepoint([.set(2, to: 1)], isKept: false), .savepoint([.set(3, to: 1)], isKept: true),
          ], isKept: true),
        .savepoint([.savepoint([.set(4, to: 1)], isKept: true)], isKept: false),
      ])
    ]),
  Script(
    name: "A savepoint in a transaction that is rolled back", observers: [.init(name: "a")],
    transactions: [.rollback([.set(1, to: 1), .savepoint([.set(2, to: 1)], isKept: true)])]),
  Script(
    name: "An operation that fails in the middle", observers: [.init(name: "a")],
    transactions: [.commit([.set(1, to: 1), .failAfterSetting([2, 3]), .set(4, to: 1)])]),
  Script(
    name: "A disk that is full", observers: [.init(name: "a")],
    transactions: [.commit([.set(1, to: 1), .fillDisk(2)]), .commit([.set(3, to: 1)])]),
  Script(
    name: "A write after the commit",
    observers: [.init(name: "a", action: .writeAfterCommit(2)), .init(name: "b")],
    transactions: [.commit([.set(1, to: 1)])]),
  Script(
    name: "Hearing of no more changes",
    observers: [.init(name: "a", action: .stop), .init(name: "b")],
    transactions: [.commit([.set(1, to: 1), .set(2, to: 1)]), .failure([.set(3, to: 1), .set(4, to: 1)])]),
  Script(
    name: "Extents",
    observers: [.init(name: "a", extent: .nextTransaction), .init(name: "b", extent: .database)],
    transactions: [.commit([.set(1, to: 1)]), .commit([.set(2, to: 1)])]),
  Script(
    name: "One transaction, which fails", observers: [.init(name: "a", extent: .nextTransaction)],
    transactions: [.failure([.set(1, to: 1)]), .commit([.set(2, to: 1)])]),
  Script(
    name: "An observer that is added in a transaction", observers: [.init(name: "a")],
    transactions: [
      .commit([.set(1, to: 1), .addObserver(.init(name: "b")), .set(2, to: 1)]), .commit([.set(3, to: 1)]),
    ]),
  Script(
    name: "An observer that is removed in a transaction", observers: [.init(name: "a"), .init(name: "b")],
    transactions: [.commit([.set(1, to: 1), .removeObserver("a"), .set(2, to: 1)]), .commit([.set(3, to: 1)])]),
]
