import ArgumentParser

/// The word after `--type`: how the text of a value is to be understood.
enum ValueType: String, CaseIterable, ExpressibleByArgument {
  case string, int, double, bool, date, data, url, uuid, array, dict, json, plist, auto
}

/// How the text of data is encoded.
enum DataEncoding {
  case raw, base64, hex
}
