// Files in and out: what a file would change is shown, and saved as one.

import { call } from "./server.js";
import { collectionName, element, fill, message, nameOf, visible } from "./elements.js";
import { cancel, open } from "./dialogs.js";
import { difference } from "./details.js";
import { download } from "./editors.js";

/// The changes that the program has prepared, as a list.
export function planned({ changes, count, notes }) {
  return [
    count === 0 && element("p", {}, "Nothing would change."),
    element("ul", { class: "review" }, changes.map((change) => element("li", {}, element("strong", {}, visible(nameOf(change))),
      // Secrets stand here by their lengths.
      change.before === change.after ? element("p", { class: "difference" }, "another value of the same length")
        : change.after === null ? element("p", { class: "difference" }, element("del", {}, visible(change.before)), " → removed")
          : difference(visible(change.before ?? ""), visible(change.after)),
      change.problem && element("p", { class: "problem" }, visible(change.problem))))),
    count > changes.length && element("p", {}, `And ${(count - changes.length).toLocaleString()} more.`),
    notes.map((note) => element("p", { class: "notes" }, note)),
  ];
}

/// The label of the button that makes them.
export function saveLabel({ plan, count }) {
  return plan === null ? "Save" : count === 1 ? "Save 1 change" : `Save ${count.toLocaleString()} changes as one`;
}

/// Shows what the program has prepared, and saves it. Resolves to whether it was saved.
export async function reviewPlan(title, plan, changes) {
  const save = await open(title, [element("p", {}, "All changes are saved in one transaction, or none."), planned(plan)],
    [{ ...cancel, label: "Back" }, { label: saveLabel(plan), id: "apply", isMain: true, isDisabled: plan.plan === null,
      act: (close) => close(true) }]);
  return save === true && changes.apply(plan);
}

/// Shows what copying the value of a setting to another collection would change, and saves that.
export async function copySetting({ collection, key }, to, changes) {
  const plan = await changes.plan("copy", { from: collection, to, key });
  if (plan) await reviewPlan(`Copy to ${collectionName(to)}`, plan, changes);
}

/// Shows what copying a column, or a setting of it, to another collection would change, and saves that.
///
/// - from: Its `collection`, and the `key` if it is one setting; `administrator` for what one gives.
export async function copyColumn(from, others, changes) {
  const menu = element("select", { id: "copy-into" }, others.map((name) => element("option", { value: `c:${name}` }, collectionName(name))));
  const box = element("div", { role: "status" });
  let plan;
  const show = async () => {
    const into = menu.value;
    plan = undefined;
    const { collection, key, administrator } = from;
    const answer = await changes.plan("copy", { from: collection, to: into.slice(2), key, administrator });
    // Another one was chosen meanwhile, or the dialog was closed.
    if (into !== menu.value || !box.isConnected) return;
    plan = answer;
    fill(box, plan && planned(plan));
    const save = /** @type {HTMLButtonElement} */ (document.getElementById("apply"));
    save.textContent = plan ? saveLabel(plan) : "Save";
    save.disabled = !plan || plan.plan === null;
  };
  menu.addEventListener("change", show);
  const what = from.key === undefined ? collectionName(from.collection) : visible(nameOf(from));
  const closed = open(from.administrator ? `Copy what an administrator gives for ${what}` : `Copy ${what}`, [
    element("p", {}, element("label", {}, "To ", menu)),
    element("p", {}, "What is set there and not here stays. All changes are saved in one transaction, or none."), box,
  ], [cancel, { label: "Save", id: "apply", isMain: true, act: (close) => { if (plan && plan.plan !== null) close(true); } }]);
  show();
  if (await closed) await changes.apply(plan);
}

/// Asks for the collection of a file's settings, shows what the file would change, and saves that.
///
/// - context: `changes`; the chosen `collection`, or null, and all `collections`; `unlock()`.
export async function importFile(file, { changes, collection, collections, unlock }) {
  const data = base64(new Uint8Array(await file.arrayBuffer()));
  const byName = "";
  const places = [...new Set([...(collection === null ? [] : [collection]), ...collections])];
  const menu = element("select", { id: "import-into" },
    element("option", { value: byName }, "the collections that the file names"),
    places.map((name) => element("option", { value: `c:${name}` }, collectionName(name))));
  const box = element("div", { role: "status" });
  let plan;
  const ask = async (value) => {
    const into = value === byName ? null : value.slice(2);
    try {
      return { value, plan: await call("import", { name: file.name, data, collection: into }) };
    } catch (error) {
      if (error.kind === "vaultLocked" && await unlock()) return ask(value);
      return { value, error };
    }
  };
  const show = (answer) => {
    plan = answer.plan;
    menu.value = answer.value;
    fill(box, plan ? planned(plan) : element("p", { class: "problem" }, visible(answer.error.message)));
    const save = /** @type {HTMLButtonElement} */ (document.getElementById("apply"));
    save.textContent = plan ? saveLabel(plan) : "Save";
    save.disabled = !plan || plan.plan === null;
  };
  let answer = await ask(byName);
  // A file without names of collections is for the chosen one.
  if (answer.error && places.length > 0 && ["usage", "format"].includes(answer.error.kind)) {
    const other = await ask(`c:${places[0]}`);
    if (other.plan) answer = other;
  }
  menu.addEventListener("change", async () => show(await ask(menu.value)));
  const closed = open(`Import ${visible(file.name)}`, [
    element("p", {}, element("label", {}, "Into ", menu)),
    element("p", {}, "All changes are saved in one transaction, or none. Settings that the file does not have stay."), box,
  ], [cancel, { label: "Save", id: "apply", isMain: true, act: (close) => { if (plan && plan.plan !== null) close(true); } }]);
  show(answer);
  if (await closed) await changes.apply(plan);
}

const formats = [["json", "JSON"], ["yaml", "YAML"], ["toml", "TOML"], ["plist", "Property list"], ["env", "Variables (.env), of one collection"]];

/// Downloads the settings in the list as a file.
export async function exportSettings(filter) {
  const menu = element("select", { id: "export-format" }, formats.map(([value, name]) => element("option", { value }, name)));
  const problem = element("p", { class: "problem", role: "alert" });
  await open("Export", [
    element("p", {}, "The settings that the list shows and the store has, in plaintext except for secrets."),
    element("p", {}, element("label", {}, "Format ", menu)), problem,
  ], [cancel, { label: "Save file", isMain: true, act: async (close) => {
    try {
      const answer = await call("export", { ...filter, format: menu.value });
      const bytes = Uint8Array.from(atob(answer.data), (letter) => letter.charCodeAt(0));
      download(new Blob([bytes], { type: "application/octet-stream" }), answer.name);
      const left = answer.left > 0 ? ` ${answer.left} secrets are left out.` : answer.hidden > 0 ? ` ${answer.hidden} secrets are not shown.` : "";
      message(`${answer.count.toLocaleString()} settings are in ${answer.name}.${left}`);
      close();
    } catch (error) {
      problem.textContent = visible(error.message);
    }
  } }]);
}

function base64(bytes) {
  let binary = "";
  for (let start = 0; start < bytes.length; start += 32768) binary += String.fromCharCode(...bytes.subarray(start, start + 32768));
  return btoa(binary);
}
