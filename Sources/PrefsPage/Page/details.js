// The selected setting: its editor, its declaration, and its history.

import { call } from "./server.js";
import { lineChart } from "./chart.js";
import { authorText, collectionName, copy, element, fill, identity, isSameVersion, marked, message, nameOf, shortValue, timeText, visible } from "./elements.js";
import { dateField, editedType, editorFor, types } from "./editors.js";
import { baseType, typeText } from "./limits.js";
import { newText } from "./changes.js";

/// How long a revealed value is shown, in seconds.
const revealTime = 10;

export class Details {
  /// - hooks: `close()`, `isReadOnly()`, `mayReveal()`, `unlock()`, and `copyAcross(setting, collection)`.
  constructor(box, changes, hooks) {
    this.box = box;
    this.changes = changes;
    this.hooks = hooks;
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("save", () => this.save());
    // A revealed secret is hidden when the window is hidden or loses the focus.
    addEventListener("blur", () => this.hideRevealed?.());
    document.addEventListener("visibilitychange", () => this.hideRevealed?.());
  }

  /// Shows a setting; `isNew` if it does not exist yet.
  async show(name, { focus = false } = {}) {
    const round = this.round = (this.round ?? 0) + 1;
    let setting;
    try {
      setting = name.isNew ? name : await call("setting", { collection: name.collection, key: name.key }, { isAutomatic: !focus });
    } catch (error) {
      message(visible(error.message), { isError: true });
      return;
    }
    if (round !== this.round) return;
    this.take(setting);
    if (focus) this.focus();
  }

  /// Shows the setting as it is now, unless the user has chosen another one by the time of the answer.
  async refresh() {
    const { round, setting } = this;
    if (!setting || setting.isNew) return;
    try {
      const now = await call("setting", { collection: setting.collection, key: setting.key }, { isAutomatic: true });
      if (round === this.round && this.setting && identity(this.setting) === identity(setting)) this.take(now);
    } catch (error) {
      message(visible(error.message), { isError: true });
    }
  }

  /// Shows a setting as the program has just described it.
  take(setting) {
    const pending = this.changes.get(setting);
    if (pending && !isSameVersion(pending.setting, setting)) pending.theirs = setting;
    const hadFocus = this.box.querySelector("#editor")?.contains(document.activeElement);
    this.setting = setting;
    this.type = pending?.type ?? editedType(setting);
    // Elements that look the same stay: the user may be typing into one.
    if (this.box.hidden || JSON.stringify(this.drawn) !== JSON.stringify(this.state())) {
      this.draw();
      if (hadFocus) this.focus();
    }
  }

  /// Shows the setting as a save has left it.
  saved(settings) {
    if (!this.setting) return;
    const own = settings.find((setting) => identity(setting) === identity(this.setting));
    if (own || !this.setting.isNew) this.take(own ?? this.setting);
  }

  /// Everything shown about the setting except its history. It is compared only when the program has described the setting again: writing
  /// a long text as JSON takes longer than typing a letter.
  state() {
    const { setting, ...pending } = this.changes.get(this.setting) ?? {};
    return [{ ...this.setting }, pending];
  }

  hide() {
    this.round = (this.round ?? 0) + 1;
    this.hideRevealed?.();
    this.setting = undefined;
    this.box.hidden = true;
    this.box.replaceChildren();
  }

  isShowing(names) {
    return this.setting && names.some(([collection, key]) => collection === this.setting.collection && key === this.setting.key);
  }

  focus() {
    const field = this.box.querySelector("#editor input, #editor textarea, #editor select") ?? this.box.querySelector("#editor button");
    (field ?? this.box).focus();
  }

  // Drawing

  draw() {
    const { setting } = this;
    if (!setting) return;
    const pending = this.changes.get(setting);
    this.box.hidden = false;
    fill(this.box,
      element("div", { class: "title" },
        element("h2", { id: "details-title", dir: "auto" }, visible(nameOf(setting))),
        element("button", { type: "button", class: "plain", "aria-label": "Close", onclick: () => this.hooks.close() }, "×")),
      setting.summary && element("p", { class: "summary", dir: "auto" }, visible(setting.summary)),
      setting.problem && element("p", { class: "problem", role: "note" }, `It ${visible(setting.problem)}`),
      setting.locked && element("p", { class: "locked", role: "note" },
        `An administrator of this computer has locked it, in ${visible(setting.locked)}.`),
      this.conflict(pending), this.valueArea(pending), this.chart(), this.facts(), this.datesArea(), this.renameArea(), this.copyArea(),
      this.historyArea(), this.links());
    this.say(pending?.problem);
    this.drawn = this.state();
  }

