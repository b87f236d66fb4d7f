// One editor for each type. An editor is `{node, read()}`; `read` gives the text of the value, or `{problem}`.

import { element, secretField, visible } from "./elements.js";
import { parse, print } from "./json.js";
import { baseType, problemOfLimits, problemOfText } from "./limits.js";

/// The types to choose from for an undeclared setting.
export const types = ["string", "int", "double", "bool", "date", "array", "dict", "data", "url", "uuid", "json", "secret"];

/// The type that an editor of a setting begins with.
export function editedType(setting) {
  const declared = setting.declaration && baseType(setting.declaration.type);
  if (declared && declared !== "any") return declared;
  if (setting.type === "sealed") return "string";
  return setting.type === "any" ? "string" : setting.type;
}

const labelOfDetails = { "aria-labelledby": "details-title", "aria-describedby": "editor-problem editor-limits" };

/**
 * - setting: As the program describes it. `type`: the type to edit. `text`: the value to begin with. `isInRow`: whether there is
 * room for one line only.
 *
 * @param {{ setting: any, type: string, text: string, changed: () => void, label?: Record<string, any>, isInRow?: boolean }} options
 */
export function editorFor({ setting, type, text, changed, label = labelOfDetails, isInRow = false }) {
  const declaration = setting.declaration;
  const choices = declaration?.limits?.find((limit) => limit.choices)?.choices;
  const make = choices ? choiceEditor
    : { bool: switchEditor, date: dateEditor, array: treeEditor, dict: treeEditor, data: fileEditor,
      string: isInRow ? lineEditor : textEditor,
      json: textEditor, secret: secretEditor }[baseType(type)] ?? lineEditor;
  const editor = make({ type: baseType(type), text, label, changed, choices });
  return {
    node: editor.node, hint: editor.hint,
    /// The text to send, or `{problem}`.
    read() {
      try {
        const value = editor.read();
        const problem = problemOfText(value, baseType(type)) ?? problemOfLimits(value, baseType(type), declaration);
        return problem ? { problem, typed: value } : { text: value };
      } catch (error) {
        return { problem: error.message };
      }
    },
  };
}

function lineEditor({ type, text, label, changed }) {
  const isNumber = type === "int" || type === "double";
  const input = element("input", {
    ...label, type: "text", dir: isNumber ? "ltr" : "auto", value: text, spellcheck: false, oninput: changed,
    inputMode: isNumber ? "decimal" : "text", class: isNumber ? "number" : "",
  });
  if (type === "int") {
    input.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 1n, ArrowDown: -1n }[event.key];
      if (!step || !/^[+-]?[0-9]+$/.test(input.value.trim())) return;
      event.preventDefault();
      input.value = String(BigInt(input.value.trim()) + step);
      changed();
    });
  }
  return { node: input, read: () => input.value };
}

/// A text. While it has one line, Enter saves; Shift-Enter and pasting add lines.
function textEditor({ type, text, label, changed }) {
  const area = element("textarea", { ...label, dir: "auto", value: text, rows: 1, spellcheck: false });
  const isOneLine = () => type !== "json" && !area.value.includes("\n");
  area.addEventListener("keydown", (event) => {
    // The details handle Enter, and save.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && isOneLine()) area.dispatchEvent(new CustomEvent("save", { bubbles: true }));
    else return;
    event.preventDefault();
  });
  const most = 20;
  const grow = () => {
    // A long text is not searched for the ends of its lines with each letter.
    const { value } = area;
    const rows = value.length >= most * 44 ? most : Math.min(most, Math.max(1, value.split("\n").length, Math.ceil(value.length / 44)));
    if (area.rows !== rows) area.rows = rows;
  };
  area.addEventListener("input", () => { grow(); changed(); });
  grow();
  return { node: area, read: () => area.value, hint: type === "json" ? undefined : " Enter saves; Shift-Enter adds a line." };
}

function switchEditor({ text, label, changed }) {
  const input = element("input", { ...label, type: "checkbox", role: "switch", checked: text === "true", onchange: changed });
  const word = element("span", { "aria-hidden": "true" }, input.checked ? "on" : "off");
  input.addEventListener("change", () => { word.textContent = input.checked ? "on" : "off"; });
  return { node: element("label", { class: "switch" }, input, word), read: () => String(input.checked) };
}

function choiceEditor({ text, label, changed, choices }) {
  const texts = choices.map((choice) => typeof choice === "string" ? choice : JSON.stringify(choice));
  const isKnown = texts.includes(text);
  const menu = element("select", { ...label, onchange: changed },
    !isKnown && element("option", { value: text, selected: true }, text === "" ? "(not set)" : `${visible(text)} (not a choice)`),
    texts.map((choice) => element("option", { value: choice, selected: choice === text }, visible(choice))));
  return {
    node: menu,
    read() {
      if (!texts.includes(menu.value)) throw new Error(`The value must be one of ${texts.join(", ")}.`);
      return menu.value;
    },
  };
}

function dateEditor({ text, label, changed }) {
  const field = dateField(text, { ...label, oninput: changed });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return {
    node: element("span", { class: "line" }, field.node, element("small", {}, zone)),
    read() {
      const date = field.read();
      if (date === null) throw new Error("Enter a date and a time.");
      return date;
    },
  };
}

