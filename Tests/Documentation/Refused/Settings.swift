// Values of another type than their key.

import Coffer

extension Keys {
  static let size = Key("size", default: 12)
  static let name = Key<String?>("name")
}

func set(_ preferences: Preferences, _ settings: ConnectionProxy) throws {
  preferences[.size] = "twelve"  // error: the value and the key are of different types
  settings[.size] = "twelve"  // error: the value and the key are of different types
  preferences[.name] = 3  // error: the value and the key are of different types
  let name: String = preferences[.size]  // error: the value and the key are of different types
  try preferences.set("twelve", for: .size)  // error: 'Key<Int>'
  print(name)
}

func setRight(_ preferences: Preferences, _ settings: ConnectionProxy) {
  preferences[.size] = 12
  preferences[.size] += 1
  preferences[.name] = "x"
  preferences[.name] = nil
  settings[.size] = preferences[.size] * 2
  let size = preferences[.size]
  print(size)
}
