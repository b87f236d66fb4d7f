#!/bin/sh
# Installs what Coffer links against and Swift does not include: SQLite, OpenSSL, libcurl and, on Linux, libsystemd with their headers, and
# pkg-config, which finds them. With the argument `tests` also what the tests run: the sqlite3 shell, SQLCipher with
# its own, pass with GnuPG, etcd with etcdctl, the openssl tool, and Python with the means to
# install packages, and Chromium with its driver, and Firefox with Xvfb. With the argument `benchmarks` also LMDB with its headers. Does nothing when all are there.
set -eu

has_libraries() {
  command -v pkg-config >/dev/null 2>&1 && pkg-config --exists sqlite3 libcrypto libcurl &&
    { [ "$(uname -s)" != Linux ] || pkg-config --exists libsystemd; }
}

# Homebrew has no browsers that can be driven; there the tests of the page are skipped.
has_browser() {
  [ "$(uname -s)" = Darwin ] || { command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1 &&
    command -v firefox-esr >/dev/null 2>&1 && command -v Xvfb >/dev/null 2>&1; }
}

has_test_tools() {
  command -v sqlite3 >/dev/null 2>&1 && command -v sqlcipher >/dev/null 2>&1 && command -v pass >/dev/null 2>&1 &&
    command -v gpg >/dev/null 2>&1 && command -v etcd >/dev/null 2>&1 && command -v etcdctl >/dev/null 2>&1 &&
    command -v openssl >/dev/null 2>&1 && command -v python3 >/dev/null 2>&1 &&
    has_browser &&
    python3 -c 'import ensurepip, venv' 2>/dev/null
}

debian="pkg-config libsqlite3-dev libssl-dev libcurl4-openssl-dev libsystemd-dev"
brew="pkg-config sqlite openssl@3 curl"
case "${1:-}" in
  tests)
    has_all() { has_libraries && has_test_tools; }
    debian="$debian sqlite3 sqlcipher pass gnupg etcd-server etcd-client openssl python3 python3-venv python3-cryptography python3-jsonschema chromium chromium-driver firefox-esr xvfb nodejs node-typescript"
    brew="$brew sqlcipher pass gnupg etcd python"
    ;;
  benchmarks)
    has_all() { has_libraries && pkg-config --exists lmdb; }
    debian="$debian liblmdb-dev"
    brew="$brew lmdb"
    ;;
  *) has_all() { has_libraries; } ;;
esac

# Names the packages to install by hand, and gives up.
give_up() {
  echo "install-deps: $1" >&2
  echo "install-deps: please install pkg-config and the development files of SQLite 3, OpenSSL 3, libcurl and libsystemd:" >&2
  echo "  Debian, Ubuntu:  $debian" >&2
  echo "  Fedora:          pkgconf-pkg-config sqlite-devel openssl-devel libcurl-devel systemd-devel" >&2
  echo "  Alpine:          pkgconf sqlite-dev openssl-dev curl-dev" >&2
  echo "  macOS, Homebrew: $brew" >&2
  exit 1
}

# Homebrew hides these two from pkg-config, because macOS has libraries with the same names.
add_brew_paths() {
  for formula in sqlite openssl@3; do
    prefix=$(brew --prefix "$formula" 2>/dev/null) || continue
    PKG_CONFIG_PATH="$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
  done
  export PKG_CONFIG_PATH
}

install_with_brew() {
  command -v brew >/dev/null 2>&1 || give_up "Homebrew is missing, and with it the way to install packages."
  add_brew_paths
  if has_all; then return; fi
  # shellcheck disable=SC2086 # A list of names.
  brew install $brew
  add_brew_paths
}

install_with_apt() {
  if [ "$(id -u)" -eq 0 ]; then
    as_root=""
  elif command -v sudo >/dev/null 2>&1; then
    # Without a terminal sudo cannot ask for a password; -n makes it fail instead of waiting.
    if [ -t 0 ]; then as_root="sudo"; else as_root="sudo -n"; fi
  else
    give_up "installing packages needs root, and there is no sudo."
  fi
  echo "install-deps: installing $debian" >&2
  # `env` passes the variable through sudo.
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 ||
    echo "install-deps: the lists of packages could not be refreshed; trying with those that are there" >&2
  # shellcheck disable=SC2086 # A list of names.
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $debian >&2 ||
    give_up "apt-get could not install them."
}

if has_all; then exit 0; fi
case "$(uname -s)" in
  Darwin) install_with_brew ;;
  *)
    command -v apt-get >/dev/null 2>&1 || give_up "this system has no apt-get."
    install_with_apt
    ;;
esac
has_all || give_up "the packages are installed, and something is still missing."
