#if os(Linux)
  import Coffer
  import CofferCrypto
  import CofferStorage
  import Foundation

  /// A session in which an allocation of a library fails, in a process of its own.
  package enum AllocationRun {
    package enum Outcome: Sendable {
      /// The session came to its end before.
      case untouched
      /// The library, or a step, took it, and nothing was lost; the error that the step threw, if it did.
      case survived(String?)
      /// OpenSSL goes on refusing what it could not set up for want of memory: nothing more can be done in this process.
      case refused(String)
      /// Something was lost, or said wrongly.
      case failed(String)
    }

    /// Runs the session; the library must not have been used before.
    private static func run(
      _ library: AllocationFaults.Library, in folder: ScratchFolder, number: Int, isLasting: Bool
    ) throws -> Outcome {
      try AllocationFaults.install(in: library)
      let session = FaultSession(in: folder.path, vfs: .standard, keys: keys)
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
      // What the layers below throw, where the session uses them itself.
      case StorageError.inputOutput, StorageError.unsupported, StorageError.sqlite, CryptoError.openSSL: true
      default: false
      }
    }

    // MARK: Processes

    /// Runs sessions one after the other, each in a child of this process, in which neither library has been used.
    ///
    /// - Parameter onOutcome: Gets what became of each, until one was untouched.
    package static func runInChildren(
      _ library: AllocationFaults.Library, numbers: some Sequence<Int>, isLasting: Bool,
      onOutcome: (Int, String) -> Void
    ) {
      for number in numbers {
        var text = "FAILED no folder"
        if let folder = try? ScratchFolder() {
          text = inChild { try run(library, in: folder, number: number, isLasting: isLasting) }
          if text.hasPrefix("refused") {
            let found = inChild { inspect(folder) }
            if found.hasPrefix("FAILED") { text = found }
          }
        }
        onOutcome(number, text)
        if text == "untouched" { return }
      }
    }

    /// Looks at what was left, in a process in which nothing fails.
    private static func inspect(_ folder: ScratchFolder) -> Outcome {
      let session = FaultSession(in: folder.path, vfs: .standard, keys: keys)
      switch StoreInspection(keys: keys, vaultKey: keys[0]).find(at: session.path) {
      case .absent, .whole: return .survived(nil)
      case .broken(let why): return .failed(why)
      }
    }

    /// The same in all of the processes, and made without OpenSSL.
    private static var keys: [KeySource] {
      (0..<4).map { number in
        .key(SecretBytes(count: 32) { $0.copyBytes(from: [UInt8](repeating: UInt8(number), count: 32)) })
      }
    }

    private static func inChild(_ body: () throws -> Outcome) -> String {
      typealias Fork = @convention(c) () -> Int32
      var ends: [Int32] = [0, 0]
      guard let function = dlsym(nil, "fork"), pipe(&ends) == 0 else { return "FAILED no process" }
      let child = unsafeBitCast(function, to: Fork.self)()
      if child == 0 {
        // One that waits for ever is a failure, too; whoever started this process may have blocked the signal.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGALRM)
        sigprocmask(SIG_UNBLOCK, &signals, nil)
        alarm(120)
        let text =
          switch Result(catching: body) {
          case .success(.untouched): "untouched"
          case .success(.survived(let error)): "survived \(error ?? "without an error")"
          case .success(.refused(let why)): "refused \(why)"
          case .success(.failed(let why)): "FAILED \(why)"
          case .failure(let error): "FAILED \(error)"
          }
        var bytes = Array(text.utf8)
        _ = write(ends[1], &bytes, bytes.count)
        _exit(0)
      }
      close(ends[1])
      var text: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 4096)
      while case let count = read(ends[0], &buffer, buffer.count), count > 0 { text += buffer[..<count] }
      close(ends[0])
      var status: Int32 = 0
      waitpid(child, &status, 0)
      return status == 0 ? String(decoding: text, as: UTF8.self) : "FAILED the process ended by signal \(status & 0x7f)"
    }
  }
#endif
