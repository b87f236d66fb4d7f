import assert from "node:assert/strict";
import { test } from "node:test";
import { linePoints, lineValues } from "../chart.js";
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

test("the line of a number has all finite values, oldest first", () => {
  const versions = [{ value: 4, modified: "b" }, { value: "nan", modified: "a" }, { value: "9007199254740993", modified: "0" }];
  assert.deepEqual(lineValues(versions, { value: 5, version: 3, modified: "c" }).map(({ text }) => text), ["9007199254740993", "4", "5"]);
  assert.deepEqual(lineValues([], { value: 5, version: null }), []);
});

test("each value holds until the next one, between the least at the bottom and the greatest at the top", () => {
  assert.deepEqual(linePoints([0, 10]), [[3, 37], [110, 37], [110, 3], [217, 3]]);
  assert.deepEqual(linePoints([2, 2]).map(([, y]) => y), [20, 20, 20, 20]);
});
