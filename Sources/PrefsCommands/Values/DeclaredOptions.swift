import ArgumentParser

/// What becomes of values that are not as their settings are declared.
struct DeclaredOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Set a value that is not as its setting is declared, too.")
  var force = false
}
