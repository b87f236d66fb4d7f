import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// This machine's TPM 2.0, used by the programs of tpm2-tools.
///
/// They hand objects to one another in files, which are in a folder of this user for that time. None is secret: the key itself goes
/// through pipes alone.
///
/// The parent is made from the TPM's own seed each time, so it is the same until the TPM is cleared, and nothing is kept in the TPM.
/// No policy binds the key to what has booted: an update of the firmware would make it useless, and an encrypted disk is what holds off
/// the thief of a whole machine.
struct TPM {
  /// A key that only the TPM which sealed it can open.
  struct SealedKey: Equatable {
    let publicPart: [UInt8]
    let privatePart: [UInt8]
  }

  private let folder: PrivateFolder

  /// Runs `body` with the TPM, whose parent is made.
  ///
  /// - Parameter store: The store that a key is for.
  /// - Throws: `CofferError.keyUnavailable` when there is no TPM or no program for it.
  static func using<R>(forStoreAt store: String, _ body: (TPM) throws -> R) throws -> R {
    let folder = try PrivateFolder(forObjectsBesides: store)
    defer { folder.wipe() }
    let tpm = TPM(folder: folder)
    try tpm.run("tpm2_createprimary", ["-C", "o", "-g", "sha256", "-G", "ecc", "-c", tpm.file("parent")])
    return try body(tpm)
  }

  /// Seals a key.
  func seal(_ key: SecretBytes) throws -> SealedKey {
    // Without a password there is nothing to guess, so a TPM that is locked against guessing still opens it (noda).
    let attributes = "fixedtpm|fixedparent|userwithauth|noda"
    try run(
      "tpm2_create",
      [
        "-C", file("parent"), "-g", "sha256", "-a", attributes, "-i", "-", "-u", file("public"), "-r", file("private"),
      ], input: key)
    return try SealedKey(
      publicPart: FileDescriptor.readFile(file("public")), privatePart: FileDescriptor.readFile(file("private")))
  }

  /// Runs `body` with the program that prints the key, which works only meanwhile.
  ///
  /// - Throws: `CofferError.keyUnavailable` when another TPM has sealed it.
  func load<R>(_ sealed: SealedKey, _ body: (TPMProgram) throws -> R) throws -> R {
    try FileDescriptor.writeFile(sealed.publicPart, to: file("public"))
    try FileDescriptor.writeFile(sealed.privatePart, to: file("private"))
    try run("tpm2_load", ["-C", file("parent"), "-u", file("public"), "-r", file("private"), "-c", file("key")])
    defer { flush() }
    return try body(TPMProgram("tpm2_unseal", ["-c", file("key")]))
  }

  /// The key.
  func unseal(_ sealed: SealedKey) throws -> SecretBytes {
    try load(sealed) { try $0.output() }
  }

  private func file(_ name: String) -> String { "\(folder.path)/\(name)" }

  private func run(_ program: String, _ words: [String], input: SecretBytes? = nil) throws {
    defer { flush() }
    try TPMProgram(program, words).run(input: input)
  }

  /// Frees the TPM's memory, of three objects, where no resource manager does so when a program ends, as the default device does.
  private func flush() {
    if TPMProgram.deviceIsNamed { try? TPMProgram("tpm2_flushcontext", ["-t"], within: .seconds(5)).run() }
  }
}
