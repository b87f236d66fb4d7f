// The page: connects its parts.

import { begin, call, follow, whenSlow } from "./server.js";
import { isPossible } from "./channel.js";
import { Changes, newText } from "./changes.js";
import { Details } from "./details.js";
import { SettingsList, Sidebar } from "./list.js";
import { copy, element, message, nameOf, secretField, visible } from "./elements.js";
import { askName, askPassphrase, examine, review, showHelp } from "./dialogs.js";
import { copyColumn, copySetting, exportSettings, importFile } from "./plans.js";
import { showFleets } from "./fleets.js";
import { showTimeline } from "./timeline.js";

/** @type {(id: string) => any} */
const node = (id) => document.getElementById(id);
const searchBox = node("search");
let about = {};
let keeping = Promise.resolve();
const compare = node("compare");
const onlyDifferent = node("only-different");
let isNarrow = matchMedia("(max-width: 50rem)");

const changes = new Changes(node("pending"), node("undo"), node("redo"), {
  saved(settings) {
    list.mark(settings.map(({ collection, key }) => [collection, key]));
    details.saved(settings);
    refresh({ isAutomatic: false });
  },
  changed() { list.draw(); },
  met() { details.draw(); },
  refused({ setting }) { showChange(setting); },
  review: (collected) => review(collected, () => changes.save()),
  unlock: () => askPassphrase(about.vaultKeyFile),
});

/// Shows what has happened to an unsaved change; that of a row gets the details for it.
function showChange(setting) {
  if (setting && (!details.setting || !changes.get(details.setting))) details.show(setting);
  else details.draw();
}

const details = new Details(node("details"), changes, {
  close() {
    details.hide();
    document.body.classList.remove("editing");
    node("list").focus();
  },
  isReadOnly: () => about.readOnly,
  mayReveal: () => about.mayReveal,
  copyAcross: (setting, to) => copySetting(setting, to, changes),
  unlock: () => askPassphrase(about.vaultKeyFile),
});

const list = new SettingsList(node("list"), node("columns"), node("rows"), {
  // On a phone the details would hide the list.
  selected(setting) { if (!isNarrow.matches || !details.box.hidden) details.show(setting); },
  opened: openSelected,
  counted,
  pendingFor: (setting) => changes.get(setting),
  failed,
  isReadOnly: () => about.readOnly,
  save: (change) => changes.saveInTurn(change),
  isOwn: (before, after) => changes.isOwn(before, after),
  copyColumn: (from, others) => copyColumn(from, others, changes),
  collect(change) {
    changes.collect(change);
    details.show(change.setting);
  },
  arranged: keepView,
});

/// The program keeps the order and the folded sections, for the page when it is opened again.
function keepView() {
  // One after the other: the last one counts.
  keeping = keeping.then(() => call("view", { order: node("order").value, folded: [...list.folded.values()] })).catch(failed);
}

const sidebar = new Sidebar(node("collections"), node("collection-menu"), () => show());

function openSelected() {
  const setting = list.setting(list.selected);
  if (!setting) return;
  document.body.classList.add("editing");
  details.show(setting, { focus: true });
}

function counted({ total, collections, unlocked, problem, comparable, conflicts }) {
  const isComparing = list.columns !== null;
  compare.hidden = !comparable;
  onlyDifferent.parentElement.hidden = !isComparing;
  node("order").parentElement.hidden = isComparing;
  node("fleet").hidden = conflicts === null;
  node("fleet").textContent = conflicts > 0 ? `Fleet (${conflicts === 1 ? "1 conflict" : `${conflicts} conflicts`})` : "Fleet";
  node("count").textContent = total === 1 ? "1 setting" : `${total.toLocaleString()} settings`;
  node("vault").hidden = !unlocked;
  node("empty").textContent = total > 0 ? "" : problem ?? emptyText();
  sidebar.show(collections);
}

/// Why the list is empty.
function emptyText() {
  const { search, filter: kind, onlyDifferent } = filter();
  if (onlyDifferent && list.columns !== null) return "Nothing differs between the columns.";
  if (search.trim() !== "") return "No setting matches the search.";
  if (kind === "changed") return "Nothing differs from its default.";
  if (kind === "problems") return "There are no problems.";
  return about.readOnly ? "There are no settings." : "There are no settings yet. “New…” makes one.";
}

