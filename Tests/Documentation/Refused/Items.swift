// Metadata that would not be stored; see `Persistable.swift`.

import Coffer
import CofferCompat
import Foundation

struct NeverNil: Persistable {
  // error: metadata must be a variable of an optional type
  static let collection = "items"
  let identifier: Int
  var metadata: Date
}

struct Constant: Persistable {
  // error: metadata must be a variable of an optional type
  static let collection = "items"
  let identifier: Int
  let metadata: Date?
}

struct OnlyRead: Persistable {
  // error: metadata must be a variable of an optional type
  static let collection = "items"
  let identifier: Int
  var metadata: Date? { nil }
}

struct WithoutKey: Persistable {
  // error: type 'WithoutKey' does not conform to protocol 'Persistable'
  static let collection = "items"
  let identifier: Date
}

struct AsItHasToBe: Persistable {
  static let collection = "items"
  let identifier: UUID
  var metadata: Date?
}
