import ArgumentParser
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The command `prefs key recovery`.
struct KeyRecoveryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recovery",
    abstract: "Add a recovery key and print it, once.",
    discussion: """
      A random key to write down and keep where a fire, a thief or a dead disk does not reach it together with the store. \
      Type it where a passphrase is asked for. It opens the store; with --vault, the vault of the store, and nothing else. It is \
      printed on a terminal; -o - sends it to standard output instead. It opens no copy that `prefs backup` has made with \
      another key: keep that key with the copies, or make one with `prefs --recovery-key-fd N backup`.

      Examples:
        prefs key recovery
        prefs key recovery --label "in the safe"
        prefs key recovery -o /media/stick/recovery-key.txt
        prefs key recovery -o - | lpr
      """)

  @Option(
    parsing: .unconditional, help: ArgumentHelp("A label for the slot, up to 64 bytes.", valueName: "text"))
  var label: String?

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Write the key to this new file, readable by you only; - for standard output.", valueName: "file"),
    completion: .file())
  var output: String?

  @OptionGroup var whose: SlotOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if output == "" { throw ValidationError("--output needs a path.") }
    try SlotReference.check(label: label)
  }

  mutating func run() throws {
    if output == nil, !Terminal.isTerminal(1) {
      throw Failure(
        .usage,
        "standard output is not a terminal, and anyone who reads the key opens the \(whose.vault ? "vault" : "store"). "
          + "Confirm with -o -, or name a file with -o.")
    }
    // A broken pipe must be an error here, so that no slot is added.
    signal(SIGPIPE, SIG_IGN)
    try CommandSession(common).withSlots(whose) { slots in
      let file = try output.flatMap(NewOutputFile.named)
      do {
        // A slot whose key was never shown would count as a way in.
        try slots.holder.addRecoveryKey(label: label.map(CommandArguments.value) ?? "") { key in
          try NewOutputFile.write(line: key.text, to: file)
        }
      } catch {
        file?.remove()
        throw error
      }
      let use =
        slots.areOfVault
        ? "it opens the vault, once the store itself is open, when nothing else does (prefs unlock --vault-recovery-key-fd). It "
          + "does not open the store, which needs a recovery key of its own. It is not shown again."
        : "it opens the store when nothing else does, but not its vault, if there is one. It is not shown again."
      common.note("added a recovery key. Keep it on paper, away from this machine: \(use)")
    }
  }
}
