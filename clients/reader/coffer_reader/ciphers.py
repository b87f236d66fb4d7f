"""AES-256 in the three forms that a store has, and the derivation of keys."""

from __future__ import annotations

import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class AESBlock:
    """AES-256 on single blocks."""

    def __init__(self, key: bytes):
        self._encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        self._decryptor = Cipher(algorithms.AES(key), modes.ECB()).decryptor()

    def encrypt(self, block: bytes) -> bytes:
        return self._encryptor.update(block)

    def decrypt(self, block: bytes) -> bytes:
        return self._decryptor.update(block)


def xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b))


class XAES:
    """XAES-256-GCM of C2SP: a key for AES-256-GCM out of the key and the first half of the nonce."""

    NONCE = 24
    TAG = 16

    def __init__(self, key: bytes):
        if len(key) != 32:
            raise ValueError("the key has 32 bytes")
        self._block = AESBlock(key)
        whole = int.from_bytes(self._block.encrypt(bytes(16)), "big")
        doubled = (whole << 1) & ((1 << 128) - 1)
        if whole >> 127:
            doubled ^= 0x87
        self._subkey = doubled.to_bytes(16, "big")

    def _gcm(self, nonce: bytes) -> AESGCM:
        if len(nonce) != self.NONCE:
            raise ValueError("the nonce has 24 bytes")
        halves = (bytes([0, number, 0x58, 0]) + nonce[:12] for number in (1, 2))
        return AESGCM(b"".join(self._block.encrypt(xor(half, self._subkey)) for half in halves))

    def seal(self, nonce: bytes, plain: bytes, additional: bytes) -> bytes:
        return self._gcm(nonce).encrypt(nonce[12:], plain, additional)

    def open(self, nonce: bytes, sealed: bytes, additional: bytes) -> bytes:
        """The plaintext; `cryptography.exceptions.InvalidTag` if it does not authenticate."""
        return self._gcm(nonce).decrypt(nonce[12:], sealed, additional)


class LogHeaderCipher:
    """The XEX construction over sixteen bytes."""

    def __init__(self, keys: bytes):
        self._outer = AESBlock(keys[:32])
        self._mask = AESBlock(keys[32:])

    def _tweak(self, number: int) -> bytes:
        return self._mask.encrypt(bytes(8) + struct.pack(">Q", number))

    def encipher(self, block: bytes, number: int) -> bytes:
        tweak = self._tweak(number)
        return xor(self._outer.encrypt(xor(block, tweak)), tweak)

    def decipher(self, block: bytes, number: int) -> bytes:
        tweak = self._tweak(number)
        return xor(self._outer.decrypt(xor(block, tweak)), tweak)


def hkdf(secret: bytes, salt: bytes, info: str, length: int = 32) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info.encode("ascii")).derive(secret)
