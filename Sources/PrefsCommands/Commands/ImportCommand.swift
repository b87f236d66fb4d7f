import ArgumentParser
import Coffer
import CofferMaintenance

/// The command `prefs import`.
struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import settings from a file.",
    discussion: """
      Sets everything in the file in one transaction. Existing items that are not in the file stay; --replace removes them \
      from the collections in the file. The store is created if it does not exist.

      The format is --format, or else that of the file extension, or else, for JSON, property lists and SQLite files, \
      that of the contents. The formats plist, json, yaml, toml and env are those of `prefs export`. Their files hold collections by name, or with -c the settings \
      of that collection, such as those that `defaults export` writes. With --env, settings go to that environment of each \
      collection, which must exist; collections whose names are of environments, as web@staging, keep them, and these must exist, too, unless the \
      import creates the store. Secrets that an export did \
      not show stay unchanged; those that are missing here are named. These formats have no metadata, expiries or due dates, so existing items keep theirs. A \
      database sets them with its items, or clears them where it has none; expired items in it are skipped.
        plist        XML, binary or the old text form; a URL archived by UserDefaults becomes that URL.
        yaml         One document of the core schema of YAML 1.2, with timestamps, !!binary and merge keys (<<): no and off \
      are text. Aliases are expanded within limits; other tags and %YAML 1.1 are refused.
        toml         Dates need an offset; a day alone is its midnight in UTC.
        env          Lines NAME=value, with export and comments, that python-dotenv, Node's parser and POSIX shells read \
      alike; others are refused with their numbers: a quote or one of \\ $ # ; & | < > inside a word without quotes, escapes in \
      double quotes, text after a closing quote, blanks before a line's comment. What no shell reads is read as by the other two: \
      spaces or parentheses outside of quotes where a shell fails, line ends CR LF, variables of the shell's own. Nothing is \
      expanded. \
      NAME stands for the key that `prefs exec` passes under it, such as db.host for DB_HOST, if that is set or declared. A \
      value is read as the declared type of its setting, or else as the type of the existing value, as by `prefs set`; others \
      are text.
        sqlite       Written by `prefs export`, including declarations of applications that declare nothing here yet.
        yapdatabase  A database of YapDatabase.
        sqlcipher    One of the last two, encrypted with SQLCipher, whose library must be installed.
      If values do not match their declarations, or keys are not declared, the whole import is refused and all problems are \
      listed, unless --force or --undeclared is given. What cannot be held exactly is exit code 8 and changes nothing: duplicate names, text that is not UTF-8, \
      integers beyond 64 bits, dates with more digits than a date has (some seven after the second). A decimal number becomes \
      the nearest double, as everywhere.

      Examples:
        prefs import settings.yaml
        defaults export org.example.editor - | prefs import - -c editor
        prefs import .env -c service --replace --dry-run
        prefs import settings.sqlite --format sqlite
        prefs import app.db --format sqlcipher --source-passphrase-fd 3 3<passphrase
      """)

  @Argument(help: "The file; - is standard input.", completion: .file())
  var file: String

  @Flag(help: "How to handle items that the file does not have.")
  var mode: MergeMode = .merge

  @Flag(help: "Change nothing; show what would change.")
  var dryRun = false

  @Flag(help: "With --dry-run: show secrets and the values of sealed collections.")
  var reveal = false

  @OptionGroup var options: ImportedFileOptions

  @Flag(help: "Print a JSON object.")
  var json = false

  @OptionGroup var declared: DeclaredOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    try options.check(file, descriptors: [common.passphraseFd, common.keyFd])
    if reveal, !dryRun { throw ValidationError("--reveal goes with --dry-run.") }
  }

  mutating func run() throws {
    let collection = try common.namedCollection.map(common.inEnvironment)
    var session = try CommandSession(
      common, in: collection.map { [$0] } ?? [], force: declared.force,
      undeclared: declared.undeclared)
    if file != "-", OutputFile.isPart(file, ofStore: session.path) {
      throw Failure(.usage, "\(file) is the store itself.")
    }
    // Read before a store is created for it.
    var source = try ImportedFile(file, options, collection: collection?.name, noInput: common.noInput)
    if source.isEmpty, mode.ofImport == .replace {
      throw Failure(
        .format,
        "\(file == "-" ? "standard input" : file) has no settings, and --replace would remove everything. To do that, use: "
          + "\(CommandHint.text("unset --all")). Nothing was changed.")
    }
    if source.isDatabase, !common.collection.isEmpty {
      throw Failure(.usage, "A database has names of collections; omit -c. Nothing was changed.")
    }
    if collection == nil, common.hasEnvironment, source.isDatabase {
      throw Failure(.usage, "A database has names of collections and environments: omit --env and PREFS_ENV.")
    }
    // A file that a store is made of may be one that a whole store was exported to.
    if collection == nil, !source.isDatabase, try common.hasEnvironment || session.exists() {
      let places = try source.collections.map(common.inEnvironmentUnlessOne)
      source = try source.renamingCollections { try common.inEnvironmentUnlessOne($0).name }
      session = try CommandSession(
        common, in: places, force: declared.force, undeclared: declared.undeclared)
    }
    let report = try session.using(try dryRun ? session.openForTrial() : session.openOrCreate()) { database in
      try session.unlocking(database) {
        let bar = ProgressBar(common)
        defer { bar.finish() }
        return try source.importInto(database, mode: mode.ofImport, isDryRun: dryRun, force: declared.force) {
          bar.show($0, of: "importing")
        }
      }
    }
    let text = ImportText(report: report, isDryRun: dryRun, redaction: Redaction(reveals: reveal))
    try text.write(asJSON: json, common)
  }
}