  conflict(pending) {
    const theirs = pending?.theirs;
    if (!theirs) return undefined;
    const author = authorText(theirs.author);
    return element("div", { class: "conflict", role: "alert" },
      element("p", {}, theirs.version === null ? "It was removed while you were editing."
        : `It changed while you were editing${author && `, by ${author}`}. It is now: `,
      theirs.version !== null && element("strong", {}, shortValue(theirs))),
      element("div", { class: "line" },
        element("button", { type: "button", onclick: () => { this.changes.drop(theirs); this.show(theirs); } }, "Take theirs"),
        element("button", { type: "button", onclick: () => {
          this.changes.keep(pending);
          this.setting = pending.setting;
          this.draw();
        } }, "Keep mine")));
  }

  valueArea(pending) {
    const { setting } = this;
    const isReadOnly = this.hooks.isReadOnly() || setting.locked;
    const area = element("div", { id: "editor" });
    if (setting.hidden && setting.origin !== "default") area.append(this.hiddenValue());
    if (setting.long) area.append(element("p", {}, `${setting.shownSize.toLocaleString()} bytes: too long to be shown here.`));
    if (isReadOnly) {
      if (!setting.hidden && !setting.long) area.append(element("pre", { class: "value", dir: "auto" }, visible(setting.text ?? "not set")));
      return area;
    }
    if (setting.long && pending?.text === undefined) return this.withButtons(area, pending, false);
    if (pending?.remove || pending?.restore !== undefined) {
      area.append(element("p", { class: "line" }, "Will be: ", element("strong", {}, newText(pending))));
      return this.withButtons(area, pending, true);
    }
    this.editor = editorFor({
      setting, type: this.type, text: pending?.typed ?? pending?.text ?? (this.type === editedType(setting) ? setting.text ?? "" : ""),
      changed: () => this.edited(),
    });
    area.append(element("div", { class: "line" }, this.editor.node),
      element("p", { id: "editor-problem", class: "problem", role: "alert" }),
      element("p", { id: "editor-limits" }, this.limitsText(), this.editor.hint && element("small", {}, this.editor.hint)),
      element("div", {}, this.typeMenu()));
    return this.withButtons(area, pending, true);
  }

  withButtons(area, pending, isEdited) {
    const { setting } = this;
    const isStored = setting.version !== null && setting.version !== undefined;
    area.append(element("div", { class: "line" },
      isEdited && element("button", { type: "button", class: "main", id: "save-one", disabled: !pending || pending.problem || pending.theirs,
        onclick: () => this.save() }, "Save"),
      pending && element("button", { type: "button", onclick: () => this.revert() }, "Revert"),
      isStored && element("button", { type: "button", id: "remove", onclick: () => this.remove() },
        setting.parent !== null ? `Back to the value of ${collectionName(setting.parent)}` : setting.declared ? "Back to the default" : "Remove")));
    return area;
  }

  limitsText() {
    const declaration = this.setting.declaration;
    const words = this.setting.limitWords ?? [];
    return words.length > 0 ? visible(`It must be ${words.join("; ")}.`) : declaration ? "" : "No program declares it.";
  }

  typeMenu() {
    const declared = this.setting.declaration;
    if (declared && baseType(declared.type) !== "any") return undefined;
    const menu = element("select", { "aria-label": "Type", onchange: () => {
      this.type = menu.value;
      this.changes.drop(this.setting);
      this.draw();
      this.edited();
    } }, types.map((type) => element("option", { selected: type === this.type }, type)));
    if (this.setting.isNew) return element("p", { class: "line" }, "Type ", menu);
    return element("details", {}, element("summary", {}, `Type: ${this.type}`), menu);
  }

