import ArgumentParser

/// The option for values that violate their declarations.
struct DeclaredOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Also set a value that does not match its declaration.")
  var force = false
}
