// Changing a value in its row: switches and menus work at once, a number or a text becomes a field when it is clicked.

import { editedType, editorFor } from "./editors.js";
import { collectionName, element, identity, nameOf, shortValue, visible } from "./elements.js";

export class RowEditing {
  /// - hooks: `isReadOnly()`, `save(change)`, `collect(change)`, and `ended()`, after the field in a row has gone.
  constructor(hooks) { this.hooks = hooks; }

  /// Whether a row can be changed in place.
  allows(setting) { return setting.text !== undefined && !this.hooks.isReadOnly(); }

  /// The cell with the value, or its editor.
  cell(setting, pending) {
    const properties = { class: "value", dir: "auto", role: "gridcell" };
    if (!this.allows(setting) || pending) return element("span", properties, shortValue(setting));
    const type = editedType(setting);
    if (type === "bool" || choices(setting)) return element("span", properties, this.control(setting, type).node);
    return element("span", { ...properties, class: "value editable" }, shortValue(setting));
  }

  /// A switch or a menu, which saves when it is used. Without the keyboard: in the list, F2 leads to it.
  control(setting, type) {
    const editor = editorFor({
      setting, type, text: setting.text, label: { "aria-label": visible(nameOf(setting)), tabIndex: -1 },
      changed: () => this.hooks.save({ setting, type, ...editor.read() }),
    });
    editor.node.addEventListener("click", (event) => event.stopPropagation());
    return editor;
  }

  /// The button that removes what is stored.
  reset(setting, pending) {
    if (this.hooks.isReadOnly() || pending || setting.locked || setting.version === null) return undefined;
    const what = setting.parent !== null ? `Back to the value of ${collectionName(setting.parent)}`
      : setting.declared ? "Back to the default" : "Remove";
    return element("button", {
      type: "button", class: "plain reset", tabIndex: -1, title: what, "aria-label": `${what}: ${visible(nameOf(setting))}`,
      onclick: (event) => { event.stopPropagation(); this.hooks.save({ setting, remove: true }); },
    }, setting.declared || setting.parent !== null ? "↺" : "×");
  }

  // A field in a row

  isIn(setting) { return this.field !== undefined && setting !== undefined && identity(this.field.setting) === identity(setting); }

  /**
   * Replaces the value of a row with a field.
   *
   * @param {HTMLElement} row
   * @param {any} setting
   * @param {HTMLElement} place The part of the row that shows the setting.
   */
  begin(row, setting, place = row) {
    const control = /** @type {HTMLElement | null} */ (place.querySelector(".value input, .value select"));
    if (control) return control.focus();
    const cell = place.querySelector(".editable");
    const summary = place.querySelector(".summary");
    if (!this.allows(setting) || !cell || !summary) return undefined;
    const type = editedType(setting);
    const usual = summary.textContent;
    const say = (problem) => {
      summary.textContent = problem ?? usual;
      place.classList.toggle("refused", Boolean(problem));
      input.setAttribute("aria-invalid", problem ? "true" : "false");
    };
    const editor = editorFor({
      setting, type, text: setting.text, isInRow: true, label: { "aria-label": visible(nameOf(setting)) },
      changed: () => say(editor.read().problem),
    });
    const input = editor.node;
    this.field = { row, setting, type, editor, input };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      if (event.key === "Escape") this.end();
      else if (editor.read().problem) say(editor.read().problem);
      else this.leave();
    });
    input.addEventListener("click", (event) => event.stopPropagation());
    // If only the window loses the focus, the field still has it in the page.
    input.addEventListener("blur", () => { if (document.activeElement !== input) this.leave({ isBlur: true }); });
    summary.setAttribute("aria-live", "assertive");
    cell.replaceChildren(input);
    row.classList.add("editing");
    input.focus();
    input.select();
    return undefined;
  }

  /// Saves what was typed. What cannot be saved is kept as a change that is not saved yet.
  leave({ isBlur = false } = {}) {
    const { field } = this;
    if (!field) return;
    const { setting, type } = field;
    const { text, typed, problem } = field.editor.read();
    this.end({ isBlur });
    if (problem) this.hooks.collect({ setting, type, typed, problem });
    else if (text !== setting.text) this.hooks.save({ setting, type, text });
  }

  end({ isBlur = false } = {}) {
    this.field = undefined;
    this.hooks.ended(isBlur);
  }
}

function choices(setting) { return setting.declaration?.limits?.some((limit) => limit.choices); }
