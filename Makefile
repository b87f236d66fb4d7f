# Every command a person needs. `make help` lists them.

SWIFT ?= swift
export SWIFT
ROUNDS ?= 7
SOURCES = Sources Tests Benchmarks Examples Package.swift

.DEFAULT_GOAL := help
.PHONY: help deps test-deps build release install uninstall package dist reproducible test-dist test-keyring test-package test-static demo test test-install models attack examples acceptance docs sanitize soak fuzz load \
  bench bench-configuration api interface lint format clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | while IFS=: read -r target rest; do \
	  printf '  make %-14s %s\n' "$$target" "$${rest#*## }"; done

deps: ## Install the system libraries, where they are missing
	@Scripts/install-deps.sh

test-deps: deps
	@Scripts/install-deps.sh tests
	@Tests/S3/prepare >/dev/null

build: deps ## Build everything, for debugging
	$(SWIFT) build

export STATIC

release: deps ## Build the tool as it is meant to be used (STATIC=1 with all libraries inside)
	@Scripts/install-programs.sh python3
	@Scripts/build-release.sh

# With BINARY set, nothing is built, as for `sudo make install BINARY=.build/release/prefs` after `make release`.
BINARY = .build/release/prefs
export DESTDIR PREFIX

install: ## Install the tool, its manual page and completions (PREFIX=/usr/local DESTDIR= BINARY=)
ifeq ($(origin BINARY),file)
	@$(MAKE) release
endif
	@Scripts/install.sh install '$(BINARY)'

package: deps ## Make a Debian package of the tool (BINARY=)
	@Scripts/install-programs.sh dpkg-shlibdeps=dpkg-dev lintian
ifeq ($(origin BINARY),file)
	@$(MAKE) release
endif
	@package=$$(Scripts/package.sh '$(BINARY)' .build/package) && lintian --fail-on error,warning "$$package" && echo "$$package"

# BINARY and STATIC_BINARY name a tool that is built already, with the system's libraries and with all inside.
dist: deps ## Make the files of a release in dist/ (SIGNING_KEY= of signify; without one, unsigned)
	@Scripts/install-programs.sh python3 curl=curl,ca-certificates dpkg-shlibdeps=dpkg-dev $(if $(SIGNING_KEY),signify-openbsd)
	@Scripts/dist dist

# Takes as long as two releases, or as one with FOLDER.
reproducible: deps ## Make a release in two folders, and say what differs (FOLDER=dist for one, and the one that is there)
	@Scripts/reproducible $(FOLDER)

uninstall: ## Remove what install put there (PREFIX=/usr/local DESTDIR=)
	@Scripts/install.sh uninstall

demo: deps ## Build the tool and take a short tour with it
	@Scripts/build-release.sh
	@Scripts/demo.sh "$$($(SWIFT) build -c release --show-bin-path)/prefs"

# Swift Testing starts all tests at once by default: one that waits for a lock or an answer for seconds would then get a thread
# back only after minutes, when its time is up. Swift 6.2 does not have the option.
WIDTH = $(if $(findstring maximum-parallelization-width,$(shell $(SWIFT) test --help-hidden)),\
  --experimental-maximum-parallelization-width $$((4 * $$(getconf _NPROCESSORS_ONLN))))

# Without --skip-build, `swift test` rebuilds everything with different flags.
test: test-deps lint ## Lint, build with warnings as errors, run all tests and the examples
	Tests/Lint/test_floors.py
	Tests/Lint/test_unchecked.py
	Tests/Lint/test_words.py
	COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --build-tests --enable-all-traits
	Scripts/public-interface --check "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	@rm -f .build/tests-swift-testing.xml
	COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) test --enable-all-traits --skip-build $(WIDTH) --xunit-output .build/tests.xml || \
	  { Scripts/failed-tests .build/tests-swift-testing.xml; exit 1; }
	Tests/Interop/run "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	COFFER_WARNINGS_AS_ERRORS=1 $(MAKE) examples
	@Scripts/install-programs.sh npm go=golang-go tsc=node-typescript dbus-run-session=dbus-daemon gdbus=libglib2.0-bin secret-tool=libsecret-tools
	Tests/Clients/run "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	@Scripts/install-programs.sh direnv jq age git pass gpg=gnupg make docker-compose
	Tests/Recipes/run "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	@Scripts/install-programs.sh swtpm tpm2_unseal=tpm2-tools
	Tests/TPM/run "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	@Scripts/install-programs.sh git dbus-daemon secret-tool=libsecret-tools,python3-secretstorage
	Tests/Keyring/run "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	Tests/Memory/run "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	Tests/Dependents/run
	Tests/Documentation/run "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	Tests/Operating/run "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	Tests/Page/run "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"
	@$(MAKE) test-install
	@$(MAKE) models

