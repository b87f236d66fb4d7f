import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A run of a program of tpm2-tools.
struct TPMProgram {
  private let words: [String]
  private let patience: Duration

  /// The device that its programs use unless a variable names another; the kernel shares it among programs.
  private static let device = "/dev/tpmrm0"

  /// Whether a variable says which TPM to use, as tpm2-tools read it.
  static var deviceIsNamed: Bool { Environment.variable("TPM2TOOLS_TCTI") != nil }

  /// - Parameters:
  ///   - arguments: Those after the device, which is named: by themselves, its programs would also try emulators, which any user can
  ///     start.
  ///   - patience: How long to wait for the TPM; usually far more than it takes, which makes a key in a second.
  init(_ program: String, _ arguments: [String], within patience: Duration = .seconds(60)) {
    self.patience = patience
    words = [program, "-Q"] + (Self.deviceIsNamed ? [] : ["-T", "device:\(Self.device)"]) + arguments
  }

  /// The words of a shell that runs it.
  var line: String { words.map(ShellWord.executed).joined(separator: " ") }

  /// Runs it.
  ///
  /// - Parameter input: What it reads, less than a pipe holds.
  func run(input: SecretBytes? = nil) throws {
    try finish(input: input) { _ in }
  }

  /// Runs it, and returns the secret that it prints.
  func output() throws -> SecretBytes {
    try finish { descriptor in
      try FileDescriptor.readSecret(descriptor, named: words[0], within: patience, droppingNewline: false)
    }
  }

  /// - Parameter read: Reads its output.
  private func finish<R>(input: SecretBytes? = nil, _ read: (Int32) throws -> R) throws -> R {
    let (output, messages) = (try PipePair(), try PipePair())
    defer { for pipe in [output, messages] { pipe.closeReading() } }
    let child: pid_t
    do {
      defer { for pipe in [output, messages] { pipe.closeWriting() } }
      child = try start(input: input, output: output.writing, messages: messages.writing)
    }
    let result = Result { try read(output.reading) }
    // A program that hangs keeps this open.
    let text = try? FileDescriptor.readAll(messages.reading, named: words[0], within: patience)
    if text == nil { kill(child, SIGKILL) }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 {
      guard errno == EINTR else { throw unavailable("\(words[0]) was lost (\(Failure.systemMessage(errno)))") }
    }
    guard let text else { throw unavailable("the TPM did not answer within \(patience)") }
    guard status == 0 else { throw failure(status, String(decoding: text, as: UTF8.self)) }
    return try result.get()
  }

  private func start(input: SecretBytes?, output: Int32, messages: Int32) throws -> pid_t {
    let given = try input.map { secret in
      let pipe = try PipePair()
      // The pipe holds it all, and is still open for reading here.
      defer { pipe.closeWriting() }
      try secret.withUnsafeBytes { try FileDescriptor.writeAll($0, to: pipe.writing, named: words[0]) }
      return pipe
    }
    defer { given?.closeReading() }
    // It finds the program in PATH.
    return try ChildProcess.start("/usr/bin/env", ["env"] + words) { actions, _ in
      if let given {
        posix_spawn_file_actions_adddup2(&actions, given.reading, 0)
      } else {
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
      }
      posix_spawn_file_actions_adddup2(&actions, output, 1)
      posix_spawn_file_actions_adddup2(&actions, messages, 2)
    }
  }

  private func failure(_ status: Int32, _ text: String) -> CofferError {
    if status == 127 << 8 {
      return unavailable("\(words[0]) is not installed; on Debian and Ubuntu it is in the package tpm2-tools")
    }
    if !Self.deviceIsNamed {
      if access(Self.device, F_OK) != 0 {
        return unavailable("this machine has no TPM 2.0: there is no \(Self.device)")
      }
      if access(Self.device, R_OK | W_OK) != 0 {
        return unavailable("this user may not use \(Self.device); on Debian and Ubuntu the group tss may")
      }
    }
    // TPM_RC_INTEGRITY of the sealed part.
    if words[0] == "tpm2_load", text.lowercased().contains("1df)") {
      return unavailable("another TPM has sealed it, or this one was cleared since, or its file was damaged")
    }
    let errors = text.split(separator: "\n").filter { $0.hasPrefix("ERROR: ") && !$0.contains("Unable to run") }
    let last = errors.last.map { ": \(DisplayText.escapingControls(String($0.dropFirst("ERROR: ".count))))" }
    return unavailable("\(words[0]) failed\(last ?? "")")
  }

  private func unavailable(_ reason: String) -> CofferError { .keyUnavailable(reason: reason) }
}
