import ArgumentParser

/// The options that select the store's or the vault's key slots.
struct SlotOptions: ParsableArguments {
  @Flag(help: "Use the slots of the vault, for sealed collections, instead of the store's.")
  var vault = false

  @OptionGroup var vaultKey: VaultKeyOptions

  mutating func validate() throws {
    if !vault, !vaultKey.isEmpty { throw ValidationError("Options that unlock the vault need --vault.") }
  }
}
