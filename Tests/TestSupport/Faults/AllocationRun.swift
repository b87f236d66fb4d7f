#if os(Linux)
  import Coffer
  import CofferCrypto
  import CofferStorage
  import Foundation

  /// A session in which an allocation of a library fails, in a separate process.
  package enum AllocationRun {
    package enum Outcome: Sendable {
      /// The session ended before that.
      case untouched
      /// The library, or a step, handled it, and nothing was lost; the error of the step, if any.
      case survived(String?)
      /// OpenSSL keeps failing after it could not allocate its setup: nothing more can be done in this process.
      case refused(String)
      /// Something was lost or misreported.
      case failed(String)
    }

    /// Runs the session; the library must not have been used before.
    package static func run(
      _ library: AllocationFaults.Library, in path: String, number: Int, isLasting: Bool
    ) throws -> Outcome {
      try AllocationFaults.install(in: library)
      let session = FaultSession(in: path, vfs: .standard, keys: keys)
      AllocationFaults.start(at: number, isLasting: isLasting)
      var failure: String?
      for step in FaultSession.Step.allCases {
        do {
          try session.perform(step)
        } catch {
          AllocationFaults.stop()
          guard AllocationFaults.hasFailed else { return .failed("\(step) fails without a fault: \(error)") }
          guard failure == nil else { return .failed("\(step): \(error), after \(failure ?? "")") }
          failure = "\(step): \(error)"
          guard isRight(error) else { return .failed("\(step): the wrong error: \(error)") }
          do {
            try session.perform(step)
          } catch CofferError.unsupported(let reason) where library == .openssl {
            return .refused(reason)
          } catch {
            return .failed("\(failure ?? ""); tried again, it fails: \(error)")
          }
        }
      }
      AllocationFaults.stop()
      guard AllocationFaults.hasFailed else { return .untouched }
      switch StoreInspection(keys: keys, vaultKey: keys[0]).find(at: session.path) {
      case .absent: return .failed("\(failure ?? ""): the store is gone")
      case .broken(let why): return .failed("\(failure ?? ""): \(why)")
      case .whole(let contents, _):
        guard contents.withoutScratch == session.states.last else {
          return .failed("\(failure ?? ""): it holds \(contents)")
        }
        return .survived(failure)
      }
    }

    private static func isRight(_ error: any Error) -> Bool {
      switch error {
      case CofferError.inputOutput, CofferError.unsupported, CofferError.sqlite: true
      case CofferError.unfinished(_, _, let cause): isRight(cause)
      // Errors of lower layers, if the session uses them directly.
      case StorageError.inputOutput, StorageError.unsupported, StorageError.sqlite, CryptoError.openSSL: true
      default: false
      }
    }

    // MARK: Processes

    /// Runs sessions one after the other, each in a separate process in which neither library has been used.
    ///
    /// Processes that are started, not forked: in a forked one, Swift's runtime takes its first thread for the one that
    /// forked, and waits for ever for what two threads want at a time.
    ///
    /// - Parameter onOutcome: Called with the outcome of each, until one was unaffected.
    package static func runInProcesses(
      _ library: AllocationFaults.Library, numbers: some Sequence<Int>, isLasting: Bool,
      onOutcome: (Int, String) -> Void
    ) throws {
      for number in numbers {
        let folder = try ScratchFolder()
        let manner = isLasting ? "lasting" : "once"
        var text = try inProcess(["allocation-session", folder.path, "-", library.rawValue, manner, "\(number)"])
        if text.hasPrefix("refused") {
          let found = try inProcess(["inspect-session", folder.path, "-"])
          if found.hasPrefix("FAILED") { text = found }
        }
        onOutcome(number, text)
        if text == "untouched" { return }
      }
    }

    /// The outcome of the session as text, for the process that runs it.
    package static func describe(_ body: () throws -> Outcome) -> String {
      // Hanging forever is also a failure; the parent may have blocked the signal.
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGALRM)
      sigprocmask(SIG_UNBLOCK, &signals, nil)
      alarm(120)
      return switch Result(catching: body) {
      case .success(.untouched): "untouched"
      case .success(.survived(let error)): "survived \(error ?? "without an error")"
      case .success(.refused(let why)): "refused \(why)"
      case .success(.failed(let why)): "FAILED \(why)"
      case .failure(let error): "FAILED \(error)"
      }
    }

    /// Inspects the remains, in a process in which nothing fails.
    package static func inspect(_ path: String) -> Outcome {
      let session = FaultSession(in: path, vfs: .standard, keys: keys)
      switch StoreInspection(keys: keys, vaultKey: keys[0]).find(at: session.path) {
      case .absent, .whole: return .survived(nil)
      case .broken(let why): return .failed(why)
      }
    }

    /// The same in all of the processes, created without OpenSSL.
    private static var keys: [KeySource] {
      (0..<4).map { number in
        .key(SecretBytes(count: 32) { $0.copyBytes(from: [UInt8](repeating: UInt8(number), count: 32)) })
      }
    }

    /// Runs this program with other arguments; returns its output.
    private static func inProcess(_ arguments: [String]) throws -> String {
      let run = try Child.run("/proc/self/exe", arguments)
      guard run.status == 0 else { return "FAILED the process ended with \(run.status)" }
      return run.text.trimmingCharacters(in: .newlines)
    }
  }
#endif
