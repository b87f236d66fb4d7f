// Changes that are not saved yet, and those that can be undone.

import { call } from "./server.js";
import { element, identity, isSameVersion, message, nameOf, visible } from "./elements.js";

export class Changes {
  /// - hooks: `saved(settings)`, `changed()`, `review(changes)`, `met()`, `refused(change)`, and `unlock()`, which resolves to
  /// whether the vault is unlocked.
  constructor(bar, undoButton, redoButton, hooks) {
    this.bar = bar;
    this.undoButton = undoButton;
    this.redoButton = redoButton;
    this.hooks = hooks;
    this.pending = new Map();
    /// For settings that this page has just saved: as they were before, and as it left them. Rows may still show the former.
    this.own = new Map();
    undoButton.addEventListener("click", () => this.undo());
    redoButton.addEventListener("click", () => this.redo());
  }

  get(setting) { return this.pending.get(identity(setting)); }

  /// Collects a change: `{setting, type, text}`, `{setting, restore}` or `{setting, remove}`; `problem` if it cannot be saved.
  collect(change) {
    const name = identity(change.setting);
    const before = this.pending.get(name);
    this.pending.set(name, change);
    // While a text is typed, what is shown of it elsewhere stays the same.
    const isSame = before && [before, change].every(({ remove, restore }) => !remove && restore === undefined)
      && Boolean(before.problem) === Boolean(change.problem) && Boolean(before.theirs) === Boolean(change.theirs);
    if (!isSame) this.draw();
  }

  drop(setting) {
    this.pending.delete(identity(setting));
    this.draw();
  }

  draw() {
    const all = () => [...this.pending.values()];
    const changes = all();
    const problems = changes.filter(({ problem }) => problem).length;
    const conflicts = changes.filter(({ theirs }) => theirs).length;
    const count = changes.length === 1 ? "1 change is not saved." : `${changes.length} changes are not saved.`;
    this.bar.hidden = changes.length === 0;
    this.bar.replaceChildren(
      element("span", {}, count, problems > 0 && ` ${problems} cannot be saved.`,
        conflicts > 0 && ` ${conflicts} changed meanwhile.`),
      element("button", { type: "button", id: "discard", onclick: () => this.discard() }, "Discard"),
      element("button", { type: "button", id: "review", onclick: () => this.hooks.review(all()) }, "Show the difference"),
      element("button", { type: "button", id: "save", class: "main", disabled: problems + conflicts > 0,
        onclick: () => changes.length > 1 ? this.hooks.review(all()) : this.save() }, changes.length > 1 ? "Save all…" : "Save"));
    this.hooks.changed();
  }

  /// Drops all changes, and offers to restore them.
  discard() {
    const dropped = [...this.pending];
    this.pending.clear();
    this.draw();
    this.hooks.saved([]);
    message(dropped.length === 1 ? "Discarded 1 change." : `Discarded ${dropped.length} changes.`, { button: "Bring back", action: () => {
      for (const [name, change] of dropped) if (!this.pending.has(name)) this.pending.set(name, change);
      this.draw();
      this.hooks.met();
    } });
  }

  /// Whether a save of this page made one state of a setting of the other.
  isOwn(before, after) {
    const own = this.own.get(identity(before));
    return own !== undefined && isSameVersion(own.before, before) && isSameVersion(own.after, after);
  }

  /// Drops what all rows show by now.
  forget(saves) { for (const [name, own] of this.own) if (saves.includes(own)) this.own.delete(name); }

  /// Saves a change of a row once those before it are saved. Resolves to whether it is saved.
  saveInTurn(change) {
    this.turn = (this.turn ?? Promise.resolve()).then(() => this.save([change]));
    return this.turn;
  }

  /// Saves changes in one transaction: the given ones, or all.
  ///
  /// Resolves to whether they are saved.
  async save(changes = [...this.pending.values()]) {
    // A second click before the answer must not save again.
    if (this.isSaving || changes.length === 0 || changes.some(({ problem, theirs }) => problem || theirs)) return false;
    const request = { changes: changes.map((change) => requestOf(change, this.own.get(identity(change.setting)))) };
    let answer;
    this.isSaving = true;
    try {
      answer = await call("change", request);
    } catch (error) {
      this.isSaving = false;
      if (error.kind === "vaultLocked" && await this.hooks.unlock()) return this.save(changes);
      this.fail(error, changes);
      return false;
    }
    this.isSaving = false;
    for (const change of changes) {
      const name = identity(change.setting);
      const saved = answer.settings.find((setting) => identity(setting) === name);
      if (saved) this.own.set(name, { before: change.setting, after: saved });
      const later = this.pending.get(name);
      if (later === change) this.pending.delete(name);
      // Edited again meanwhile: that edit is now based on the saved value.
      else if (later) later.setting = saved ?? later.setting;
    }
    this.remember(answer, changes.length === 1 ? `Saved ${visible(nameOf(changes[0].setting))}.` : `Saved ${changes.length} changes as one.`);
    return true;
  }

