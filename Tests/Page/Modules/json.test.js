import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, print } from "../json.js";

test("what is parsed is printed digit by digit", () => {
  for (const text of ['{"a":[1,2.0,9007199254740993,-0.0,1e400]}', "[]", "{}", '["\\u0000 ü",true,false,null]', "-1", '""']) {
    assert.equal(print(parse(text)), text);
  }
});

test("blanks are left out", () => assert.equal(print(parse(' { "a" : [ 1 , 2 ] } \n')), '{"a":[1,2]}'));

test("what is not JSON is refused with its place", () => {
  for (const text of ["", "{", "[1,]", '{"a"}', "01", "1 2", "'a'", '"a', '"\n"', "tru", "[".repeat(300)]) {
    assert.throws(() => parse(text), SyntaxError, text);
  }
  assert.throws(() => parse("[1,x]"), /at letter 4/);
});
