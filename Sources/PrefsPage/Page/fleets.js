// The fleets of the store: where settings go, who the members are, and conflicts, which one click ends.

import { element, fill, nameOf, timeText, visible } from "./elements.js";
import { asking, open } from "./dialogs.js";
import { difference } from "./details.js";

const standings = { invited: "has not joined yet", admitted: "", many: "many hosts" };

/// - context: `changes`, `isReadOnly`, `unlock()`, and `shows(setting)`, which opens it beside the list.
export async function showFleets({ changes, isReadOnly, unlock, shows }) {
  const box = element("div", { class: "fleets", tabIndex: -1 });
  let leave;

  const ask = asking(unlock);

  const resolve = async ({ store, fleet, conflict, collection, key }, restore) => {
    const answer = await ask("resolve", { store, fleet, conflict, restore });
    if (answer && restore) changes.remember(answer, `Set ${visible(nameOf({ collection, key }))} to the other value.`);
    await load();
    box.focus();
  };

  const conflictItem = (conflict) => {
    const name = visible(nameOf(conflict));
    const winner = conflict.winner === null ? "a removal" : visible(conflict.winner);
    const both = conflict.present !== null && conflict.lost !== null;
    return element("li", {},
      element("div", { class: "line" },
        element("button", { type: "button", class: "link", onclick: () => { leave(); shows(conflict); } }, name),
        element("small", {}, `${visible(conflict.loser)} lost to ${winner}, ${timeText(conflict.time)}`)),
      conflict.isDeclaration ? element("p", {}, "Two hosts declare it differently. The command “prefs fleet conflicts” has both.")
        : both ? difference(visible(conflict.present), visible(conflict.lost))
          : element("p", { class: "difference" }, conflict.lost === null ? "The other value is no longer known." : visible(conflict.lost)),
      !isReadOnly && element("div", { class: "line" },
        element("button", { type: "button", "aria-label": `Keep the present value of ${name}`, onclick: () => resolve(conflict, false) }, "Keep as it is"),
        !conflict.isDeclaration && conflict.lost !== null && element("button", {
          type: "button", class: "restore", "aria-label": `Use the other value of ${name}`, onclick: () => resolve(conflict, true),
        }, "Use the other value")));
  };

  const load = async () => {
    const answer = await ask("fleets");
    if (!answer) return;
    const { fleets, conflicts, members } = answer;
    fill(box,
      element("ul", {}, fleets.map(({ carrier, synced }) => element("li", {}, visible(carrier),
        element("small", {}, synced === null ? " never in sync" : ` last in sync ${timeText(synced)}`)))),
      element("h3", {}, "Conflicts"),
      conflicts.length === 0 ? element("p", { id: "no-conflicts" }, "There are none: no setting was changed on two hosts at once.")
        : element("ul", { id: "conflicts" }, conflicts.map(conflictItem)),
      element("h3", {}, "Members"),
      members === null ? element("p", {}, "The command “prefs fleet members” shows them: this page could not ask it.")
        : element("table", { id: "members" }, element("thead", {}, element("tr", {},
          ["Name", "Role", "Invited"].map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, members.map((member) => element("tr", {},
          element("th", { scope: "row" }, visible(member.name), member.isThisStore && element("span", { class: "tag" }, "this store")),
          element("td", {}, member.role, standings[member.standing] && element("small", {}, ` ${standings[member.standing]}`)),
          element("td", {}, timeText(member.invited)))))));
  };

  await load();
  return open("The fleet", box, [{ label: "Close", isMain: true, act: (close) => close() }], (close) => { leave = close; });
}
