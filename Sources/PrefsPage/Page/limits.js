// Checks values against their declarations before they are sent. The program checks again.

const integer = /^[+-]?[0-9]+$/;

/// The type of a declaration without its element type.
export function baseType(type) { return type.replace(/<.*$/, ""); }

const plurals = { string: "texts", int: "whole numbers", double: "numbers", bool: "switches", date: "dates", array: "lists", dict: "dictionaries",
  url: "URLs", uuid: "UUIDs", secret: "secrets" };

/// A type in words: the elements of a list and of a dictionary are not written in angle brackets.
export function typeText(type) {
  const composed = /^(array|dict)<(.*)>$/.exec(type);
  if (!composed) return type;
  return `${composed[1] === "array" ? "list" : "dictionary"} of ${elements(composed[2])}`;
}

function elements(type) {
  const composed = /^(array|dict)<(.*)>$/.exec(type);
  return composed ? `${plurals[composed[1]]} of ${elements(composed[2])}` : plurals[type] ?? `${type} values`;
}

/// Why a text is not a value of a type, as a sentence; undefined if it is one.
export function problemOfText(text, type) {
  switch (type) {
    case "int": {
      if (!integer.test(text.trim())) return "Enter a whole number.";
      const number = BigInt(text.trim());
      if (number < -(2n ** 63n) || number >= 2n ** 64n) return "The number is too large.";
      return undefined;
    }
    case "double":
      if (/^[+-]?(inf(inity)?|nan)$/i.test(text.trim())) return undefined;
      return text.trim() === "" || !Number.isFinite(Number(text)) ? "Enter a number, such as 1.5." : undefined;
    case "bool": return /^(true|false)$/.test(text.trim()) ? undefined : "Enter true or false.";
    case "date": return Number.isNaN(Date.parse(text)) ? "Enter a date, such as 2026-01-31T08:30:00Z." : undefined;
    case "uuid":
      return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text.trim()) ? undefined
        : "Enter a UUID, such as 6F9619FF-8B86-D011-B42D-00C04FC964FF.";
    case "url": return text.trim() === "" || /\s/.test(text.trim()) ? "Enter a URL; write %20 for a space." : undefined;
    case "secret": return text === "" ? "A secret must not be empty." : undefined;
    case "json": try { JSON.parse(text); return undefined; } catch { return "JSON is needed."; }
    default: return undefined;
  }
}

/// Why a value violates its declaration, as a sentence; undefined if it does not.
export function problemOfLimits(value, type, declaration) {
  for (const limit of declaration?.limits ?? []) {
    const reason = refusal(value, type, limit);
    if (reason) return `The value must be ${reason}.`;
  }
  return undefined;
}

function refusal(value, type, limit) {
  if (limit.minimum !== undefined || limit.maximum !== undefined) {
    const number = comparable(value, type);
    const bound = (bound) => comparable(bound, type);
    const isBelow = limit.minimum !== undefined && number < bound(limit.minimum);
    const isAbove = limit.maximum !== undefined && number > bound(limit.maximum);
    if (!isBelow && !isAbove) return undefined;
    if (limit.minimum === undefined) return `${limit.maximum} or less`;
    return limit.maximum === undefined ? `${limit.minimum} or more` : `${limit.minimum} to ${limit.maximum}`;
  }
  if (limit.minimumCount !== undefined) {
    const count = countOf(value, type);
    const { minimumCount: minimum, maximumCount: maximum } = limit;
    if (count === undefined || count >= minimum && count <= (maximum ?? Infinity)) return undefined;
    if (maximum === undefined) return `at least ${minimum} long`;
    return minimum === 0 ? `at most ${maximum} long, and is ${count}` : `${minimum} to ${maximum} long, and is ${count}`;
  }
  // The program checks patterns: the browser could take hours to match a malicious one.
  return undefined;
}

/// What compares as the value does: a double would round integers beyond 2⁵³, which come as texts.
function comparable(value, type) {
  if (type === "date") return Date.parse(value);
  return integer.test(String(value).trim()) ? BigInt(String(value).trim()) : Number(value);
}

function countOf(value, type) {
  switch (type) {
    case "string": return [...value].length;
    case "secret": return new TextEncoder().encode(value).length;
    case "data": return Math.floor(value.replace(/=+$/, "").length * 3 / 4);
    case "array": return JSON.parse(value).length;
    case "dict": return Object.keys(JSON.parse(value)).length;
    default: return undefined;
  }
}