# The tool built for the tests: a release build takes minutes more, with the same result.
test-install: ## Install into a folder that goes away, and check the manual page and the completions
	@Scripts/install-programs.sh mandoc zsh fish python3
	@folder=$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path) && \
	  for program in prefs prefs-fleet; do Scripts/manual-page "$$folder/$$program" >"$$folder/$$program.1"; done && Tests/Install/run "$$folder/prefs"

models: ## Check the models in Documentation/Models with Spin, and that it finds an error in each of their twins
	@Scripts/install-programs.sh spin gcc
	@Tests/Models/run

# Not part of `make test`: it needs root, a browser, gnome-keyring, and the sources of other projects.
test-keyring: deps ## Compare prefs keyring with gnome-keyring, send it what no client should, read its memory, move in and out
	@Scripts/install-programs.sh git gcc make chromium dbus-daemon gdbus=libglib2.0-bin secret-tool=libsecret-tools,python3-secretstorage \
	  gnome-keyring-daemon=gnome-keyring,gir1.2-secret-1,python3-gi,python3-keyring,python3-keyrings.alt,python3-pytest,python3-pip,libsecret-1-dev
	$(SWIFT) build
	@Tests/Keyring/run "$$($(SWIFT) build --show-bin-path)" test_peers test_moving test_hostile test_kills test_memory test_load

# Not part of `make test`: it needs root, and a release build.
test-static: ## Build the tool with all libraries inside, and use it in a root with nothing but /proc
	@$(MAKE) release STATIC=1
	@Tests/Static/run .build/release/prefs

# Not part of `make test`: it makes a release of a built tool twice, and root tries its image, and apt in a system of its own.
test-dist: dist ## Check what make dist makes, as someone would who has only the folder
	@Scripts/install-programs.sh signify-openbsd gpg=gnupg pgrep=procps skopeo umoci debootstrap
	@Tests/Dist/run .build/dist/system/prefs .build/dist/static/prefs

# Not part of `make test`: it needs root, and the packages of a complete system.
test-package: release ## Install, use, upgrade and remove the Debian package, in a system of its own
	@Scripts/install-programs.sh dpkg-shlibdeps=dpkg-dev lintian debootstrap
	@Tests/Package/run .build/release/prefs

# Not part of `make test`, which has a test for each row; it tries them from outside, with the programs that people have.
attack: deps ## Attack the tool as SECURITY.md lists the threats, and print what happened (WORDS='fleet page' for a part)
	@Scripts/install-programs.sh python3
	$(SWIFT) build
	@Tests/Attack/run "$$($(SWIFT) build --show-bin-path)" $(WORDS)

examples: test-deps ## Build and run the examples, and check what they say
	@folder=$$(Scripts/build-examples.sh) && Examples/run "$$folder" && Tests/Replicas/run "$$folder"

# Not part of `make test`: it builds GRDB and its tests, and takes more than a quarter of an hour.
acceptance: deps ## Run GRDB's own tests on encrypted stores, and its observers beside ours
	@Scripts/install-programs.sh python3 sqlite3
	@Tests/Acceptance/grdb/run
	@Tests/Acceptance/observers/run

# Comments describe only the parameters that need it; that is not a warning here.
docs: deps ## Build the reference and the articles into .build/documentation, a site for any server
	@Scripts/install-programs.sh python3
	COFFER_DOCUMENTATION=1 $(SWIFT) package --enable-all-traits --allow-writing-to-directory .build/documentation generate-documentation \
	  --target Coffer --target CofferMaintenance --target CofferCompat --target CofferObservation \
	  --target CofferMetrics --target CofferConfiguration --target CofferService --target CofferFleet \
	  --output-path .build/documentation --enable-experimental-combined-documentation \
	  --warnings-as-errors --disable-parameters-and-returns-validation
	@Scripts/finish-docs .build/documentation documentation/coffer/

# The tool's own tests stay out: they run another binary. So do those of the extension: programs without a sanitizer
# cannot load a library that has one. SQLCipher's library is loaded in a way that the sanitizers refuse. And what looks for
# keys in the whole memory of a process would have to go through theirs. Swift's handler of crashes, which one test brings
# about, waits for ever under them.
SANITIZED = --filter 'CofferCryptoTests|CofferStorageTests|CofferTests|CofferCompatTests|CofferMaintenanceTests' --skip 'ExtensionTests|SQLCipherImportTests|missingLibrary|MemoryTests|CoreDumpTests'

