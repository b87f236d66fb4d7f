import ArgumentParser

/// The options for what violates declarations.
struct DeclaredOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Also set a value that does not match its declaration.")
  var force = false

  @OptionGroup var names: UndeclaredOptions

  var undeclared: Bool { names.undeclared }
}

/// The option for keys that are not declared.
package struct UndeclaredOptions: ParsableArguments {
  @Flag(help: "Also set a key that is not declared, in a collection with declared settings.")
  package var undeclared = false

  package init() {}
}
