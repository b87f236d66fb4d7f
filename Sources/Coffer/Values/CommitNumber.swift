/// The number of a commit: 1 for the first one of a store, and one more for each that follows; 0 stands for the time before.
///
/// A snapshot has the number of the newest commit in it, and a version of an item that of the commit which made it. Numbers tell
/// commits of one history apart; a ``CommitPosition`` also says of which history it is.
public typealias CommitNumber = Int64
