import ArgumentParser
import Coffer
import CofferMaintenance

/// The command `prefs import`.
struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Read settings from a file of another program.",
    discussion: """
      Sets everything that the file holds in one transaction: all of it, or nothing. Items that are there already and not in \
      the file stay; with --replace they go, in the collections that the file has. The store is made when there is none.

      The format is --format, else what the file's name ends with or its contents begin like. The formats plist, json, yaml, \
      toml and env are those of `prefs export`. Their files hold collections by name; with -c, the settings of that one, as \
      what `defaults export` writes does. With --env, each collection's settings go to that environment of it, which has to be there; \
      one that is an environment by its name keeps it. A secret that an export did not show stays as it is. These formats have no \
      metadata, expiries and due dates: items that are there keep their own. A database sets them with its items, and clears them \
      where it has none; an item of it that has expired is left out.
        plist        XML, binary or the old text form; a URL archived by UserDefaults becomes that URL.
        yaml         One document of the core schema of YAML 1.2, with timestamps and !!binary: no and off are text. Aliases \
      are followed within bounds, merge keys and other tags refused.
        toml         Dates need an offset; a day alone is its midnight in UTC.
        env          Lines NAME=value with shell quotes, export and comments; all values are text, nothing is expanded.
        sqlite       What `prefs export` writes, declarations of applications among it that declare nothing here yet.
        yapdatabase  A database of YapDatabase.
        sqlcipher    One of the last two, encrypted by SQLCipher, whose library has to be installed.
      What is not as it is declared to be is refused as a whole, with all that is wrong, unless --force is given. A name that \
      occurs twice, text that is not UTF-8, and a number that does not fit are exit code 8.

      Examples:
        prefs import settings.yaml
        defaults export org.example.editor - | prefs import - -c editor
        prefs import .env -c service --replace --dry-run
        prefs import settings.sqlite --format sqlite
        prefs import app.db --format sqlcipher --source-passphrase-fd 3 3<passphrase
      """)

  @Argument(help: "The file; - is standard input.", completion: .file())
  var file: String

  @Flag(help: "What becomes of items that the file does not have.")
  var mode: MergeMode = .merge

  @Flag(help: "Change nothing; say what would change.")
  var dryRun = false

  @Flag(help: "Show secrets and the values of sealed collections among what would change.")
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
    var session = try Session(common, in: collection.map { [$0] } ?? [], force: declared.force)
    if file != "-", OutputFile.isPart(file, ofStore: session.path) {
      throw Failure(.usage, "\(file) is the store itself.")
    }
    // Read before a store is created for it.
    var source = try ImportedFile(file, options, collection: collection?.name, noInput: common.noInput)
    if source.isDatabase, !common.collection.isEmpty {
      throw Failure(.usage, "A database names its collections itself; leave out -c. Nothing was changed.")
    }
    if collection == nil, common.hasEnvironment {
      guard !source.isDatabase else {
        throw Failure(
          .usage, "A database names its collections itself, environments among them: leave out --env and PREFS_ENV.")
      }
      let places = try source.collections.map(common.inEnvironmentUnlessOne)
      source = try source.renamingCollections { try common.inEnvironmentUnlessOne($0).name }
      session = try Session(common, in: places, force: declared.force)
    }
    let report = try session.using(try dryRun ? session.openForTrial() : session.openOrCreate()) { database in
      try session.unlocking(database) {
        let bar = ProgressBar(common)
        defer { bar.finish() }
        return try source.importInto(database, mode: mode.ofImport, isDryRun: dryRun) {
          bar.show($0, of: "importing")
        }
      }
    }
    let text = ImportText(report: report, isDryRun: dryRun, redaction: Redaction(reveals: reveal))
    // A dry run and JSON always print, even with `--quiet`.
    if json || dryRun || !common.quiet { try StandardOutput.write(json ? text.json + "\n" : text.summary) }
  }
}
