#if COFFER_BUS
  import Coffer

  #if canImport(FoundationEssentials)
    import FoundationEssentials
  #else
    import Foundation
  #endif

  extension SecretService {
    /// All properties of an object.
    func properties(of place: ServicePlace) throws -> Properties {
      switch place {
      case .service:
        return [("Collections", .paths(collections.map { ServicePlace.path($0.id) }))]
      case .collection(let collection):
        return [
          ("Items", .paths(collection.elements.map { ServicePlace.path(collection.id, $0) })),
          ("Label", .text(collection.label)), ("Locked", .flag(collection.isLocked)),
          ("Created", .number(Self.seconds(collection.created))),
          ("Modified", .number(Self.seconds(collection.modified))),
        ]
      case .item(let collection, let element):
        let (details, modified) = try collection.details(of: element)
        let attributes = collection.attributes(of: element) ?? ItemAttributes([:])
        return [
          ("Locked", .flag(collection.isLocked)), ("Attributes", .attributes(attributes)),
          ("Label", .text(details.label)),
          // No longer in the specification; earlier versions had the schema there, and clients still ask for it.
          ("Type", .text(attributes[ItemAttributes.schema] ?? "")),
          ("Created", .number(Self.seconds(details.created))), ("Modified", .number(Self.seconds(modified))),
        ]
      case .session, .prompt, .folder: return []
      }
    }

    /// One property; nil if there is none of that name.
    private func property(_ name: String, of place: ServicePlace) throws -> PropertyValue? {
      switch (place, name) {
      // Clients ask for these often, and they need not the work for the others.
      case (.collection(let collection), "Locked"), (.item(let collection, _), "Locked"): .flag(collection.isLocked)
      case (.collection(let collection), "Label"): .text(collection.label)
      case (.item(let collection, let element), "Attributes"):
        collection.attributes(of: element).map { .attributes($0) }
      default: try properties(of: place).first { $0.name == name }?.value
      }
    }

    private static func seconds(_ date: Date) -> UInt64 { UInt64(max(0, date.timeIntervalSince1970)) }

    private func require(_ interface: String, _ place: ServicePlace) throws {
      guard interface.isEmpty || interface == place.interface || interface.hasPrefix("org.freedesktop.DBus.") else {
        throw BusFailure.unknownProperty("of the interface \(interface)")
      }
    }

    func getProperty(_ call: BusMessage, _ place: ServicePlace) throws {
      try call.requireTypes("ss")
      try require(call.text(), place)
      let name = try call.text()
      guard let value = try property(name, of: place) else { throw BusFailure.unknownProperty(name) }
      noteReading(call, place)
      try bus.answer(call) { try value.write(to: $0) }
    }

    func getProperties(_ call: BusMessage, _ place: ServicePlace) throws {
      try call.requireTypes("s")
      let interface = try call.text()
      try require(interface, place)
      let all = interface.hasPrefix("org.freedesktop.DBus.") ? [] : try properties(of: place)
      noteReading(call, place)
      try bus.answer(call) { try $0.write(all) }
    }

    func setProperty(_ call: BusMessage, _ place: ServicePlace) throws {
      try call.requireTypes("ssv")
      try require(call.text(), place)
      let name = try call.text()
      switch (place, name, try call.property()) {
      case (.collection(let collection), "Label", .text(let label)): try collection.setLabel(label)
      case (.item(let collection, let element), "Label", .text(let label)):
        try collection.change(element, ItemChange(label: label))
      case (.item(let collection, let element), "Attributes", .attributes(let attributes)):
        try collection.change(element, ItemChange(attributes: attributes))
      default:
        guard try properties(of: place).contains(where: { $0.name == name }) else {
          throw BusFailure.unknownProperty(name)
        }
        if name == "Label" || name == "Attributes" { throw BusFailure.invalid("\(name) has another type") }
        throw BusFailure.readOnly(name)
      }
      try bus.answer(call) { _ in }
    }
  }
#endif
