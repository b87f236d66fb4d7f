import assert from "node:assert/strict";
import { test } from "node:test";
import { authorText, identity, nameOf, shortTime, shortValue, visible } from "../elements.js";
import { newText } from "../changes.js";
import { nameProblem } from "../details.js";
import { saveLabel } from "../plans.js";

test("invisible characters and those that change the direction become escapes", () => {
  assert.equal(visible("a\u202eb\u0000\ufeff\n\t"), "a\\u202eb\\u0000\\ufeff\n\t");
  assert.equal(visible("a\u200db"), "a\\u200db");
  assert.equal(visible("\u{1f468}\u200d\u{1f469}"), "\u{1f468}\u200d\u{1f469}");
});

test("settings whose names read alike have identities of their own", () => {
  const one = { collection: "acme/billing", key: "port" };
  const other = { collection: "acme", key: "billing/port" };
  assert.equal(nameOf(one), nameOf(other));
  assert.notEqual(identity(one), identity(other));
  assert.equal(nameOf({ collection: "", key: "a/b" }), "/a/b");
  assert.equal(nameOf({ collection: "", key: "a" }), "a");
});

test("a value in a line", () => {
  assert.equal(shortValue({ value: ["a", 1] }), '["a",1]');
  assert.equal(shortValue({ value: null, origin: "default" }), "not set");
  assert.equal(shortValue({ value: "AAEC", type: "data" }), "3 bytes");
  assert.equal(shortValue({ long: true, shownSize: 5 }), "5 bytes");
  assert.equal(shortValue({ value: "x".repeat(400) }).length, 300);
});

test("who changed something", () => {
  assert.equal(authorText({ program: "prefs", user: "ada", host: "laptop", actor: null }), "prefs, ada@laptop");
  assert.equal(authorText({ program: "prefs", user: "ada", host: "laptop", actor: "ticket-7" }), "prefs, ada@laptop for ticket-7");
  assert.equal(authorText(null), "");
});

test("what a change will leave never shows a secret", () => {
  assert.equal(newText({ setting: {}, type: "secret", text: "hunter2" }), "a new secret");
  assert.equal(newText({ setting: { hidden: true }, type: "string", text: "hunter2" }), "a new secret");
  assert.equal(newText({ setting: { declared: true }, remove: true }), "back to the default");
  assert.equal(newText({ setting: {}, remove: true }), "removed");
  assert.equal(newText({ setting: {}, restore: 4, earlier: "dark" }), "dark (version 4)");
});

test("the button of a plan", () => {
  assert.equal(saveLabel({ plan: 1, count: 1 }), "Save 1 change");
  assert.equal(saveLabel({ plan: 1, count: 3 }), "Save 3 changes as one");
  assert.equal(saveLabel({ plan: null, count: 3 }), "Save");
});

test("a name has a key, and no blanks at its ends, where they are invisible", () => {
  assert.equal(nameProblem({ collection: "", key: "a b" }), undefined);
  assert.match(nameProblem({ collection: "notes", key: "" }), /needs a key/);
  assert.match(nameProblem({ collection: "notes ", key: "a" }), /blank/);
  assert.match(nameProblem({ collection: "notes", key: "\u00a0a" }), /blank/);
});

test("a time of today has its hour, any other one its day", () => {
  const now = new Date(2026, 0, 31, 12, 0);
  assert.equal(shortTime(null, now), "");
  assert.match(shortTime(new Date(2026, 0, 31, 8, 30).toISOString(), now), /30/);
  assert.doesNotMatch(shortTime(new Date(2026, 0, 30, 8, 30).toISOString(), now), /:/);
  assert.match(shortTime(new Date(2024, 5, 1).toISOString(), now), /24/);
});
