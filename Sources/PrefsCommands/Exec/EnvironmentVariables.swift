import Coffer

#if canImport(Darwin)
  @preconcurrency import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// Settings as environment variables.
struct EnvironmentVariables: Equatable {
  private let prefix: String
  private var values: [String: [UInt8]] = [:]
  /// The names of variables with secret values.
  private var secretNames: Set<String> = []
  /// The entry that each name comes from.
  private var sources: [String: String] = [:]

  init(prefix: String) {
    self.prefix = prefix
  }

  /// - Throws: ``Failure`` when two keys map to the same name, a key maps to no valid name, or a value cannot be in
  ///   an environment.
  mutating func add(_ key: String, in collection: String, _ value: Value, isSecret: Bool) throws {
    let name = VariableName.of(key, prefix: prefix)
    let source = "key \"\(key)\" in \(DisplayText.collection(collection))"
    guard !name.isEmpty else { throw Failure(.format, "\(source) cannot be the name of a variable. Give a --prefix.") }
    if let other = sources.updateValue(source, forKey: name) {
      throw Failure(.conflict, "\(other) and \(source) would both be \(name). Choose one with --only.")
    }
    let bytes = if case .data = value { Array(ValueText.text(value).utf8) } else { ValueText.bytes(value) }
    guard !bytes.contains(0) else {
      throw Failure(
        .format, "the value of \(source) contains NUL, which a variable cannot hold. Choose others with --only.")
    }
    values[name] = bytes
    if isSecret { secretNames.insert(name) }
  }

  /// The secret values.
  var secrets: [(name: String, value: [UInt8])] {
    secretNames.sorted().compactMap { name in values[name].map { (name, $0) } }
  }

  /// The names that change how programs are found and loaded, or what an interpreter runs before its program.
  var namesThatChangeLoading: [String] {
    values.keys.filter { name in
      Self.loadingNames.contains(name) || Self.loadingPrefixes.contains { name.hasPrefix($0) }
    }.sorted()
  }

  /// ld.so(8), dyld(1), iconv(3), sh(1), bash(1), and the manuals of the interpreters, of git(1) and of prefs.
  ///
  /// Names are in upper case here, as all names of settings are; npm(1) reads its own in either case. All of Coffer's change what
  /// a `prefs` that the program starts does, or where it and the library read.
  static let loadingPrefixes = [
    "LD_", "DYLD_", "BASH_FUNC_", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "GIT_CONFIG", "MALLOC_", "NPM_CONFIG_",
    "CARGO_BUILD_", "CARGO_TARGET_", "PREFS_",
  ]
  static let loadingNames: Set<String> = [
    "PATH", "IFS", "ENV", "BASH_ENV", "SHELL", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CDPATH", "FPATH",
    "ZDOTDIR",
    "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH", "TERMINFO", "TERMINFO_DIRS", "TERMCAP",
    "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "SSLKEYLOGFILE",
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONUSERBASE",
    "PYTHONPYCACHEPREFIX", "PYTHONPLATLIBDIR", "PYTHONEXECUTABLE", "PYTHONWARNINGS",
    "PERL5LIB", "PERL5OPT", "PERL5DB", "PERL5SHELL", "PERLLIB", "PERLIO_DEBUG",
    "RUBYLIB", "RUBYOPT", "RUBYSHELL", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE",
    "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "PHPRC", "PHP_INI_SCAN_DIR", "TCLLIBPATH",
    "GUILE_LOAD_PATH",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH",
    "DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "CORECLR_PROFILER", "CORECLR_PROFILER_PATH",
    "MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "JAVA_OPTS", "ANT_OPTS", "ANT_ARGS", "SBT_OPTS",
    "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ERL_LIBS", "R_PROFILE", "R_PROFILE_USER", "R_ENVIRON", "R_ENVIRON_USER",
    "GTK_MODULES", "GTK_PATH", "GIO_EXTRA_MODULES", "GIO_MODULE_DIR", "QT_PLUGIN_PATH",
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_TEMPLATE_DIR", "SSH_ASKPASS", "SUDO_ASKPASS",
    "MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS",
    "RUSTDOC",
    "CARGO_HOME", "GOFLAGS", "GOENV", "GOROOT", "GOTOOLCHAIN",
    "RSYNC_RSH", "RSYNC_CONNECT_PROG", "SVN_SSH", "CVS_RSH", "TAR_OPTIONS", "SSH_SK_PROVIDER",
    "HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
    "PAGER", "MANPAGER", "LESS", "LESSOPEN", "LESSCLOSE", "SYSTEMD_PAGER", "SYSTEMD_EDITOR", "SYSTEMD_LESS",
    "SUDO_EDITOR",
    "PSQL_PAGER", "PSQL_EDITOR", "PSQLRC", "EDITOR", "VISUAL", "BROWSER", "VIMINIT", "EXINIT", "EMACSLOADPATH",
  ]

  /// The entries `NAME=value` of an environment.
  ///
  /// - Parameter addingInherited: Whether to add this process's variables whose names are not taken.
  func block(addingInherited: Bool) -> [[UInt8]] {
    let settings = values.sorted { $0.key < $1.key }.map { Array($0.key.utf8) + [UInt8(ascii: "=")] + $0.value }
    return addingInherited ? inherited() + settings : settings
  }

  private func inherited() -> [[UInt8]] {
    var entries: [[UInt8]] = []
    var next: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = environ
    while let entry = next?.pointee {
      let bytes = Array(UnsafeRawBufferPointer(start: entry, count: strlen(entry)))
      let name = String(decoding: bytes.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
      if values[name] == nil { entries.append(bytes) }
      next = next?.advanced(by: 1)
    }
    return entries
  }
}
