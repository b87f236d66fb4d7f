#!/bin/sh
# Builds a Debian package of the tool: programs, manual page and completions, as installed by `make install`.
#
# Usage: package.sh BINARY FOLDER [VERSION]
#
# Prints the path of the package. Its version is the tool's; tests set another one. MAINTAINER is its maintainer, LICENCES a file with
# the licences of what is inside. Nothing else of this machine gets into it: the same programs give the same bytes.
set -eu
export LC_ALL=C TZ=UTC
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
binary=${1:?which program?}
folder=${2:?where?}
version=${3:-$("$binary" --version | cut -d ' ' -f 2)}
maintainer=${MAINTAINER:-The Coffer authors <coffer@packages.example.org>}
architecture=$(dpkg --print-architecture)

mkdir -p "$folder"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
root=$stage/debian/coffer
share=$root/usr/share

DESTDIR=$root PREFIX=/usr "$here/install.sh" install "$binary" >/dev/null
# Where Debian's zsh looks for the completions of packages.
mkdir -p "$share/zsh/vendor-completions"
mv "$share/zsh/site-functions/_prefs" "$share/zsh/vendor-completions/_prefs"
rmdir "$share/zsh/site-functions"
for page in "$share/man/man1/"*.1; do
  if [ -L "$page" ]; then
    ln -s "$(readlink "$page").gz" "$page.gz" && rm "$page"
  else
    gzip -9n "$page"
  fi
done
# It is not executed: bash sources it.
sed -i '1{/^#!/d}' "$share/bash-completion/completions/prefs"
mkdir -p "$share/lintian/overrides"
cat >"$share/lintian/overrides/coffer" <<END
# The YAML package bundles libyaml and cannot be linked to another one.
coffer: embedded-library libyaml *
END

documents=$share/doc/coffer
mkdir -p "$documents" "$root/DEBIAN"
install -m 644 "$here/../README.md" "$here/../SECURITY.md" "$here/../FORMAT.md" "$here/../FLEET.md" "$documents"
[ -z "${LICENCES:-}" ] || install -m 644 "$LICENCES" "$documents"
{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n'
  printf 'Upstream-Name: Coffer\n\nFiles: *\n'
  sed -n 's/^Copyright (c) /Copyright: /p' "$here/../LICENSE"
  printf 'License: Expat\n'
  # Its text begins after the copyright.
  sed '1,/^Copyright/d; 1,/./{/^$/d}; s/^$/./; s/^/ /' "$here/../LICENSE"
} >"$documents/copyright"
gzip -9nc "$here/../CHANGELOG.md" >"$documents/NEWS.gz"
{
  printf 'coffer (%s) unstable; urgency=medium\n\n  * See NEWS.gz.\n\n' "$version"
  printf ' -- %s  %s\n' "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$documents/changelog.gz"

# The libraries that the programs are linked to, in the versions whose symbols they use.
printf 'Source: coffer\n\nPackage: coffer\nArchitecture: %s\n' "$architecture" >"$stage/debian/control"
depends=$(cd "$stage" && dpkg-shlibdeps -O debian/coffer/usr/bin/prefs debian/coffer/usr/libexec/coffer/* |
  sed -n 's/^shlibs:Depends=//p')
# Packed addresses, see build-release.sh, are not symbols.
if readelf -d "$root/usr/bin/prefs" | grep -q RELR; then
  depends=$(printf '%s' "$depends" | sed 's/libc6 (>= 2\.3[0-5])/libc6 (>= 2.36)/')
fi
# By the sizes of the files: how many blocks they take depends on the file system.
size=$(find "$root/usr" -printf '%y %s\n' | awk '{ size += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print size }')
cat >"$root/DEBIAN/control" <<END
Package: coffer
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $size
Depends: $depends
Recommends: ca-certificates
Section: admin
Priority: optional
Description: encrypted settings and secrets, from the shell
 Coffer keeps settings in one encrypted, authenticated file. The tool prefs
 gets and sets them, watches them change, hands them to programs, and keeps
 secrets in sealed collections, with a key of their own. With prefs fleet,
 the stores of several hosts share settings, encrypted from end to end.
END
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"

package=$folder/coffer_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
printf '%s\n' "$package"