/// A field for a date and a time of this computer's zone; `read()` returns the date in UTC, or null.
export function dateField(text, properties = {}) {
  const local = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
  const hasDate = Boolean(text) && !Number.isNaN(Date.parse(text));
  const isWhole = !hasDate || Date.parse(text) % 60_000 === 0;
  const start = hasDate ? local(new Date(text)).slice(0, isWhole ? 16 : undefined) : "";
  const input = element("input", { ...properties, type: "datetime-local", step: isWhole ? "60" : "0.001", value: start });
  return {
    node: input,
    read() {
      if (input.value === "") return null;
      // Unless edited, the date keeps the fraction that the field does not show.
      return input.value === start ? text : new Date(input.value).toISOString();
    },
  };
}

function secretEditor({ label, changed }) {
  const input = secretField({ ...label, placeholder: "A new secret", oninput: changed });
  return { node: input, read: () => input.value };
}

function fileEditor({ text, label, changed }) {
  let bytes = text;
  const size = element("span");
  const say = () => { size.textContent = `${Math.floor(bytes.replace(/=+$/, "").length * 3 / 4).toLocaleString()} bytes`; };
  say();
  const input = element("input", { ...label, type: "file" });
  input.addEventListener("change", async () => {
    const buffer = new Uint8Array(await input.files[0].arrayBuffer());
    let binary = "";
    for (let start = 0; start < buffer.length; start += 32768) {
      binary += String.fromCharCode(...buffer.subarray(start, start + 32768));
    }
    bytes = btoa(binary);
    say();
    changed();
  });
  const save = element("button", { type: "button", onclick: () => {
    const binary = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
    download(new Blob([binary], { type: "application/octet-stream" }), "value.bin");
  } }, "Save as a file");
  return { node: element("span", { class: "line" }, size, input, bytes && save), read: () => bytes };
}

/// Downloads a file.
export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Lists and dictionaries: a tree, or its JSON.

function treeEditor({ type, text, label, changed }) {
  let tree;
  try { tree = parse(text || (type === "array" ? "[]" : "{}")); } catch (error) { return textEditor({ type, text, label, changed }); }
  const box = element("div", { class: "tree", role: "group", ...label });
  const redraw = () => { box.replaceChildren(branch(tree, redrawAndTell, changed)); };
  const redrawAndTell = () => { redraw(); changed(); };
  redraw();
  return { node: box, read: () => { checkTree(tree); return print(tree); } };
}

function checkTree(node) {
  if (node.kind === "number" && problemOfText(node.text, "double")) throw new Error(`${node.text || "An empty text"} is not a number.`);
  if (node.kind === "array") node.elements.forEach(checkTree);
  if (node.kind === "object") {
    const names = new Set(node.members.map(({ name }) => name));
    if (names.size < node.members.length) throw new Error("Two entries have the same name.");
    node.members.forEach(({ node }) => checkTree(node));
  }
}

const emptyNodes = {
  text: () => ({ kind: "string", text: "" }), number: () => ({ kind: "number", text: "0" }),
  "true or false": () => ({ kind: "bool", value: false }), list: () => ({ kind: "array", elements: [] }),
  dictionary: () => ({ kind: "object", members: [] }),
};

/// A part of the tree with its own entries.
function branch(node, redraw, changed) {
  const isList = node.kind === "array";
  const entries = isList ? node.elements : node.members;
  const menu = element("select", { "aria-label": "Type of the new entry" },
    Object.keys(emptyNodes).map((name) => element("option", {}, name)));
  const likeLast = { string: "text", number: "number", bool: "true or false", array: "list", object: "dictionary" };
  const last = entries.at(-1);
  if (last) menu.value = likeLast[(isList ? last : last.node).kind] ?? "text";
  const add = element("button", { type: "button", onclick: () => {
    const fresh = emptyNodes[menu.value]();
    entries.push(isList ? fresh : { name: "", node: fresh });
    redraw();
  } }, "Add");
  return element("div", { class: "branch" },
    element("ul", {}, entries.map((entry, index) => {
      const child = isList ? entry : entry.node;
      const name = isList ? element("span", { class: "index" }, `${index + 1}`)
        : element("input", { type: "text", class: "entry-name", value: entry.name, "aria-label": "Name",
          oninput: (event) => { entry.name = event.target.value; changed(); } });
      return element("li", {}, name, leaf(child, redraw, changed, isList ? `Entry ${index + 1}` : entry.name),
        isList && index > 0 && element("button", { type: "button", class: "plain", "aria-label": `Move entry ${index + 1} up`,
          onclick: () => { entries.splice(index - 1, 0, ...entries.splice(index, 1)); redraw(); } }, "↑"),
        element("button", { type: "button", class: "plain", "aria-label": `Remove entry ${isList ? index + 1 : entry.name}`,
          onclick: () => { entries.splice(index, 1); redraw(); } }, "×"));
    })),
    element("span", { class: "line" }, menu, add));
}

function leaf(node, redraw, changed, name) {
  switch (node.kind) {
    case "array": case "object": return branch(node, redraw, changed);
    case "bool": return element("input", { type: "checkbox", checked: node.value, "aria-label": name,
      onchange: (event) => { node.value = event.target.checked; changed(); } });
    case "null": return element("em", {}, "nothing");
    default: return element("input", { type: "text", dir: "auto", value: node.text, "aria-label": name, spellcheck: false,
      class: node.kind === "number" ? "number" : "", oninput: (event) => { node.text = event.target.value; changed(); } });
  }
}
