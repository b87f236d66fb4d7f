import ArgumentParser

/// The options that select the store's or the vault's key slots.
struct SlotOptions: ParsableArguments {
  @Flag(help: "The slots of the vault, which keeps sealed collections, instead of the store's.")
  var vault = false

  @OptionGroup var vaultKey: VaultKeyOptions

  mutating func validate() throws {
    if !vault, !vaultKey.isEmpty { throw ValidationError("What unlocks the vault goes with --vault.") }
  }
}