function filter() {
  return {
    search: searchBox.value,
    filter: /** @type {HTMLInputElement} */ (document.querySelector("input[name=filter]:checked")).value,
    collection: sidebar.current,
    order: node("order").value,
    columns: compare.getAttribute("aria-pressed") === "true",
    onlyDifferent: onlyDifferent.checked,
  };
}

async function show() {
  try { await list.show(filter()); } catch (error) { failed(error); }
}

async function refresh({ isAutomatic = true } = {}) {
  try { await list.reload({ isAutomatic }); } catch (error) { failed(error); }
}

function failed(error) {
  if (isOver || error.kind === "session") return;
  message(visible(error.message), { isError: true });
}

const connection = { isThere: true, isSlow: false };

function drawConnection() {
  const text = !connection.isThere ? "Not connected to the program." : connection.isSlow ? "The program has not answered yet." : "";
  if (node("connection")) node("connection").textContent = text;
}

let isOver = false;

const reasons = {
  idle: "It was not used for the time that “prefs ui --ttl” sets.",
  lastTab: "Its last tab was closed a minute ago.",
  ended: "Its program was ended.",
  secure: "A browser shows it only at an address of this computer, or one that begins with https.",
};

/// The page has ended: nothing of the store stays on the screen, except what was typed and not saved.
function over(reason) {
  if (isOver) return;
  isOver = true;
  details.hide();
  node("messages").replaceChildren();
  document.body.className = "over";
  const hint = "Press Enter in the terminal where “prefs ui” runs, or start it again, and open the address that it prints.";
  document.body.replaceChildren(element("main", { class: "over" }, element("h1", {}, "This page has ended"),
    element("p", {}, reasons[reason] ?? "Its program no longer answers, or this tab was reloaded."), element("p", {}, hint),
    changes.pending.size > 0 && unsaved([...changes.pending.values()])), node("messages"));
}

/// The unsaved changes, to be copied: they exist only in this tab.
function unsaved(collected) {
  return element("section", { id: "unsaved", "aria-labelledby": "unsaved-title" },
    element("h2", { id: "unsaved-title" }, "Not saved"),
    element("p", {}, "These changes are only in this tab. Open the new address in another one, and copy them."),
    element("ul", {}, collected.map((change) => {
      const isHidden = change.type === "secret" || change.setting.hidden;
      const name = visible(nameOf(change.setting));
      const text = change.typed ?? change.text;
      const field = text === undefined ? element("strong", {}, newText(change))
        : isHidden ? secretField({ value: text, readOnly: true, "aria-label": name })
          : element("textarea", { value: text, readOnly: true, rows: Math.min(10, text.split("\n").length), "aria-label": name });
      return element("li", {}, element("p", {}, element("strong", {}, name)), field,
        text !== undefined && element("button", { type: "button", onclick: () => copy(text, { isSecret: isHidden }) }, "Copy"));
    })));
}

// Keys and buttons

