import Logging
import Synchronization

/// Calls a function with each event of a level, or a higher one.
package struct CallingLogHandler: LogHandler {
  private let handler: @Sendable (LogEvent) -> Void
  package var metadata: Logger.Metadata = [:]
  package var logLevel: Logger.Level

  package init(_ level: Logger.Level = .warning, _ handler: @escaping @Sendable (LogEvent) -> Void) {
    (logLevel, self.handler) = (level, handler)
  }

  package func log(event: LogEvent) { handler(event) }

  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }
}

/// What was logged.
package final class LoggedMessages: Sendable {
  package let all = Mutex<[String]>([])

  package init() {}
}
