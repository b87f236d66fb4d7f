// Environments as columns: a setting in a collection and in its environments, side by side.

import { collectionName, element, nameOf, shortValue, visible } from "./elements.js";

/// The settings of a row of the list: one, or one for each column, undefined where there is none.
export function cellsOf(entry) {
  if (!entry || entry.section) return [];
  return entry.cells ? entry.cells.map((cell) => cell?.setting) : [entry];
}

/// The name of a column: that of its environment, or the collection's own.
export function columnName(name, collection) {
  const parent = collection === null ? null : parentOf(collection);
  if (name === null) return parent === null ? "Collection itself" : collectionName(parent);
  return parent === null ? `@${name}` : `${visible(parent)}@${name}`;
}

/// The collection that a name is of, or of an environment of.
export function parentOf(collection) { return /^(.*)@[A-Za-z0-9_-]+$/s.exec(collection)?.[1] ?? collection; }

/// The row with the names of the columns.
///
/// - context: the chosen `collection` or null, `isReadOnly`, `copy(from, others)`, which copies all of a column to another one.
export function columnHead(columns, { collection, isReadOnly, copy }) {
  const parent = collection === null ? "" : parentOf(collection);
  const collections = columns.map((name) => name === null ? parent : `${parent}@${name}`);
  return element("div", { role: "row", class: "head" }, element("span", { class: "name", role: "columnheader" }, "Setting"),
    columns.map((name, column) => {
      const label = columnName(name, collection);
      return element("span", { role: "columnheader" }, element("span", { class: "label" }, label),
        collection !== null && !isReadOnly && columns.length > 1 && element("button", {
          type: "button", class: "plain", "aria-label": `Copy all that is set in ${label}`, title: `Copy all that is set in ${label}…`,
          onclick: () => copy(collections[column], collections.filter((_, other) => other !== column)),
        }, "Copy…"));
    }));
}

/// A setting with its values.
///
/// - context: `index`, `columns`, the `selected` one or -1, `editing`, `pendingFor(setting)`, `isMarked(setting)`, `open(column)`,
/// `edit(column)`.
export function columnRow(entry, properties, context) {
  return element("div", properties,
    element("span", { class: "name", role: "rowheader" },
      entry.collection !== "" && element("span", { class: "collection" }, `${visible(entry.collection)}/`),
      element("span", { class: "key", dir: "auto" }, visible(entry.key)),
      entry.summary && element("span", { class: "about", dir: "auto" }, visible(entry.summary))),
    entry.cells.map((cell, column) => cell ? valueCell(cell, column, context)
      : element("span", { class: "cell", role: "gridcell", id: `row-${context.index}-${column}` })));
}

function valueCell({ setting, differs }, column, { index, selected, editing, pendingFor, isMarked, open, edit }) {
  const pending = pendingFor(setting);
  const isInherited = setting.origin?.startsWith("parent:");
  const value = editing.cell(setting, pending);
  value.removeAttribute("role");
  if (value.classList.contains("editable")) value.addEventListener("click", (event) => { event.stopPropagation(); edit(column); });
  const words = [differs && "differs", pending && "unsaved", setting.problem && "problem", setting.locked && "locked"].filter(Boolean);
  const node = element("span", {
    class: ["cell", differs && "differs", isMarked(setting) && "fresh", (setting.origin === "default" || isInherited) && "unset",
      column === selected && "chosen"].filter(Boolean).join(" "),
    role: "gridcell", id: `row-${index}-${column}`, "aria-selected": column === selected ? "true" : undefined,
    title: `${visible(nameOf(setting))}: ${shortValue(setting)}`, onclick: () => open(column),
  }, value, element("span", { class: "summary" },
    words.map((word) => element("span", { class: `tag ${word}` }, word))),
  editing.reset(setting, pending));
  node.dataset.column = column;
  return node;
}