searchBox.addEventListener("input", show);
searchBox.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "Enter") {
    event.preventDefault();
    node("list").focus();
    list.select(Math.max(0, list.selected));
  } else if (event.key === "Escape" && searchBox.value === "") {
    node("list").focus();
  }
});
node("order").addEventListener("change", () => { keepView(); show(); });
onlyDifferent.addEventListener("change", show);
compare.addEventListener("click", () => {
  compare.setAttribute("aria-pressed", list.columns === null ? "true" : "false");
  onlyDifferent.checked = false;
  show();
});
node("fleet").addEventListener("click", () => showFleets({
  changes, isReadOnly: about.readOnly, unlock: () => askPassphrase(about.vaultKeyFile),
  shows(setting) {
    document.body.classList.add("editing");
    details.show(setting, { focus: true });
  },
}));
document.querySelectorAll("input[name=filter]").forEach((input) => input.addEventListener("change", show));
node("help").addEventListener("click", showHelp);
node("doctor").addEventListener("click", examine);
node("export").addEventListener("click", () => exportSettings(filter()));
node("timeline").addEventListener("click", () => showTimeline({
  changes, collection: sidebar.current, isReadOnly: about.readOnly, unlock: () => askPassphrase(about.vaultKeyFile),
}));
const importing = (file) => importFile(file, {
  changes, collection: sidebar.current, collections: sidebar.collections.map(({ name }) => name),
  unlock: () => askPassphrase(about.vaultKeyFile),
});
node("import").addEventListener("click", () => node("import-file").click());
node("import-file").addEventListener("change", ({ target }) => {
  importing(target.files[0]);
  // The same file can be chosen again.
  target.value = "";
});
addEventListener("dragover", (event) => {
  if (isOver || about.readOnly || !event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
addEventListener("drop", (event) => {
  document.body.classList.remove("dropping");
  const { files } = event.dataTransfer;
  const target = /** @type {Element} */ (event.target);
  // A field for a file takes it itself.
  if (isOver || about.readOnly || files.length === 0 || target.matches("input[type=file]")) return;
  event.preventDefault();
  if (files.length > 1) message("Drop one file at a time.", { isError: true });
  else if (!document.querySelector("dialog")) importing(files[0]);
});
node("vault").addEventListener("click", () => call("lock").catch(failed));
node("new").addEventListener("click", async () => {
  const found = await askName(sidebar.current, sidebar.collections);
  if (!found) return;
  document.body.classList.add("editing");
  await details.show(found.version === null && !found.declared ? { ...found, isNew: true, text: "" } : found, { focus: true });
});
document.addEventListener("keydown", (event) => {
  if (isOver) return;
  const isTyping = /** @type {Element} */ (event.target).matches("input:not([type=radio]):not([type=checkbox]), textarea, select");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    searchBox.focus();
    searchBox.select();
  } else if (event.key === "?" && !isTyping && !document.querySelector("dialog")) {
    event.preventDefault();
    showHelp();
  } else if (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !isTyping) {
    event.preventDefault();
    if (event.shiftKey) changes.redo();
    else changes.undo();
  } else if (event.key === "y" && event.ctrlKey && !isTyping) {
    event.preventDefault();
    changes.redo();
  } else if (event.key === "Escape" && !details.box.hidden && !isTyping) {
    details.hooks.close();
  }
});
addEventListener("beforeunload", (event) => { if (changes.pending.size > 0) event.preventDefault(); });

// Typing counts as use of the page, though nothing is sent yet.
let lastUse = 0;
function use() {
  const now = Date.now();
  if (isOver || !about.idleSeconds || now - lastUse < Math.min(20, about.idleSeconds / 4) * 1000) return;
  lastUse = now;
  call("use").catch(() => {});
}
for (const name of ["input", "keydown", "pointerdown", "wheel"]) addEventListener(name, use, { passive: true, capture: true });

// Live

let timer;
let seen = [];

/// Handles many commits at once with a single look.
function committed({ keys }) {
  if (isOver) return;
  seen = seen && keys ? [...seen, ...keys] : keys;
  if (timer) return;
  timer = setTimeout(async () => {
    if (isOver) return;
    const names = seen;
    [timer, seen] = [undefined, []];
    const own = [...changes.own.values()];
    await refresh();
    changes.forget(own);
    if (names) list.mark(names);
    const affected = (setting) => !names || names.some(([collection, key]) => collection === setting.collection && key === setting.key);
    const edited = [...changes.pending.values()].filter(({ setting }) => affected(setting));
    const theirs = await Promise.all(edited.map(({ setting: { collection, key } }) =>
      call("setting", { collection, key }, { isAutomatic: true }).catch(() => undefined)));
    changes.meet(theirs.filter(Boolean));
    if (details.setting && affected(details.setting) && !changes.get(details.setting)) details.refresh();
  }, 100);
}

async function start() {
  try {
    about = await begin();
  } catch {
    return over(isPossible ? undefined : "secure");
  }
  node("store").textContent = visible(about.store) + (about.readOnly ? " (read-only)" : "");
  node("new").hidden = node("import").hidden = about.readOnly;
  node("undo").hidden = node("redo").hidden = about.readOnly;
  changes.takeUndoing(about.undoing);
  node("order").value = about.view.order;
  list.setFolded(about.view.folded);
  document.title = `Settings: ${about.store.split("/").at(-1)}`;
  await show();
  node("list").focus({ preventScroll: true });
  if (about.opens) {
    document.body.classList.add("editing");
    details.show(about.opens, { focus: true });
  }
  performance.mark("first-row");
  whenSlow((isSlow) => {
    connection.isSlow = isSlow;
    drawConnection();
  });
  follow({
    commit: committed,
    undoing: (state) => changes.takeUndoing(state),
    vault({ unlocked }) {
      node("vault").hidden = !unlocked;
      if (!unlocked) details.hideRevealed?.();
      refresh();
    },
    connection(isThere) {
      if (isOver) return;
      connection.isThere = isThere;
      drawConnection();
      if (isThere) committed({ keys: null });
    },
    end({ reason }) { over(reason); },
  });
}

start();
