// The dialogs.

import { call, unlock } from "./server.js";
import { authorText, element, secretField, message, nameOf, shortValue, timeText, visible } from "./elements.js";
import { difference, nameProblem } from "./details.js";
import { newText } from "./changes.js";

/**
 * Shows a dialog; once it is closed, resolves to the value of the button that closed it.
 *
 * @param {string} title
 * @param {any} content
 * @param {{ label: string, act: (close: (result?: any) => void) => any, isMain?: boolean, id?: string, isDisabled?: boolean }[]} buttons
 * @param {(close: (result?: any) => void) => void} opened Gets the function that closes it.
 * @returns {Promise<any>}
 */
export function open(title, content, buttons, opened = () => {}) {
  return new Promise((resolve) => {
    const dialog = element("dialog", { "aria-labelledby": "dialog-title" });
    const close = (result) => { dialog.close(); dialog.remove(); resolve(result); };
    opened(close);
    const form = element("form", { onsubmit: (event) => { event.preventDefault(); if (!main?.isDisabled) main?.act(close); } },
      element("h2", { id: "dialog-title" }, title), content,
      element("div", { class: "line end" }, buttons.map(({ label, act, isMain, id, isDisabled }) => element("button", {
        id, disabled: isDisabled, type: isMain ? "submit" : "button", class: isMain ? "main" : "", onclick: isMain ? undefined : () => act(close),
      }, label))));
    const main = buttons.find(({ isMain }) => isMain);
    dialog.append(form);
    dialog.addEventListener("cancel", (event) => { event.preventDefault(); close(undefined); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/// Returns a function that calls the program, and calls it again once the vault has been unlocked. It says what else fails, and resolves to
/// undefined then.
export function asking(openVault) {
  return async function ask(name, request) {
    try {
      return await call(name, request);
    } catch (error) {
      if (error.kind === "vaultLocked" && await openVault()) return ask(name, request);
      message(visible(error.message), { isError: true });
      return undefined;
    }
  };
}

export const cancel = { label: "Cancel", act: (close) => close(undefined) };

/// Asks for the passphrase of the vault, or whether to use the given key file. Resolves to whether the vault is unlocked.
export async function askPassphrase(hasKeyFile) {
  const input = secretField({ id: "passphrase", required: !hasKeyFile });
  const problem = element("p", { class: "problem", role: "alert" });
  const isOpen = await open("The vault is locked", [
    element("p", {}, "Sealed collections have their own passphrase. It is sent only to the program that serves this page. The vault is locked again after a while."),
    hasKeyFile && element("p", {}, "Leave it empty to use the key file that “prefs ui” was started with."),
    element("label", {}, "Passphrase ", input), problem,
  ], [cancel, { label: "Unlock", isMain: true, act: async (close) => {
    try {
      await unlock(input.value);
      input.value = "";
      close(true);
    } catch (error) {
      problem.textContent = error.message;
      input.select();
    }
  } }]);
  return isOpen ?? false;
}

/// Shows the effect of changes, and saves them together. Resolves once it is closed.
export function review(changes, save) {
  const rows = changes.map((change) => {
    const { setting } = change;
    const now = setting.value === undefined || setting.value === null ? "" : shortValue(setting);
    const isHidden = setting.hidden || change.type === "secret";
    return element("li", {}, element("strong", {}, visible(nameOf(setting))),
      isHidden ? element("p", { class: "difference" }, newText(change)) : difference(now, newText(change)),
      change.problem && element("p", { class: "problem" }, change.problem),
      change.theirs && element("p", { class: "problem" }, `${authorText(change.theirs.author)} changed it in the meantime: ${shortValue(change.theirs)}`));
  });
  const mayBeSaved = !changes.some(({ problem, theirs }) => problem || theirs);
  /** @type {Parameters<typeof open>[2]} */
  const buttons = [{ ...cancel, label: "Back" }];
  if (mayBeSaved) {
    buttons.push({ label: changes.length > 1 ? `Save ${changes.length} changes as one` : "Save", isMain: true,
      act: (close) => { close(true); save(); } });
  }
  return open("What will change", [element("p", {}, "All changes are saved in one transaction, or none."), element("ul", { class: "review" }, rows)], buttons);
}

/// Asks for the name of a new setting; suggests the existing collections. Resolves to the setting as the program describes it.
export async function askName(collection, collections) {
  const place = element("input", { type: "text", value: collection ?? "", id: "new-collection", spellcheck: false, list: "new-collections" });
  const problem = element("p", { class: "problem", role: "alert" });
  const key = element("input", { type: "text", id: "new-key", spellcheck: false, required: true });
  return open("A new setting", [
    element("p", {}, element("label", {}, "Collection ", place)), element("p", {}, element("label", {}, "Key ", key)),
    element("datalist", { id: "new-collections" }, collections.map(({ name }) => element("option", { value: name }))), problem,
  ], [cancel, { label: "Go on", isMain: true, act: async (close) => {
    const name = { collection: place.value, key: key.value };
    problem.textContent = nameProblem(name) ?? "";
    if (problem.textContent !== "") return;
    try {
      close(await call("setting", { ...name, isNew: true }));
    } catch (error) {
      problem.textContent = visible(error.message);
    }
  } }]);
}

/// Shows the report of the doctor.
export async function examine() {
  let report;
  let fleets;
  try {
    ({ report, fleets } = await call("doctor"));
  } catch (error) {
    return message(visible(error.message), { isError: true });
  }
  const list = (title, sentences) => sentences.length > 0
    && [element("h3", {}, title), element("ul", {}, sentences.map((text) => element("li", {}, visible(text))))];
  return open("The state of the store", [
    element("p", { id: "verdict" }, report.ok ? "No problems found." : "Problems found."),
    list("Problems", report.problems), list("Notes", report.notes),
    element("dl", {}, [
      ["Store", report.path], ["Values checked", report.checkedValues], ["Pages checked", report.checkedPages],
      ["Fleet", fleets.map(({ carrier, synced }) => `${carrier}, ${synced ? `in sync since ${timeText(synced)}` : "never synced"}`).join("; ") || undefined],
      ["Opens with", report.slots?.map(({ kind, label }) => label ? `${kind} “${label}”` : kind).join(", ")],
    ].filter(([, value]) => value !== undefined).map(([name, value]) => [element("dt", {}, name), element("dd", {}, visible(String(value)))])),
  ], [{ label: "Close", isMain: true, act: (close) => close() }]);
}

/// What a search takes, and what keys do.
export function showHelp() {
  const rows = (entries) => element("dl", {}, entries.map(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));
  const keys = (...names) => names.map((name, index) => [index > 0 && " ", element("kbd", {}, name)]);
  return open("Search words and keys", [
    element("h3", {}, "In the search"),
    rows([
      ["theme dark", "settings that have both words in their name, summary or text"],
      ["type:int", "settings of a type"],
      ["changed:2d", "changed in the last two days; also changed:12h, changed:2026-01-31"],
      ["by:ada", "last changed by this program, user, host or actor"],
      ["is:problem", "what the program does not accept; also is:changed, is:secret, is:sealed, is:locked, is:expiring, is:due"],
    ]),
    element("h3", {}, "In the list"),
    rows([
      [keys("/"), "search"], [keys("↑", "↓"), "walk through the list"],
      [keys("←", "→"), "fold a section; walk through the columns"], [keys("Enter"), "edit the setting beside the list"],
      [keys("F2"), "edit the value in its row; Enter saves, Escape goes back"],
      [keys("Ctrl", "Z"), "undo the last save"], [keys("Ctrl", "Y"), "redo it"], [keys("?"), "show this"],
    ]),
  ], [{ label: "Close", isMain: true, act: (close) => close() }]);
}
