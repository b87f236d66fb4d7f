import Coffer

/// What a salvage saved, and what it could not save.
public struct SalvageReport: Sendable, Equatable {
  /// The contents of a page.
  public enum Contents: String, Sendable {
    /// Items: their values and metadata.
    case items
    /// Earlier values of items.
    case history
    /// The names of collections, and their history limits.
    case collections
    /// The vault's slots, which open sealed collections.
    case vault
    /// The log of recent commits; a new store starts its own.
    case changeLog = "change log"
    /// Declarations of settings, which programs make again when they open the store.
    case declarations
    /// Structures that can be rebuilt: the schema and the indexes.
    case structure
    /// Nothing; the page is free.
    case nothing
    /// Unknown, because the pages that lead to it are damaged, too.
    case unknown
  }

  /// A run of consecutive damaged pages with the same kind of contents.
  public struct DamagedPages: Sendable, Equatable {
    /// Their page numbers, from 1.
    public let numbers: ClosedRange<Int>
    /// What they held.
    public let contents: Contents
    /// What is wrong with them, for display: they do not authenticate, are missing, or malformed.
    public let reason: String
  }

  /// A part of an item known to be lost.
  public struct LostItem: Sendable, Equatable {
    /// Which part is lost.
    public enum Part: String, Sendable {
      /// The item as a whole.
      case item
      /// Its metadata; its value was saved.
      case metadata
      /// One of its earlier values.
      case earlierValue = "earlier value"
    }

    /// The collection it was in.
    public let collection: String
    /// Its key.
    public let key: String
    /// Which part is lost.
    public let part: Part
    /// The reason, for display.
    public let reason: String
  }

  /// The number of pages in the store.
  public internal(set) var pageCount = 0
  /// Whether the store still says how many pages it had; if not, the file may have lost any number of them at its end.
  public internal(set) var isPageCountKnown = true
  /// The damaged pages, in order.
  public internal(set) var damagedPages: [DamagedPages] = []
  /// The damaged ones of the envelope's two copies, 0 and 1; a single one is no loss.
  package internal(set) var damagedEnvelopeCopies: [Int] = []
  /// The number of log frames that were used because they belong to whole commits.
  package internal(set) var logFrameCount = 0
  /// The number of lost log frames: damaged, or after a damaged one.
  package internal(set) var lostLogFrameCount = 0
  /// The number of collections saved.
  public internal(set) var collectionCount = 0
  /// The number of items saved.
  public internal(set) var itemCount = 0
  /// The number of earlier values saved.
  public internal(set) var historicItemCount = 0
  /// The items that are known to be lost; there may be others on pages of ``Contents/items``.
  public internal(set) var lostItems: [LostItem] = []
  /// The new names, `lost-` and a number, of collections whose names are lost.
  public internal(set) var renamedCollections: [String] = []

  init() {}

  /// The number of damaged pages.
  public var damagedPageCount: Int { damagedPages.reduce(0) { $0 + $1.numbers.count } }

  /// Whether all items and declarations were saved completely.
  public var isComplete: Bool {
    isPageCountKnown && lostLogFrameCount == 0 && lostItems.isEmpty && renamedCollections.isEmpty
      && damagedPages.allSatisfy { $0.contents.isDispensable }
  }
}

extension SalvageReport.Contents {
  /// Whether losing such a page loses no data.
  fileprivate var isDispensable: Bool {
    switch self {
    case .changeLog, .structure, .nothing: true
    case .items, .history, .collections, .vault, .declarations, .unknown: false
    }
  }
}
