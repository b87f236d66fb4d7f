import assert from "node:assert/strict";
import { test } from "node:test";
import { baseType, problemOfLimits, problemOfText, typeText } from "../limits.js";

const limits = (...limits) => ({ limits });

test("the type of elements does not count", () => {
  assert.equal(baseType("array<dict<int>>"), "array");
  assert.equal(baseType("int"), "int");
});

test("composed types are words", () => {
  assert.equal(typeText("int"), "int");
  assert.equal(typeText("array"), "array");
  assert.equal(typeText("array<string>"), "list of texts");
  assert.equal(typeText("dict<array<int>>"), "dictionary of lists of whole numbers");
  assert.equal(typeText("array<other>"), "list of other values");
});

test("texts are values of their types or not", () => {
  const good = {
    int: ["0", "-5", "+7", " 12 ", "9223372036854775808", "18446744073709551615"], double: ["1.5", "-0", "1e3", "nan", "-Infinity"],
    bool: ["true", "false"], date: ["2026-01-31T08:30:00Z"], url: ["https://example.org", "a/b"], secret: ["x"],
    uuid: ["6F9619FF-8B86-D011-B42D-00C04FC964FF"], json: ["[1]"], string: ["", "anything"],
  };
  const bad = {
    int: ["", "1.0", "0x10", "1e3", "18446744073709551616", "-9223372036854775809"], double: ["", "one", "1,5"], bool: ["yes", ""],
    date: ["", "soon"], url: ["", "a b"], secret: [""], uuid: ["6F9619FF"], json: ["{"],
  };
  for (const [type, texts] of Object.entries(good)) for (const text of texts) assert.equal(problemOfText(text, type), undefined, `${type} ${text}`);
  for (const [type, texts] of Object.entries(bad)) for (const text of texts) assert.ok(problemOfText(text, type), `${type} ${text}`);
});

test("integers beyond 2⁵³ are compared by all of their digits", () => {
  const range = limits({ minimum: "-9007199254740993", maximum: "9007199254740993" });
  assert.equal(problemOfLimits("9007199254740993", "int", range), undefined);
  assert.match(problemOfLimits("9007199254740994", "int", range), /-9007199254740993 to 9007199254740993/);
  assert.equal(problemOfLimits("-9007199254740993", "int", range), undefined);
  assert.match(problemOfLimits("-9007199254740994", "int", range), /to 9007199254740993/);
  assert.match(problemOfLimits("18446744073709551615", "int", limits({ maximum: "18446744073709551614" })), /or less/);
  assert.match(problemOfLimits("1.5", "double", limits({ maximum: 1 })), /1 or less/);
  assert.equal(problemOfLimits("+7", "int", limits({ minimum: 6.5 })), undefined);
});

test("ranges, counts and what only the program can check", () => {
  const range = limits({ minimum: 6, maximum: 72 });
  assert.equal(problemOfLimits("6", "int", range), undefined);
  assert.match(problemOfLimits("73", "int", range), /6 to 72/);
  assert.match(problemOfLimits("5", "int", limits({ minimum: 6 })), /6 or more/);
  assert.match(problemOfLimits("9", "int", limits({ maximum: 8 })), /8 or less/);
  assert.match(problemOfLimits("2026-01-01T00:00:00Z", "date", limits({ minimum: "2026-02-01T00:00:00Z" })), /or more/);
  assert.match(problemOfLimits("", "string", limits({ minimumCount: 1 })), /at least 1 long/);
  assert.equal(problemOfLimits("👨‍👩‍👧", "string", limits({ minimumCount: 0, maximumCount: 5 })), undefined);
  assert.match(problemOfLimits('["a","b"]', "array", limits({ minimumCount: 0, maximumCount: 1 })), /at most 1 long, and is 2/);
  assert.equal(problemOfLimits("aaaa", "string", limits({ pattern: "(a+)+b" }, { words: "what only the program can check" })), undefined);
  assert.equal(problemOfLimits("x", "string", undefined), undefined);
});
