// All changes by time, and the ways back: of one, and to a moment.

import { authorText, collectionName, element, fill, nameOf, timeText, visible } from "./elements.js";
import { asking, open, review } from "./dialogs.js";
import { difference, keepHistory } from "./details.js";
import { dateField } from "./editors.js";
import { reviewPlan } from "./plans.js";

const words = { inserted: "new", updated: "changed", removed: "removed", expired: "expired" };

/// - context: `changes`, the chosen `collection` or null, `isReadOnly`, `unlock()`.
export function showTimeline({ changes, collection, isReadOnly, unlock }) {
  const search = element("input", { type: "search", "aria-label": "Search changes", placeholder: "Name, person or program", spellcheck: false });
  const moment = dateField(undefined, { "aria-label": "A moment", id: "moment" });
  const list = element("ol", { "aria-label": "Changes", tabIndex: 0 });
  const notes = element("div", { class: "notes" });
  const more = element("button", { type: "button", hidden: true, onclick: () => load() }, "Earlier ones");
  let next = null;
  let shownStore;
  let round = 0;

  const ask = asking(unlock);

  /// Closes this dialog first: one at a time.
  let leave;
  const putBack = async (change, store) => {
    const found = await ask("setting", { collection: change.collection, key: change.key });
    if (!found) return;
    // A save is refused if the store is no longer the one that the change was read from.
    const setting = { ...found, store };
    leave();
    const back = change.restore === null ? { setting, remove: true } : { setting, restore: change.restore, earlier: change.before };
    review([back], () => changes.save([back]));
  };

  const row = (change, store) => element("li", {},
    element("div", { class: "line" },
      element("span", {}, element("strong", {}, visible(nameOf(change))), ` ${words[change.change] ?? change.change} `,
        element("small", {}, `${timeText(change.time)}${change.author ? `, ${authorText(change.author)}` : ""}`)),
      !isReadOnly && (change.restore !== null || change.isNew) && element("button", {
        type: "button", class: "back", "aria-label": `Put back ${visible(nameOf(change))} as it was before`, onclick: () => putBack(change, store),
      }, "Put back")),
    (change.before !== null || change.after !== null) && (change.before === change.after
      ? element("p", { class: "difference" }, visible(change.after)) : difference(visible(change.before ?? ""), visible(change.after ?? ""))));

  const load = async ({ isFresh = false } = {}) => {
    const now = round += 1;
    const answer = await ask("timeline", { collection, search: search.value, before: isFresh ? null : next });
    if (!answer || now !== round) return;
    const { store } = answer;
    if (!isFresh && store !== shownStore) return load({ isFresh: true });
    shownStore = store;
    next = answer.next;
    if (isFresh) list.replaceChildren();
    list.append(...answer.changes.map((change) => row(change, store)));
    if (list.children.length === 0) list.append(element("li", {}, "The store remembers no such change."));
    more.hidden = next === null;
    fill(notes, answer.without.map((name) => element("p", { class: "line" },
      `${collectionName(name)} keeps no history: what was there before a change is not known.`,
      !isReadOnly && element("button", { type: "button", onclick: async () => { if (await keepHistory(name)) load({ isFresh: true }); } },
        "Keep it from now on"))));
  };

  search.addEventListener("input", () => load({ isFresh: true }));
  // Enter would close the dialog.
  search.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  const goBack = async () => {
    const date = moment.read();
    if (!date) return moment.node.focus();
    const plan = await ask("moment", { moment: date, collection });
    if (!plan) return undefined;
    leave();
    return reviewPlan(`Back to ${timeText(date)}`, plan, changes);
  };
  moment.node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    goBack();
  });
  load({ isFresh: true });
  return open(collection === null ? "Timeline" : `Timeline of ${collectionName(collection)}`, element("div", { class: "timeline" },
    element("p", { class: "line" }, search),
    list, more, notes,
    !isReadOnly && element("p", { class: "line" }, "Put everything back as it was at ", moment.node,
      element("button", { type: "button", id: "go-back", onclick: goBack }, "Show what would change"))),
  [{ label: "Close", isMain: true, act: (close) => close() }], (close) => { leave = close; });
}