sanitize: export SWIFT_BACKTRACE = enable=no
sanitize: deps ## Run the library's tests under the thread and the address sanitizer
	$(SWIFT) build --build-tests --sanitize=thread --scratch-path .build/thread -Xswiftc -DCOFFER_THREAD_SANITIZER
	$(SWIFT) test --skip-build --sanitize=thread --scratch-path .build/thread $(SANITIZED) \
	  -Xswiftc -DCOFFER_THREAD_SANITIZER
	$(SWIFT) build --build-tests --sanitize=address --scratch-path .build/address
	ASAN_OPTIONS=detect_leaks=0 $(SWIFT) test --skip-build --sanitize=address --scratch-path .build/address $(SANITIZED)

# The programs and LMDB are peers; two more are built. The installed tool is
# measured, as for the peers: the linker's output takes a tenth longer to start.
bench: ## Measure Coffer beside its peers, and write Benchmarks/RESULTS.md (ROWS='p1,p2f' for a part, ROWS=fleet for fleets, ROUNDS=7)
ifeq ($(ROWS),fleet)
	@Scripts/install-deps.sh
	@Scripts/install-programs.sh etcd=etcd-server
	@Scripts/build-release.sh FleetBenchmark
	@"$$($(SWIFT) build -c release --show-bin-path)/FleetBenchmark"
else
	@Scripts/install-deps.sh benchmarks
	@Scripts/install-programs.sh python3 sqlite3 age git pass gpg=gnupg \
	  gsettings=libglib2.0-bin,dconf-gsettings-backend,gsettings-desktop-schemas
	@Scripts/build-release.sh prefs-formats prefs-fleet prefs-keyring prefs-serve prefs-ui prefs StorageBenchmark
	@Benchmarks/build-peers Benchmarks/.build/peers
	$(SWIFT) build -c release --package-path Benchmarks
	@built="$$($(SWIFT) build -c release --show-bin-path)" && \
	  DESTDIR="$$built/installed" PREFIX=/usr Scripts/install.sh install "$$built/prefs" >/dev/null && \
	  LD_LIBRARY_PATH="$$PWD/Benchmarks/.build/peers" \
	  "$$($(SWIFT) build -c release --package-path Benchmarks --show-bin-path)/Benchmark" --rows '$(ROWS)' --rounds $(ROUNDS) \
	  --prefs "$$built/installed/usr/bin/prefs" --storage-benchmark "$$built/StorageBenchmark" --package Benchmarks
endif

bench-configuration: deps ## Measure the provider for swift-configuration beside those of files and the environment
	$(SWIFT) build -c release --package-path Benchmarks --product ConfigurationBenchmark
	@"$$($(SWIFT) build -c release --package-path Benchmarks --show-bin-path)/ConfigurationBenchmark"

# The faults of an etcd have no long version, and a time limit: those that have one keep all threads busy for longer.
soak: test-deps ## Run the long versions of the tests: beside a model, with many processes, with power cuts and faults
	COFFER_SOAK=1 $(SWIFT) test -c release -Xswiftc -enable-testing --scratch-path .build/soak $(WIDTH) \
	  --filter 'ModelTests|ProcessTests|KilledRotation|KilledProcesses|Linearizability|PowerCut|FaultTests|WatchTests|TextFormatTests|FormatPropertyTests|FormatReferenceTests|FormatSuiteTests|EnvironmentFileTests|ProxyExploration|CraftedStoreTests|manyValues' \
	  --skip FleetFaultTests

# Every reader of external bytes, for this long, with the address sanitizer.
SECONDS ?= 60

fuzz: deps ## Let libFuzzer look for bytes that a reader cannot take (SECONDS=60 a target, TARGETS='envelope log')
	@Tests/Fuzzing/run $(SECONDS) $(TARGETS)

MINUTES ?= 5

load: deps ## Use one store from four processes of four threads, and see whether anything grows (MINUTES=5)
	$(SWIFT) build -c release --product Load
	@"$$($(SWIFT) build -c release --show-bin-path)/Load" $(MINUTES) .build/load.svg

# The last tag by default.
BASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null)

api: ## Say what changed in the public interface since the last release, and fail where that breaks programs (BASE=)
	@[ -n '$(BASE)' ] || { echo "make api: there is no release yet; name a commit: make api BASE=main~10" >&2; exit 2; }
	@Scripts/public-interface --since '$(BASE)'

interface: deps ## Write the lists of the public interface that `make test` and `make api` compare
	COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --build-tests --enable-all-traits
	@Scripts/public-interface "$$(COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --show-bin-path)"

lint: ## Check the format of the sources, their imports and floors, unchecked code and phrases to avoid
	$(SWIFT) format lint --strict --recursive $(SOURCES)
	@Scripts/check-imports.sh
	@Scripts/install-programs.sh python3
	@Scripts/check-floors
	@Scripts/check-unchecked.sh
	@Scripts/check-words.sh

format: ## Format the sources in place
	$(SWIFT) format --in-place --recursive $(SOURCES)

clean: ## Remove what building made
	$(SWIFT) package clean
	$(SWIFT) package --package-path Benchmarks clean
