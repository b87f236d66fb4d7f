import assert from "node:assert/strict";
import { test } from "node:test";
import { linePoints, lineValues } from "../chart.js";
import { cellsOf, collectionOf, columnName, targets } from "../columns.js";

test("a row has one setting, one for each column, or none", () => {
  assert.deepEqual(cellsOf(undefined), []);
  assert.deepEqual(cellsOf({ section: { count: 2 } }), []);
  assert.deepEqual(cellsOf({ key: "a" }), [{ key: "a" }]);
  assert.deepEqual(cellsOf({ key: "a", cells: [{ setting: { key: "a" }, differs: false }, null] }), [{ key: "a" }, undefined]);
});

const column = (tenant, environment, administrator = false) => ({ tenant, environment, administrator });

test("a column is a collection, an environment or a tenant of it", () => {
  assert.equal(collectionOf(column(null, null), "net"), "net");
  assert.equal(collectionOf(column(null, "staging"), "net"), "net@staging");
  assert.equal(collectionOf(column("acme", "staging"), "net"), "acme/net@staging");
});

test("columns are named after their collections, or after what those of several families have in common", () => {
  assert.equal(columnName(column(null, null), "net"), "net");
  assert.equal(columnName(column("acme", "test"), "net"), "acme/net@test");
  assert.equal(columnName(column(null, null, true), "net"), "Administrator");
  assert.equal(columnName(column("acme", null, true), "net"), "Administrator, acme/net");
  assert.equal(columnName(column(null, null), null), "Collection itself");
  assert.equal(columnName(column(null, "test"), null), "@test");
  assert.equal(columnName(column("acme", null), null), "acme/…");
  assert.equal(columnName(column("acme", null, true), null), "Administrator, acme/…");
});

test("a column is copied to the others, and to no administrator", () => {
  const places = [{ collection: "net", administrator: false }, { collection: "net", administrator: true }, { collection: "net@test", administrator: false }];
  assert.deepEqual(targets(places, places[0]), ["net@test"]);
  assert.deepEqual(targets(places, places[1]), ["net", "net@test"]);
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
