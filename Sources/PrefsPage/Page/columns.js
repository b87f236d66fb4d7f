// A setting in collections side by side: in a collection, its environments and its tenants, and what an administrator gives for it.

import { collectionName, element, nameOf, shortValue, visible } from "./elements.js";

/// The settings of a row of the list: one, or one for each column, undefined where there is none.
export function cellsOf(entry) {
  if (!entry || entry.section) return [];
  return entry.cells ? entry.cells.map((cell) => cell?.setting) : [entry];
}

/// The collection that a column shows, in the family of `base`.
export function collectionOf({ tenant, environment }, base) {
  return `${tenant === null ? "" : `${tenant}/`}${base}${environment === null ? "" : `@${environment}`}`;
}

/// The name of a column. Without a `base` the rows are of several families, and it is what their collections have in common.
export function columnName(column, base) {
  const { tenant, environment, administrator } = column;
  const name = base !== null ? collectionName(collectionOf(column, base))
    : tenant === null && environment === null ? "Collection itself" : visible(collectionOf(column, tenant === null ? "" : "…"));
  if (!administrator) return name;
  return tenant === null ? "Administrator" : `Administrator, ${name}`;
}

/// The row with the names of the columns.
///
/// - context: the `base` of the family or null, `isReadOnly`, `copy(from, others)`, which copies all of a column to another one.
export function columnHead(columns, { base, isReadOnly, copy }) {
  const places = base === null ? [] : columns.map((column) => ({ collection: collectionOf(column, base), administrator: column.administrator }));
  return element("div", { role: "row", class: "head" }, element("span", { class: "name", role: "columnheader" }, "Setting"),
    columns.map((column, index) => {
      const label = columnName(column, base);
      const what = column.administrator ? `Copy all that an administrator gives for ${columnName({ ...column, administrator: false }, base)}`
        : `Copy all that is set in ${label}`;
      const others = targets(places, places[index]);
      return element("span", { role: "columnheader" },
        element("span", { class: "label", title: column.administrator ? "What an administrator of this computer gives, in files" : undefined }, label),
        others.length > 0 && !isReadOnly && element("button", {
          type: "button", class: "plain", "aria-label": what, title: `${what}…`, onclick: () => copy(places[index], others),
        }, "Copy…"));
    }));
}

/// The collections that the value of a column can be copied to.
export function targets(places, from) {
  return places.filter((place) => !place.administrator && (from.administrator || place.collection !== from.collection))
    .map(({ collection }) => collection);
}

/// A setting with its values.
///
/// - context: `index`, the `selected` column or -1, `editing`, `pendingFor(setting)`, `isMarked(setting)`, `open(column)`,
/// `edit(column)`, and `copy(from, others)`.
export function columnRow(entry, properties, context) {
  return element("div", properties,
    element("span", { class: "name", role: "rowheader" },
      entry.collection !== "" && element("span", { class: "collection" }, `${visible(entry.collection)}/`),
      element("span", { class: "key", dir: "auto" }, visible(entry.key)),
      entry.summary && element("span", { class: "about", dir: "auto" }, visible(entry.summary))),
    entry.cells.map((cell, column) => cell ? valueCell(cell, column, entry, context)
      : element("span", { class: "cell", role: "gridcell", id: `row-${context.index}-${column}` })));
}

function valueCell({ setting, differs }, column, entry, { index, selected, editing, pendingFor, isMarked, open, edit, copy }) {
  const isGiven = setting.given !== undefined;
  const pending = pendingFor(setting);
  const isInherited = setting.origin?.startsWith("parent:");
  const value = editing.cell(setting, pending);
  value.removeAttribute("role");
  if (value.classList.contains("editable")) value.addEventListener("click", (event) => { event.stopPropagation(); edit(column); });
  const words = [differs && "differs", pending && "unsaved", setting.problem && "problem",
    isGiven ? setting.given : setting.locked && "locked"].filter(Boolean);
  const node = element("span", {
    class: ["cell", differs && "differs", isMarked(setting) && "fresh", (setting.origin === "default" || isInherited) && "unset",
      column === selected && "chosen"].filter(Boolean).join(" "),
    role: "gridcell", id: `row-${index}-${column}`, "aria-selected": column === selected ? "true" : undefined,
    title: `${visible(nameOf(setting))}: ${shortValue(setting)}${isGiven ? `, from ${visible(setting.origin)}` : ""}`, onclick: () => open(column),
  }, value, element("span", { class: "summary" },
    words.map((word) => element("span", { class: `tag ${word}` }, word))),
  isGiven ? copyButton(setting, entry, editing, copy) : editing.reset(setting, pending));
  node.dataset.column = column;
  return node;
}

/// Copies what an administrator gives to one of the collections beside it.
function copyButton(setting, entry, editing, copy) {
  if (editing.hooks.isReadOnly()) return undefined;
  const others = cellsOf(entry).filter((other) => other && other.given === undefined).map(({ collection }) => collection);
  const label = `Copy what an administrator gives for ${visible(nameOf(setting))}`;
  return element("button", {
    type: "button", class: "plain copy", tabIndex: -1, title: `${label}…`, "aria-label": label,
    onclick: (event) => {
      event.stopPropagation();
      copy({ collection: setting.collection, key: setting.key, administrator: true }, others);
    },
  }, "Copy…");
}
