"""The example of Examples/Keyring, as it stands."""

from __future__ import annotations

import pathlib

from case import KeyringTestCase

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "Examples/Keyring/build-machine.sh"
SECRETS = {"GIT_TOKEN": "git-s3cret", "REGISTRY_TOKEN": "registry-s3cret", "MAIL_PASSWORD": "mail-s3cret"}


class Example(KeyringTestCase):
    def test_a_build_machine_keeps_all_its_secrets_in_one_sealed_collection(self) -> None:
        # The bus does not take the home from HOME.
        self.environment |= SECRETS | {"XDG_DATA_HOME": str(self.home / ".local/share")}
        done = self.start("sh", str(EXAMPLE))
        said = done.stdout.decode().splitlines()
        self.assertEqual(said[:3], ["mail: 11 bytes", "username=builder", '{"registry.example.org":"builder"}'])
        self.assertIn("prefs unlock", said[3])
        self.assertEqual(said[4:], ["locked"])
        for secret in SECRETS.values():
            self.assertNotIn(secret.encode(), done.stdout + done.stderr)

        key = self.home / "vault.key"
        found = self.prefs("export", "--reveal", "--vault-key-file", str(key), "keyring")
        self.assertEqual([found.count(secret) for secret in SECRETS.values()], [1, 1, 1])
        # Without the vault's key there is none.
        self.assertNotIn("s3cret", self.start("prefs", "export", "--reveal", "keyring", code=None).stdout.decode())
