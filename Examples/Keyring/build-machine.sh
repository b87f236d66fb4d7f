#!/bin/sh
# The keyring of a build machine without a desktop: git, docker and libsecret's programs share one sealed collection.
#
# Usage: build-machine.sh
#
# GIT_TOKEN, REGISTRY_TOKEN and MAIL_PASSWORD are the secrets that it is given once. The vault's key file is made here; a service gets it as a
# credential of systemd, see the article on keys.
set -eu
export PREFS_VAULT_KEY_FILE="$HOME/vault.key"

# Sealed before its first secret, so none is ever stored without the vault.
prefs set --quiet machine/role build
prefs seal --quiet keyring

# Each program is told once where secrets are.
git config --global credential.helper prefs
mkdir -p "$HOME/.docker"
echo '{"credsStore":"prefs"}' >"$HOME/.docker/config.json"

# As a push over HTTPS, and `docker login`, hand them over. A shell's printf is no program: nothing shows in the list of processes.
printf 'protocol=https\nhost=git.example.org\nusername=builder\npassword=%s\n' "$GIT_TOKEN" | git credential approve
printf '{"ServerURL":"registry.example.org","Username":"builder","Secret":"%s"}' "$REGISTRY_TOKEN" | docker-credential-prefs store

# Programs with libsecret need a bus, for as long as they run.
dbus-run-session -- sh -eu -c '
  prefs keyring &
  gdbus wait --session --timeout 60 org.freedesktop.secrets
  printf %s "$MAIL_PASSWORD" | secret-tool store --label=Mail server mail.example.org
  echo "mail: $(secret-tool lookup server mail.example.org | wc -c) bytes"
  kill $!'

# A later job, as a clone and `docker pull` ask.
printf 'protocol=https\nhost=git.example.org\n\n' | git credential fill | grep username
docker-credential-prefs list

# While it is locked, no program gets one, and each says what to do.
unset PREFS_VAULT_KEY_FILE
printf 'registry.example.org' | docker-credential-prefs get || echo "locked"
