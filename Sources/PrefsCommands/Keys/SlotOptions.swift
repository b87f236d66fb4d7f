import ArgumentParser

/// The options that say whose key slots a command is about.
struct SlotOptions: ParsableArguments {
  @Flag(help: "The slots of the vault, which keeps sealed collections, instead of the store's.")
  var vault = false

  @OptionGroup var vaultKey: VaultKeyOptions

  mutating func validate() throws {
    if !vault, !vaultKey.isEmpty { throw ValidationError("What unlocks the vault goes with --vault.") }
  }
}