  facts() {
    const { setting } = this;
    const declaration = setting.declaration;
    const origin = { store: "this store", default: "the default" }[setting.origin] ?? setting.origin?.replace(/^parent:/, "");
    const facts = [
      ["Type", typeText(declaration?.type ?? setting.type)],
      ["Default", declaration && defaultText(declaration)],
      ["Effect", declaration && (declaration.effect === "restart" ? "when the program next starts" : "immediately")],
      ["Since", declaration?.since], ["Deprecated", declaration?.deprecated], ["Declared by", setting.declaredBy],
      ["Value from", origin], ["Administrator", givenText(setting.administrator)], ["Changed", timeText(setting.modified)], ["By", authorText(setting.author)],
      ["Expires", timeText(setting.expires)], ["Renew by", timeText(setting.due)],
      ...(setting.fleets ?? []).map((fleet) => ["Fleet", fleetText(fleet)]),
    ].filter(([, text]) => text);
    return element("dl", {}, facts.map(([name, text]) => [element("dt", {}, name), element("dd", {}, visible(String(text)))]));
  }

  // Expiry and due date

  datesArea() {
    const { setting } = this;
    if (!this.isStoredAndFree()) return undefined;
    const expires = dateField(setting.expires, { id: "expires" });
    const due = dateField(setting.due, { id: "due" });
    const problem = element("p", { class: "problem", role: "alert" });
    const read = () => {
      const dates = { expires: expires.read(), due: due.read() };
      const isPast = dates.expires !== null && dates.expires !== setting.expires && Date.parse(dates.expires) <= Date.now();
      problem.textContent = isPast ? "An expiry must be in the future." : "";
      return isPast ? undefined : dates;
    };
    const save = async () => {
      const dates = read();
      if (dates) await this.changes.save([{ setting, dates }]);
    };
    const box = element("div", { class: "dates", onkeydown: (event) => {
      if (event.key !== "Enter" || event.target.matches("button")) return;
      event.preventDefault();
      event.stopPropagation();
      save();
    } },
    element("label", {}, "It expires, and is removed ", expires.node),
    element("label", {}, "It is due for renewal, and stays ", due.node), problem,
    element("div", { class: "line" },
      element("button", { type: "button", id: "save-dates", class: "main", onclick: save }, "Save dates"),
      (setting.expires || setting.due) && element("button", { type: "button", id: "remove-dates",
        onclick: () => this.changes.save([{ setting, dates: { expires: null, due: null } }]) }, "Remove dates")));
    const area = element("details", { id: "dates", open: this.datesAreOpen === identity(setting), ontoggle: () => {
      this.datesAreOpen = area.open ? identity(setting) : undefined;
    } }, element("summary", {}, "Expiry and renewal"), box);
    return area;
  }

  // Another name, and other environments

  /// Whether what is stored here may be changed.
  isStoredAndFree() {
    const { setting } = this;
    return !this.hooks.isReadOnly() && !setting.locked && !setting.isNew && setting.version !== null && setting.version !== undefined;
  }

  renameArea() {
    const { setting } = this;
    if (!this.isStoredAndFree()) return undefined;
    const collection = element("input", { type: "text", id: "rename-collection", value: setting.collection, spellcheck: false });
    const key = element("input", { type: "text", id: "rename-key", value: setting.key, spellcheck: false, required: true });
    const problem = element("p", { class: "problem", role: "alert", id: "rename-problem" });
    const save = async () => {
      problem.textContent = nameProblem({ collection: collection.value, key: key.value }) ?? "";
      if (problem.textContent !== "") return;
      const to = { collection: collection.value, key: key.value };
      const reason = await this.changes.rename(setting, to);
      if (reason) problem.textContent = reason;
      else await this.show(to, { focus: true });
    };
    return element("details", { id: "rename" }, element("summary", {}, "Rename or move"),
      element("div", { class: "dates", onkeydown: (event) => {
        if (event.key !== "Enter" || event.target.matches("button")) return;
        event.preventDefault();
        event.stopPropagation();
        save();
      } },
      element("label", {}, "Collection ", collection), element("label", {}, "Key ", key), problem,
      element("div", { class: "line" }, element("button", { type: "button", id: "save-name", class: "main", onclick: save }, "Rename"))));
  }

  /// Copies the value in force to another environment, once the user has seen what that changes.
  copyArea() {
    const { setting } = this;
    if (this.hooks.isReadOnly() || setting.isNew || !setting.siblings?.length || setting.value === undefined && !setting.long) return undefined;
    const menu = element("select", { id: "copy-to", "aria-label": "Copy the value to" },
      setting.siblings.map((name) => element("option", { value: `c:${name}` }, collectionName(name))));
    return element("p", { class: "line" }, "Copy the value to ", menu, element("button", { type: "button", id: "copy-across", onclick: () => this.hooks.copyAcross(setting, menu.value.slice(2)) }, "Copy…"));
  }

