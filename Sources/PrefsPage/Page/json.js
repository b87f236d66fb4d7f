// JSON that keeps numbers as they are written: 1.0 stays a fraction, and large integers lose no digit.

/// A tree of `{kind, …}`: object (members), array (elements), string (text), number (text), bool (value), null.
export function parse(text) {
  let place = 0;
  const fail = (reason) => { throw new SyntaxError(`${reason}, at letter ${place + 1}`); };
  const space = () => { while (" \t\n\r".includes(text[place]) && place < text.length) place += 1; };
  const take = (word) => {
    if (!text.startsWith(word, place)) fail(`"${word}" is missing`);
    place += word.length;
  };
  const string = () => {
    const match = /^"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/.exec(text.slice(place));
    if (!match) fail("a string is unterminated or malformed");
    place += match[0].length;
    return JSON.parse(match[0]);
  };
  const list = (end, element) => {
    const elements = [];
    place += 1;
    space();
    if (text[place] === end) { place += 1; return elements; }
    for (;;) {
      elements.push(element());
      space();
      if (text[place] === end) { place += 1; return elements; }
      take(",");
    }
  };
  const value = (depth) => {
    if (depth > 190) fail("it is nested too deeply");
    space();
    switch (text[place]) {
      case "{": return { kind: "object", members: list("}", () => {
        space();
        const name = string();
        space();
        take(":");
        return { name, node: value(depth + 1) };
      }) };
      case "[": return { kind: "array", elements: list("]", () => value(depth + 1)) };
      case "\"": return { kind: "string", text: string() };
      case "t": take("true"); return { kind: "bool", value: true };
      case "f": take("false"); return { kind: "bool", value: false };
      case "n": take("null"); return { kind: "null" };
      default: {
        const match = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/.exec(text.slice(place));
        if (!match) fail("invalid value");
        place += match[0].length;
        return { kind: "number", text: match[0] };
      }
    }
  };
  const tree = value(0);
  space();
  if (place < text.length) fail("text after the value");
  return tree;
}

export function print(node) {
  switch (node.kind) {
    case "object": return `{${node.members.map(({ name, node }) => `${JSON.stringify(name)}:${print(node)}`).join(",")}}`;
    case "array": return `[${node.elements.map(print).join(",")}]`;
    case "string": return JSON.stringify(node.text);
    case "number": return node.text;
    case "bool": return String(node.value);
    default: return "null";
  }
}
