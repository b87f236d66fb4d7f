import assert from "node:assert/strict";
import { test } from "node:test";
import { cellsOf, columnName, parentOf } from "../columns.js";

test("a row has one setting, one for each column, or none", () => {
  assert.deepEqual(cellsOf(undefined), []);
  assert.deepEqual(cellsOf({ section: { count: 2 } }), []);
  assert.deepEqual(cellsOf({ key: "a" }), [{ key: "a" }]);
  assert.deepEqual(cellsOf({ key: "a", cells: [{ setting: { key: "a" }, differs: false }, null] }), [{ key: "a" }, undefined]);
});

test("columns are named after the environments of the chosen collection", () => {
  assert.equal(parentOf("net@staging"), "net");
  assert.equal(parentOf("a@b@staging"), "a@b");
  assert.equal(parentOf("net"), "net");
  assert.equal(parentOf("net@not an environment"), "net@not an environment");
  assert.equal(columnName(null, "net@staging"), "net");
  assert.equal(columnName("test", "net@staging"), "net@test");
  assert.equal(columnName("test", null), "@test");
});
