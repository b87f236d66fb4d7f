import assert from "node:assert/strict";
import { test } from "node:test";
import { Channel } from "../channel.js";

const bytes = (text) => new TextEncoder().encode(text);
const key = () => new Uint8Array(32).map((_, index) => index);

/// An answer as the program seals it: bound to the first bytes of the request.
const answer = (channel, text, purpose, request) =>
  channel.seal(bytes(text), purpose + String.fromCharCode(...request.subarray(0, 24)));

/// A request whose first bytes are letters, so that the purpose of an answer can have them.
const request = bytes("0123456789abcdefghijklmnopqrstuvwxyz");

test("an answer is opened only with its key, for its purpose and its request", async () => {
  const channel = await Channel.with(key());
  const sealed = await answer(channel, "all settings", "answer list", request);
  assert.equal(await channel.open(sealed, "answer list", request), "all settings");
  await assert.rejects(channel.open(sealed, "failure list", request));
  await assert.rejects(channel.open(sealed, "answer list", request.toReversed()));
  await assert.rejects((await Channel.with(new Uint8Array(32))).open(sealed, "answer list", request));
  for (const place of [0, 30, sealed.length - 1]) {
    const changed = sealed.slice();
    changed[place] ^= 1;
    await assert.rejects(channel.open(changed, "answer list", request));
  }
});

test("the same text is never sealed alike", async () => {
  const channel = await Channel.with(key());
  assert.notDeepEqual(await channel.seal(bytes("x"), "request list"), await channel.seal(bytes("x"), "request list"));
});

test("a key is wiped once it is imported", async () => {
  const bytes = key();
  await Channel.with(bytes);
  assert.deepEqual(bytes, new Uint8Array(32));
});