  /// Makes the changes that the program has prepared, and the page has shown. Resolves to whether they are made.
  async apply({ plan, count }) {
    try {
      this.remember(await call("apply", { plan }), count === 1 ? "Saved 1 change." : `Saved ${count} changes as one.`);
      return true;
    } catch (error) {
      if (error.kind === "vaultLocked" && await this.hooks.unlock()) return this.apply({ plan, count });
      const text = error.kind === "conflict" ? "Something has changed since; nothing was saved. Look at it again." : visible(error.message);
      message(text, { isError: true, seconds: 15 });
      return false;
    }
  }

  /// Asks for changes that the program prepares and the page shows; undefined, with a message, if it cannot.
  async plan(name, request) {
    try {
      return await call(name, request);
    } catch (error) {
      if (error.kind === "vaultLocked" && await this.hooks.unlock()) return this.plan(name, request);
      message(visible(error.message), { isError: true });
      return undefined;
    }
  }

  /// Gives a setting another name. Resolves to why it cannot, as a sentence; undefined once it has that name.
  async rename(setting, to) {
    if (this.get(setting)) return "Save or discard its change first.";
    try {
      const answer = await call("rename", { ...versionOf(setting), to });
      const notes = (answer.notes ?? []).map(visible);
      if (notes.length > 0) return notes.join(" ");
      this.remember(answer, `Renamed ${visible(nameOf(setting))} to ${visible(nameOf(to))}.`);
      return undefined;
    } catch (error) {
      if (error.kind === "vaultLocked" && await this.hooks.unlock()) return this.rename(setting, to);
      return visible(error.message);
    }
  }

  remember(answer, text) {
    this.takeUndoing(answer.undoing);
    this.draw();
    this.hooks.saved(answer.settings);
    message(text, { button: "Undo", action: () => this.undo(answer.undo) });
  }

  fail(error, changes) {
    // What was typed in a row is kept as an unsaved change.
    const keep = (change) => { if (change.text !== undefined && !this.get(change.setting)) this.pending.set(identity(change.setting), change); };
    if (error.kind === "conflict") {
      changes.forEach(keep);
      this.meet(error.answer.settings);
      const met = changes.find(({ theirs }) => theirs);
      if (met) this.hooks.refused(met);
      message(error.message, { isError: true });
      return;
    }
    const { collection, key, reason } = error.answer ?? {};
    const change = changes.length === 1 ? changes[0]
      : changes.find(({ setting }) => setting.collection === collection && setting.key === key);
    if (change && error.kind === "format") {
      change.problem = reason ? `The value must be ${reason}.` : error.message;
      keep(change);
      this.draw();
      this.hooks.refused(change);
    } else {
      changes.forEach(keep);
      this.draw();
      message(visible(error.message), { isError: true, seconds: 15 });
    }
  }

  /// Handles changes by others: an unsaved change that is based on an old version becomes a conflict.
  meet(settings) {
    const met = settings.filter((theirs) => {
      const change = this.get(theirs);
      if (!change || isSameVersion(theirs, change.setting)) return false;
      change.theirs = theirs;
      return true;
    });
    if (met.length === 0) return;
    this.draw();
    this.hooks.met();
  }

  /// Bases our change on the current version, which it will overwrite.
  keep(change) {
    change.setting = change.theirs;
    delete change.theirs;
    this.draw();
  }

  /// Takes over what the program says can be undone and redone: it is the same for all tabs, and outlives them.
  takeUndoing(state) {
    if (state.revision < (this.undoing?.revision ?? 0)) return;
    this.undoing = state;
    for (const [button, word, next] of [[this.undoButton, "Undo", state.undo], [this.redoButton, "Redo", state.redo]]) {
      button.disabled = !next;
      button.title = next ? `${word}: ${next.count > next.settings.length ? `${next.count} settings`
        : next.settings.map((setting) => visible(nameOf(setting))).join(", ")}` : "";
    }
  }

  redo() { return this.undo(this.undoing?.redo?.number, "Redone."); }

  /// Undoes a save, or redoes an undone one: the given one, or the last.
  async undo(number = this.undoing?.undo?.number, text = "Undone.") {
    if (number === undefined) return;
    try {
      const answer = await call("undo", { undo: number });
      this.takeUndoing(answer.undoing);
      this.hooks.saved(answer.settings);
      const isUndo = text === "Undone.";
      message(text, { button: isUndo ? "Redo" : "Undo", action: () => this.undo(answer.undo, isUndo ? "Redone." : "Undone.") });
    } catch (error) {
      if (error.kind === "vaultLocked" && await this.hooks.unlock()) return this.undo(number, text);
      const isConflict = error.kind === "conflict";
      message(isConflict ? "It cannot be undone: it has changed since." : visible(error.message), { isError: true });
    }
  }
}

/// A setting as a request names it: as this page has seen it.
function versionOf({ collection, key, store, version }) { return { collection, key, store, version: version ?? 0 }; }

/// - own: This page's last save of the setting: a row may not show it yet.
function requestOf({ setting, type, text, restore, remove, dates }, own) {
  const seen = own && isSameVersion(own.before, setting) ? own.after : setting;
  return { ...versionOf(seen), type, text, restore, remove, dates };
}

/// The result of a change, in a line.
export function newText({ setting, type, text, restore, remove, earlier }) {
  if (remove) return setting.declared ? "back to the default" : "removed";
  if (restore !== undefined) return `${earlier} (version ${restore})`;
  return type === "secret" || setting.hidden ? "a new secret" : visible(text);
}
