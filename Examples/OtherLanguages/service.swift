// A service in Swift, on the store of those in Python and Node. It needs no child: its values are in its own memory.
//
//   prefs schema load shop.json --application shop
//   prefs set --secret shop/token
//   swift run --package-path .. Shop STORE KEYFILE 8082

import Coffer
import CofferMaintenance
import Foundation
import Hummingbird
import Logging

extension Keys {
  static let greeting = Key("greeting", in: "shop", default: "Hello", limits: .pattern("[A-Z].{0,40}"))
  static let token = Key<Secret?>("token", in: "shop")
}

@main
struct Shop {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let port = Int(arguments[3]) else { fatalError("usage: Shop STORE KEYFILE PORT") }
    let database = try await Database.open(at: arguments[1], key: .keyFile(arguments[2]))
    let settings = try ConnectionProxy(database: database)

    let router = Router()
    router.get("/") { _, _ in "\(settings[.greeting]) from Swift\n" }
    router.post("/greeting") { request, _ -> Response in
      let given = (request.headers[.authorization] ?? "").dropFirst("Bearer ".count)
      // Compared in constant time.
      guard Secret(String(given)) == settings[.token] else { return .text("That is not the token.\n", .unauthorized) }
      let greeting = String(buffer: try await request.body.collect(upTo: 4096))
      do {
        try await settings.set(greeting, for: .greeting, durability: .committed)
        return Response(status: .noContent)
      } catch CofferError.invalidValue(_, let key, let reason) {
        return .text("\(key) must be \(reason).\n", .unprocessableContent)
      }
    }
    router.get("/health") { _, _ -> Response in
      let problem = try database.status().logProblem
      return problem.map { .text("\($0)\n", .serviceUnavailable) } ?? Response(status: .noContent)
    }

    var logger = Logger(label: "shop")
    logger.logLevel = .error
    let server = Application(
      router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)), logger: logger)
    try await server.runService()
    try await settings.close()
  }
}

extension Response {
  static func text(_ text: String, _ status: HTTPResponse.Status) -> Response {
    Response(status: status, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }
}
