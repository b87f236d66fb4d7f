import ArgumentParser

/// The option for values that violate their declarations.
struct DeclaredOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Set a value that is not as its setting is declared, too.")
  var force = false
}