  /// The history of a number as a line, once the program has answered.
  chart() {
    const { setting } = this;
    if (!["int", "double"].includes(setting.type) || setting.hidden || setting.isNew || setting.version === null) return undefined;
    const name = JSON.stringify([identity(setting), setting.store, setting.version]);
    // Drawn again with the rest, it stays.
    if (this.charted?.name === name) return this.charted.box;
    const box = element("div", {});
    this.charted = { name, box };
    call("history", { collection: setting.collection, key: setting.key }, { isAutomatic: true }).then(({ versions }) => {
      const drawing = lineChart(versions, setting);
      if (drawing) box.append(drawing);
      // It is only an addition: the history itself says what is wrong.
    }, () => {});
    return box;
  }

  /// The same in a terminal.
  links() {
    const { setting } = this;
    if (setting.isNew) return undefined;
    return element("p", { class: "line" },
      setting.command && element("button", { type: "button", id: "copy-command", title: setting.command, onclick: () => copy(setting.command) }, "Copy as command"),
      setting.link && element("button", { type: "button", id: "copy-link", title: setting.link, onclick: () => copy(setting.link) }, "Copy link"));
  }

  // Editing

  edited() {
    const { setting } = this;
    const { text, typed, problem } = this.editor.read();
    const isSame = text !== undefined && text === setting.text && this.type === editedType(setting) && !setting.isNew;
    const theirs = this.changes.get(setting)?.theirs;
    if (isSame && !theirs) this.changes.drop(setting);
    else this.changes.collect({ setting, type: this.type, text, typed, problem, theirs });
    this.say(problem);
    this.drawn = this.state();
    const save = this.box.querySelector("#save-one");
    if (save) save.disabled = isSame || Boolean(problem) || Boolean(theirs);
  }

  say(problem) {
    const place = this.box.querySelector("#editor-problem");
    if (place) place.textContent = problem ?? "";
    const field = this.editor?.node.matches?.("input, textarea, select") ? this.editor.node : this.editor?.node.querySelector?.("input");
    if (problem) field?.setAttribute("aria-invalid", "true");
    else field?.removeAttribute("aria-invalid");
  }

  async save() {
    const change = this.changes.get(this.setting);
    if (!change) return;
    if (await this.changes.save([change])) delete this.setting?.isNew;
  }

  revert() {
    this.changes.drop(this.setting);
    if (this.setting.isNew) this.hooks.close();
    else this.show(this.setting, { focus: true });
  }

  remove() {
    this.changes.collect({ setting: this.setting, remove: true });
    this.draw();
    this.box.querySelector("#save-one")?.focus();
  }

