import Coffer

/// What a salvage has saved, and what it could not.
public struct SalvageReport: Sendable, Equatable {
  /// What a page of a store holds.
  public enum Contents: String, Sendable {
    /// Items: their values and metadata.
    case items
    /// Earlier values of items.
    case history
    /// The names of collections, and how much history they keep.
    case collections
    /// What opens sealed collections.
    case vault
    /// What the last commits have changed; a new store begins a new one.
    case changeLog = "change log"
    /// What can be made anew: the schema, the indexes.
    case structure
    /// Nothing; the page is free.
    case nothing
    /// Unknown, because what leads to the page is damaged, too.
    case unknown
  }

  /// Damaged pages, one behind the other, that held the same.
  public struct DamagedPages: Sendable, Equatable {
    /// Their numbers, from 1.
    public let numbers: ClosedRange<Int>
    /// What they held.
    public let contents: Contents
    /// What is wrong with them, for people: that they do not authenticate, are missing, or malformed.
    public let reason: String
  }

  /// What is known to be lost of an item.
  public struct LostItem: Sendable, Equatable {
    /// Which part is lost.
    public enum Part: String, Sendable {
      /// The item as a whole.
      case item
      /// Its metadata; its value was saved.
      case metadata
      /// An earlier value of it.
      case earlierValue = "earlier value"
    }

    /// The collection it was in.
    public let collection: String
    /// Its key.
    public let key: String
    /// Which part is lost.
    public let part: Part
    /// Why, for people.
    public let reason: String
  }

  /// How many pages the store had.
  public internal(set) var pageCount = 0
  /// The damaged ones, in order.
  public internal(set) var damagedPages: [DamagedPages] = []
  /// Which of the envelope's two copies, 0 and 1, are damaged; one is no loss.
  public internal(set) var damagedEnvelopeCopies: [Int] = []
  /// How many frames of the log count, for they belong to whole commits.
  public internal(set) var logFrameCount = 0
  /// How many frames of the log are lost, damaged or behind a damaged one.
  public internal(set) var lostLogFrameCount = 0
  /// How many collections were saved.
  public internal(set) var collectionCount = 0
  /// How many items were saved.
  public internal(set) var itemCount = 0
  /// How many earlier values were saved.
  public internal(set) var historicItemCount = 0
  /// The items that are known to be lost; there may be others on pages of ``Contents/items``.
  public internal(set) var lostItems: [LostItem] = []
  /// The collections whose names are lost, as they are called now: `lost-` and a number.
  public internal(set) var renamedCollections: [String] = []

  init() {}

  /// How many pages are damaged.
  public var damagedPageCount: Int { damagedPages.reduce(0) { $0 + $1.numbers.count } }

  /// Whether all items were saved, with all that belongs to them.
  public var isComplete: Bool {
    lostLogFrameCount == 0 && lostItems.isEmpty && renamedCollections.isEmpty
      && damagedPages.allSatisfy { $0.contents.isDispensable }
  }
}

extension SalvageReport.Contents {
  /// Whether a store loses nothing with such a page.
  fileprivate var isDispensable: Bool {
    switch self {
    case .changeLog, .structure, .nothing: true
    case .items, .history, .collections, .vault, .unknown: false
    }
  }
}
