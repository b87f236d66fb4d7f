import Coffer
import CofferStorage
import Foundation

/// The pages of a store without its encryption, to search for what should be sealed in them.
///
/// - Parameter folder: Where they are written to, and removed again.
package func plainPages(of connection: Connection, in folder: String) throws -> Data {
  let file = "\(folder)/pages-\(UUID().uuidString)"
  defer { try? FileManager.default.removeItem(atPath: file) }
  let copy = try SQLiteConnection(plainFileAt: file)
  try connection.perform { try $0.connection.copyPages(to: copy) }
  try copy.close()
  return try Data(contentsOf: URL(fileURLWithPath: file))
}
