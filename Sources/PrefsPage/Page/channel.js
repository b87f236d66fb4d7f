// Encrypts the messages between the page and its program with a key that only they have: XAES-256-GCM
// (https://c2sp.org/XAES-256-GCM), as in SealedChannel.swift.

const nonceSize = 24;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/// Whether the page may use the browser's ciphers: browsers permit it for pages of this computer, and for https.
export const isPossible = Boolean(globalThis.crypto?.subtle);

/// The channel for trading a token.
export async function channelOfToken(token) {
  const material = await crypto.subtle.importKey("raw", encoder.encode(token), "HKDF", false, ["deriveBits"]);
  const info = encoder.encode("prefs-ui token");
  const key = await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info }, material, 256);
  return Channel.with(new Uint8Array(key));
}

/// The channel of a session, whose key is in base64url.
export function channelOfSession(key) {
  const binary = atob(key.replaceAll("-", "+").replaceAll("_", "/"));
  return Channel.with(Uint8Array.from(binary, (letter) => letter.charCodeAt(0)));
}

export class Channel {
  #key;
  #mask;

  static async with(bytes) {
    const channel = new Channel();
    channel.#key = await crypto.subtle.importKey("raw", bytes, "AES-CBC", false, ["encrypt"]);
    bytes.fill(0);
    // The zero block, doubled in GF(2¹²⁸).
    const block = await channel.#encrypt(new Uint8Array(16));
    channel.#mask = block.map((byte, index) => (byte << 1) | ((block[index + 1] ?? 0) >> 7));
    if (block[0] >> 7) channel.#mask[15] ^= 0x87;
    return channel;
  }

  /// Seals bytes for a purpose. Answers are bound to the first 24 bytes of the result.
  async seal(bytes, purpose) {
    const nonce = crypto.getRandomValues(new Uint8Array(nonceSize));
    const [key, iv] = await this.#messageKey(nonce);
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: encoder.encode(purpose) }, key, bytes);
    return joined(nonce, new Uint8Array(sealed));
  }

  /// Opens the answer to a sealed request; throws if it does not come from the program.
  async open(bytes, purpose, request) {
    const [key, iv] = await this.#messageKey(bytes.subarray(0, nonceSize));
    const additionalData = joined(encoder.encode(purpose), request.subarray(0, nonceSize));
    return decoder.decode(await crypto.subtle.decrypt({ name: "AES-GCM", iv, additionalData }, key, bytes.subarray(nonceSize)));
  }

  async #messageKey(nonce) {
    const halves = [1, 2].map((number) => {
      const block = joined(Uint8Array.of(0, number, 0x58, 0), nonce.subarray(0, 12));
      return this.#encrypt(block.map((byte, index) => byte ^ this.#mask[index]));
    });
    const key = joined(...await Promise.all(halves));
    return [await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt", "decrypt"]), nonce.subarray(12)];
  }

  /// One block of AES.
  async #encrypt(block) {
    return new Uint8Array(await crypto.subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, this.#key, block)).subarray(0, 16);
  }
}

function joined(first, second) {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}
