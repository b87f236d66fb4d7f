import CofferFleet
import Testing

@Suite("A change of a carrier's object")
struct CarrierChangeTests {
  @Test("names the object that it puts or removes")
  func names() {
    #expect(CarrierChange.put(CarrierObject(name: "head", bytes: [1])).name == "head")
    #expect(CarrierChange.remove(name: "head").name == "head")
  }
}
