// Creates elements without parsing HTML: names and values come from programs, and are never markup.

/**
 * An element with properties, listeners (`onclick`) and children; undefined and null ones are left out.
 *
 * @param {string} name
 * @param {Record<string, any>} properties
 * @param {any[]} children
 * @returns {any}
 */
export function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  // Otherwise browsers save typed text in their profiles, to restore it.
  if (["input", "textarea", "select", "form"].includes(name)) node.setAttribute("autocomplete", "off");
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key in node && !key.startsWith("aria") && key !== "role" && key !== "list") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  fill(node, ...children);
  return node;
}

/// A field for a secret. It is not of the type password: browsers and password managers would offer to keep its text.
export function secretField(properties) {
  return element("input", {
    type: "text", spellcheck: false, autocapitalize: "off", "data-1p-ignore": true, "data-lpignore": "true",
    "data-bwignore": true, "data-form-type": "other", ...properties, class: "masked",
  });
}

/// Replaces the children of a node.
export function fill(node, ...children) {
  const isThere = (child) => child !== undefined && child !== null && child !== false && child !== "";
  node.replaceChildren(...children.flat(Infinity).filter(isThere));
}

/// The text with visible escapes for characters that are invisible or change the direction.
///
/// Joiners stay between letters that they join, as some scripts and emoji need them.
export function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|(?<![^\u0000-\u02af\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\u0000-\u02af\u200c\u200d])/g,
    (letter) => `\\u${letter.codePointAt(0).toString(16).padStart(4, "0")}`);
}

/// A unique identifier of a setting: its name as the shell writes it may be another one's, too.
export function identity({ collection, key }) { return JSON.stringify([collection, key]); }

/// Whether two descriptions of a setting are of one version: each store that is at the path in turn counts its own.
export function isSameVersion(one, other) { return one.store === other.store && one.version === other.version; }

/// The text as nodes, with the escapes marked, to distinguish them from letters of the text.
export function marked(text) {
  const nodes = [];
  for (const letter of text) {
    // A single joiner joins nothing, and is shown.
    if (visible(letter) !== letter) nodes.push(element("span", { class: "escape" }, visible(letter)));
    else if (typeof nodes.at(-1) === "string") nodes.push(nodes.pop() + letter);
    else nodes.push(letter);
  }
  return nodes;
}

/// A setting as the shell names it.
export function nameOf(setting) {
  if (setting.collection === "") return setting.key.includes("/") ? `/${setting.key}` : setting.key;
  return `${setting.collection}/${setting.key}`;
}

export function collectionName(name) { return name === "" ? "(default)" : visible(name); }

/// The value of a row in one line.
export function shortValue(setting) {
  if (setting.long) return `${setting.shownSize.toLocaleString()} bytes`;
  if (setting.value === undefined || setting.value === null) return setting.origin === "default" ? "not set" : "";
  if (setting.type === "data") return `${setting.shownSize ?? setting.size ?? Math.floor(setting.value.length * 3 / 4)} bytes`;
  const value = setting.value;
  return visible(typeof value === "string" ? value : JSON.stringify(value)).slice(0, 300);
}

export function authorText(author) {
  if (!author) return "";
  const actor = author.actor ? ` for ${author.actor}` : "";
  return visible(`${author.program}, ${author.user}@${author.host}${actor}`);
}

export function timeText(text) { return text ? new Date(text).toLocaleString() : ""; }

/// A time in few letters: of today its hour, of this year its day.
export function shortTime(text, now = new Date()) {
  if (!text) return "";
  const time = new Date(text);
  if (time.toDateString() === now.toDateString()) return time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const isThisYear = time.getFullYear() === now.getFullYear();
  return time.toLocaleDateString([], { day: "numeric", month: "short", year: isThisYear ? undefined : "2-digit" });
}

/// How long a secret stays in the clipboard, in seconds.
const clipboardTime = 30;

/// Copies a text to the clipboard and says so, or says why not. A secret is removed from there after a while.
export async function copy(text, { isSecret = false } = {}) {
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) {
    return message(`It could not be copied: ${error.message}`, { isError: true });
  }
  message(isSecret ? `Copied, for ${clipboardTime} seconds.` : "Copied.");
  if (isSecret) setTimeout(clear, clipboardTime * 1000);
}

/// A page may write to the clipboard only while it has the focus.
async function clear() {
  try { await navigator.clipboard.writeText(""); } catch { addEventListener("focus", clear, { once: true }); }
}

/**
 * Shows a message for a while, optionally with a button.
 *
 * @param {string} text
 * @param {{ button?: string, action?: () => void, isError?: boolean, seconds?: number }} options
 */
export function message(text, { button, action, isError = false, seconds = 8 } = {}) {
  const node = element("p", { class: isError ? "message error" : "message" }, text);
  const remove = () => node.remove();
  if (button) node.append(element("button", { type: "button", onclick: () => { remove(); action(); } }, button));
  node.append(element("button", { type: "button", class: "plain", "aria-label": "Dismiss", onclick: remove }, "×"));
  document.getElementById("messages")?.append(node);
  setTimeout(remove, seconds * 1000);
}
