# Every command a person needs. `make help` lists them.

SWIFT ?= swift
export SWIFT
ROWS ?= 1000000
ROUNDS ?= 7
SOURCES = Sources Tests Benchmarks Package.swift

.DEFAULT_GOAL := help
.PHONY: help deps build demo test bench lint format clean

help: ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | while IFS=: read -r target rest; do \
	  printf '  make %-8s %s\n' "$$target" "$${rest#*## }"; done

deps: ## Install the system libraries, where they are missing
	@Scripts/install-deps.sh

build: deps ## Build everything, for debugging
	$(SWIFT) build

demo: deps ## Build the tool and take a short tour with it
	@Scripts/build-release.sh
	@Scripts/demo.sh "$$($(SWIFT) build -c release --show-bin-path)/prefs"

test: deps lint ## Lint, build with warnings as errors, run all tests
	COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) build --build-tests
	COFFER_WARNINGS_AS_ERRORS=1 $(SWIFT) test

bench: deps ## Measure the encrypted store beside plain SQLite (ROWS=1000000 ROUNDS=7)
	$(SWIFT) build -c release --product StorageBenchmark
	@"$$($(SWIFT) build -c release --show-bin-path)/StorageBenchmark" $(ROWS) $(ROUNDS)

lint: ## Check the format of the sources and who imports whom
	$(SWIFT) format lint --strict --recursive $(SOURCES)
	@Scripts/check-imports.sh

format: ## Format the sources in place
	$(SWIFT) format --in-place --recursive $(SOURCES)

clean: ## Remove what building made
	$(SWIFT) package clean