  key(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.hooks.close();
    } else if (event.key === "Enter" && event.target.matches("#editor .line > input, #editor .line > select, #editor .switch input")
      || event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.save();
    }
  }

  // Secrets

  hiddenValue() {
    const { setting } = this;
    const shown = element("span", { id: "secret", dir: "auto" }, shortValue(setting));
    if (!this.hooks.mayReveal()) return element("p", { class: "line" }, shown);
    const line = element("p", { class: "line" }, shown);
    const button = element("button", { type: "button", id: "reveal", onclick: async () => {
      let answer;
      try {
        answer = await call("reveal", { collection: setting.collection, key: setting.key });
      } catch (error) {
        if (error.kind === "vaultLocked" && await this.hooks.unlock()) button.click();
        else if (error.kind !== "vaultLocked") message(visible(error.message), { isError: true });
        return;
      }
      if (!shown.isConnected || document.hidden) return;
      this.hideRevealed?.();
      const copyButton = element("button", { type: "button", id: "copy-secret", onclick: () => copy(answer.text, { isSecret: true }) }, "Copy");
      fill(shown, marked(answer.text));
      shown.className = "revealed";
      button.after(copyButton);
      let left = revealTime;
      const hide = this.hideRevealed = () => {
        clearInterval(timer);
        this.hideRevealed = undefined;
        answer = undefined;
        copyButton.remove();
        shown.textContent = shortValue(setting);
        shown.className = "";
        button.disabled = false;
        button.textContent = "Reveal";
      };
      button.disabled = true;
      button.textContent = `Hidden in ${left} s`;
      const timer = setInterval(() => {
        left -= 1;
        button.textContent = `Hidden in ${left} s`;
        if (left <= 0 || !shown.isConnected) hide();
      }, 1000);
    } }, "Reveal");
    line.append(button);
    return line;
  }

  // History

  historyArea() {
    if (this.setting.isNew) return undefined;
    const { setting } = this;
    const box = element("div", { class: "history" });
    const details = element("details", { id: "history", ontoggle: async () => {
      if (!details.open) return;
      try {
        const answer = await call("history", { collection: setting.collection, key: setting.key });
        fill(box, this.versions(answer));
      } catch (error) {
        if (error.kind === "vaultLocked" && await this.hooks.unlock()) { details.open = false; details.open = true; return; }
        box.replaceChildren(element("p", {}, visible(error.message)));
      }
    } }, element("summary", {}, "History"), box);
    return details;
  }

  versions({ keeps, store, versions }) {
    const { collection } = this.setting;
    const off = !keeps && element("p", { class: "line" }, "This collection keeps no history. ",
      !this.hooks.isReadOnly() && element("button", { type: "button", id: "keep-history", onclick: async () => {
        await keepHistory(collection);
        const details = this.box.querySelector("#history");
        if (details) { details.open = false; details.open = true; }
      } }, "Keep it from now on"));
    if (versions.length === 0) return [off || element("p", {}, "Nothing was overwritten yet.")];
    return [off, element("ol", {}, versions.map((version) => element("li", {},
      element("p", { class: "line" }, element("strong", {}, shortValue(version)),
        !this.hooks.isReadOnly() && !this.setting.locked && element("button", { type: "button", "aria-label": `Restore version ${version.version}`, onclick: () => this.restore(version, store) }, "Restore")),
      element("p", {}, `${timeText(version.modified)} to ${timeText(version.ended)}. `,
        version.author && `Set by ${authorText(version.author)}. `, version.endedBy && `Ended by ${authorText(version.endedBy)}.`),
      difference(shortValue(version), shortValue(this.setting)))))];
  }

  /// Saves at once, if the store is the one that the history was read from; unsaved edits stay.
  restore(version, store) {
    this.changes.save([{ setting: { ...this.setting, store }, restore: version.version, earlier: shortValue(version) }]);
  }
}

/// The default of a declaration as it is written; large integers come as texts.
function defaultText({ type, default: value }) {
  if (value === undefined) return "none";
  return type === "int" ? String(value) : JSON.stringify(value);
}

/// What an administrator gives for a setting.
function givenText(given) {
  if (!given) return undefined;
  return `${shortValue(given)}, ${given.given === "locked" ? "locked" : "as the default"}, in ${visible(given.origin)}`;
}

/// Where a setting goes, as a sentence for each fleet.
function fleetText({ carrier, synced, waits }) {
  const state = synced === null ? "It was not synced yet." : waits ? "This value is not there yet; the next sync takes it."
    : `Last in sync ${timeText(synced)}.`;
  return `Shared through ${visible(carrier)}. ${state}`;
}

/// Why a name is not one to give, as a sentence; undefined if it is.
export function nameProblem({ collection, key }) {
  if (key === "") return "A setting needs a key.";
  // A blank there is invisible, and the setting could not be found again.
  return [collection, key].some((text) => text !== text.trim()) ? "A name begins or ends with a blank." : undefined;
}

/// Keeps the earlier values of a collection from now on. Resolves to whether it does.
export async function keepHistory(collection) {
  try {
    await call("keepHistory", { collection });
    message(`From now on ${collectionName(collection)} keeps its history.`);
    return true;
  } catch (error) {
    message(visible(error.message), { isError: true });
    return false;
  }
}

/// The parts in which two texts differ, between their common beginning and end.
export function difference(before, after) {
  if (before === after) return element("p", { class: "difference" }, "As it is now.");
  // Numbers, single words, and what stands for secrets are clearer as a whole.
  const isShort = before.length <= 24 && after.length <= 24 && !/\s/.test(before + after);
  if (isShort || /^<(secret|sealed)\b/.test(before) || /^<(secret|sealed)\b/.test(after)) {
    return element("p", { class: "difference", dir: "auto" }, before && element("del", {}, before), before && " → ", element("ins", {}, after));
  }
  const [a, b] = [[...before], [...after]];
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const part = (letters) => letters.slice(start, letters.length - end).join("");
  return element("p", { class: "difference", dir: "auto" }, a.slice(0, start).join(""),
    part(a) && element("del", {}, part(a)), part(b) && element("ins", {}, part(b)), a.slice(a.length - end).join(""));
}
