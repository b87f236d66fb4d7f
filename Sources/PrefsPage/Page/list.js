// The list: rows are created as they come into view, and fetched in blocks.

import { call } from "./server.js";
import { cellsOf, columnHead, columnRow } from "./columns.js";
import { collectionName, element, identity, shortTime, timeText, visible } from "./elements.js";
import { baseType } from "./limits.js";
import { RowEditing } from "./rows.js";

const blockSize = 100;
const keptBlocks = 30;
/// In Firefox, elements are at most 17.8 million pixels high.
const greatestHeight = 8e6;
/// How long a change is marked, in milliseconds.
const markTime = 4000;

export class SettingsList {
  /// - hooks: `selected(setting)`, `opened()`, `counted(answer)`, `pendingFor(setting)`, `failed(error)`, `isReadOnly()`,
  /// `save(change)`, `collect(change)`, `isOwn(before, after)`, `copyColumn(from, others)`, and `arranged()`, after a section was folded.
  constructor(box, head, rows, hooks) {
    this.box = box;
    this.head = head;
    this.rows = rows;
    this.hooks = hooks;
    this.filter = { search: "", filter: "all", collection: null };
    this.total = 0;
    this.blocks = new Map();
    this.loading = new Map();
    this.nodes = new Map();
    this.marks = new Map();
    this.selected = -1;
    /// With collections as columns: these, and the selected one.
    this.columns = null;
    this.column = 0;
    /// The sections that are folded, by their names.
    this.folded = new Map();
    this.generation = 0;
    this.editing = new RowEditing({
      isReadOnly: hooks.isReadOnly, collect: hooks.collect,
      save: async (change) => { if (!await hooks.save(change)) this.redraw(change.setting); },
      ended: (isBlur) => {
        this.forget();
        this.draw();
        if (!isBlur) box.focus({ preventScroll: true });
      },
    });
    box.addEventListener("scroll", () => this.draw(), { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("wheel", (event) => {
      // Otherwise each step would skip rows.
      if (this.scale() <= 1 || event.ctrlKey) return;
      event.preventDefault();
      this.top += event.deltaY * [1, this.rowHeight(), this.viewHeight()][event.deltaMode];
      this.draw();
    }, { passive: false });
    new ResizeObserver(() => {
      this.draw();
      this.showColumn();
    }).observe(box);
  }

  // Fetching

  /// Shows the settings that `filter` accepts, from the top.
  async show(filter) {
    this.filter = filter;
    await this.reload({ fromTop: true });
  }

  /// Fetches the rows in view again.
  async reload({ fromTop = false, isAutomatic = false } = {}) {
    const generation = ++this.generation;
    const first = fromTop ? 0 : Math.floor(this.firstRow() / blockSize);
    const answer = await this.fetch(first, isAutomatic);
    if (generation !== this.generation) return;
    this.blocks.clear();
    this.loading.clear();
    this.take(first, answer);
    if (fromTop) {
      this.top = 0;
      this.selected = -1;
    }
    this.draw();
    this.hooks.counted(answer);
  }

  fetch(block, isAutomatic = false) {
    // What a search finds is not hidden.
    const folded = this.filter.search.trim() === "" ? [...this.folded.values()] : [];
    const request = { ...this.filter, folded, offset: block * blockSize, limit: blockSize };
    return call("list", request, { isAutomatic });
  }

  take(block, answer) {
    this.total = answer.count;
    this.takeColumns(answer.columns ?? null, answer.base ?? null);
    this.revision = answer.revision;
    this.blocks.set(block, answer.rows);
    if (this.blocks.size > keptBlocks) {
      const middle = Math.floor(this.firstRow() / blockSize);
      const farthest = [...this.blocks.keys()].sort((a, b) => Math.abs(b - middle) - Math.abs(a - middle))[0];
      this.blocks.delete(farthest);
    }
  }

  takeColumns(columns, base) {
    const state = JSON.stringify([columns, base]);
    if (state === this.columnState || columns === null && this.columns === null) return;
    this.columnState = state;
    this.columns = columns;
    this.column = Math.min(this.column, Math.max(0, (columns?.length ?? 0) - 1));
    this.box.classList.toggle("columns", columns !== null);
    this.box.setAttribute("aria-colcount", columns === null ? 4 : columns.length + 1);
    this.box.style.setProperty("--columns", columns?.length ?? 0);
    this.head.hidden = columns === null;
    this.head.replaceChildren(...columns === null ? [] : [columnHead(columns, {
      base, isReadOnly: this.hooks.isReadOnly(), copy: this.hooks.copyColumn,
    })]);
    for (const node of this.nodes.values()) node.remove();
    this.nodes.clear();
  }

  /// What a row shows: a setting, one with `cells`, or a `section`.
  entry(index) { return this.blocks.get(Math.floor(index / blockSize))?.[index % blockSize]; }

  /// The setting of a row; with columns, that in the selected one.
  setting(index) { return cellsOf(this.entry(index))[this.columns === null ? 0 : this.column]; }

  want(block) {
    if (this.blocks.has(block) || this.loading.has(block)) return;
    const generation = this.generation;
    const loading = this.fetch(block).then((answer) => {
      if (generation !== this.generation) return;
      this.loading.delete(block);
      this.take(block, answer);
      this.draw();
    }, (error) => { this.loading.delete(block); this.hooks.failed(error); });
    this.loading.set(block, loading);
  }

  // Drawing

  rowHeight() { return parseFloat(getComputedStyle(this.rows).getPropertyValue("line-height")) * 2; }

  /// The height of the part that shows rows.
  viewHeight() { return this.box.clientHeight - this.head.offsetHeight; }

  firstRow() { return Math.floor(this.top / (this.rowHeight() || 1)); }

  /// The position of the view in the list, in pixels of an element with room for all rows. Browsers limit the height of elements;
  /// a million rows exceed it, and one pixel of the scroll bar then stands for several.
  get top() {
    const scale = this.scale();
    // The wheel and the keys are more precise than the scroll bar.
    if (scale > 1 && this.exactTop !== undefined && Math.abs(this.exactTop / scale - this.box.scrollTop) < 1) return this.exactTop;
    return this.box.scrollTop * scale;
  }

  set top(top) {
    const scale = this.scale();
    this.exactTop = Math.min(Math.max(0, top), Math.max(0, this.total * this.rowHeight() - this.viewHeight()));
    this.box.scrollTop = this.exactTop / scale;
  }

  scale() {
    const room = this.total * this.rowHeight() - this.viewHeight();
    const shown = Math.min(this.total * this.rowHeight(), greatestHeight) - this.viewHeight();
    return shown > 0 ? room / shown : 1;
  }

  draw() {
    const height = this.rowHeight();
    this.rows.style.height = `${Math.min(this.total * height, greatestHeight)}px`;
    this.box.setAttribute("aria-rowcount", this.total);
    const { top } = this;
    const first = Math.max(0, Math.floor(top / height) - 5);
    const last = Math.min(this.total, Math.ceil((top + this.viewHeight()) / height) + 5);
    // Rows are placed as without a limit of the height, then moved to the view.
    this.offset = top - this.box.scrollTop;
    for (let block = Math.floor(first / blockSize); block * blockSize < last; block += 1) this.want(block);
    this.followField(first, last);
    for (const [index, node] of this.nodes) {
      if (index < first || index >= last) { node.remove(); this.nodes.delete(index); }
    }
    for (let index = first; index < last; index += 1) this.drawRow(index, height);
    const row = this.nodes.get(this.selected);
    const active = row && (this.place(row) ?? row);
    if (active) this.box.setAttribute("aria-activedescendant", active.id);
    else this.box.removeAttribute("aria-activedescendant");
  }

  drawRow(index, height) {
    const entry = this.entry(index);
    const node = this.nodes.get(index);
    const state = this.state(index, entry);
    // A row that looks the same stays: the user may be clicking it.
    const isSame = node !== undefined && (node.dataset.state === state || this.editing.field?.row === node);
    const fresh = isSame ? node : this.row(index, entry);
    fresh.style.transform = `translateY(${index * height - this.offset}px)`;
    if (isSame) return;
    fresh.dataset.state = state;
    const focused = node?.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement) : undefined;
    if (node) node.replaceWith(fresh);
    else this.rows.append(fresh);
    this.nodes.set(index, fresh);
    if (!focused) return;
    const column = focused.closest?.("[data-column]")?.getAttribute("data-column");
    const place = column ? fresh.querySelector(`[data-column="${column}"]`) : fresh;
    (place?.querySelector(".value input, .value select, .fold") ?? this.box).focus({ preventScroll: true });
  }

  /// The cell of the selected column in a row; undefined without columns.
  place(row) { return this.columns === null ? undefined : row.querySelector(`[data-column="${this.column}"]`); }

  /// Keeps the row with a field where its setting is now. If that is no longer in view, what was typed is saved.
  followField(first, last) {
    const { field } = this.editing;
    if (!field || this.isFollowing) return;
    for (let index = first; index < last; index += 1) {
      const entry = this.entry(index);
      // Rows that are being fetched may have it.
      if (!entry) return;
      const setting = cellsOf(entry).find((shown) => shown?.given === undefined && this.editing.isIn(shown));
      if (!setting) continue;
      if (this.hooks.isOwn(field.setting, setting)) field.setting = setting;
      if (this.nodes.get(index) === field.row) return;
      for (const [old, node] of this.nodes) if (node === field.row) this.nodes.delete(old);
      this.nodes.get(index)?.remove();
      this.nodes.set(index, field.row);
      field.row.id = `row-${index}`;
      return;
    }
    this.isFollowing = true;
    this.editing.leave({ isBlur: true });
    this.isFollowing = false;
  }

  /// Draws the row with a field as any other one.
  forget() { for (const node of this.nodes.values()) if (node.classList.contains("editing")) node.dataset.state = ""; }

  /// Draws a row again: what its switch or menu shows was not saved.
  redraw(setting) {
    for (const [index, node] of this.nodes) {
      const shown = cellsOf(this.entry(index));
      if (shown.some((shown) => shown && identity(shown) === identity(setting))) node.dataset.state = "";
    }
    this.draw();
  }

  /// Everything that a row shows.
  state(index, entry) {
    if (!entry) return `${this.total}`;
    const settings = cellsOf(entry).filter(Boolean);
    return JSON.stringify([this.total, entry, this.filter.order, index === this.selected && [this.column],
      settings.map((setting) => [Boolean(this.pendingFor(setting)), this.isMarked(setting)])]);
  }

  /// The unsaved change of a setting; there is none of what an administrator gives.
  pendingFor(setting) { return setting.given === undefined ? this.hooks.pendingFor(setting) : undefined; }

  isMarked(setting) { return this.marks.get(identity(setting)) > Date.now(); }

  row(index, entry) {
    const properties = {
      id: `row-${index}`, class: "row", role: "row", "aria-rowindex": index + 1,
      "aria-selected": index === this.selected ? "true" : "false",
      onclick: () => { this.select(index); this.hooks.opened(); },
    };
    if (!entry) return element("div", properties, element("span", { class: "key", role: "gridcell" }, "…"));
    if (entry.section) return this.sectionRow(index, entry.section, properties);
    if (entry.cells) {
      return columnRow(entry, { ...properties, onclick: undefined }, {
        index, selected: index === this.selected ? this.column : -1, editing: this.editing,
        pendingFor: (setting) => this.pendingFor(setting), isMarked: (setting) => this.isMarked(setting), copy: this.hooks.copyColumn,
        open: (column) => { this.select(index, column); this.hooks.opened(); }, edit: (column) => this.edit(index, column),
      });
    }
    return this.settingRow(index, entry, properties);
  }

  /// The head of a section, which folds it.
  sectionRow(index, { collection, part, count, folded }, properties) {
    const name = part === null ? collectionName(collection) : visible(part);
    return element("div", { ...properties, class: part === null ? "row section" : "row section part",
      onclick: () => { this.select(index); this.fold(index); } },
    element("span", { class: "name", role: "gridcell" }, element("button", {
      type: "button", class: "plain fold", tabIndex: -1, "aria-expanded": folded ? "false" : "true",
    }, element("span", { "aria-hidden": "true" }, folded ? "▸" : "▾"), ` ${name}`, element("span", { class: "number" }, ` ${count.toLocaleString()}`))));
  }

  /// Folds sections from the start.
  setFolded(sections) { this.folded = new Map(sections.map(({ collection, part }) => [JSON.stringify([collection, part]), { collection, part }])); }

  /// Folds or unfolds the section of a row; does nothing for other rows.
  fold(index, isFolded = !this.entry(index)?.section?.folded) {
    const { section } = this.entry(index) ?? {};
    if (!section || section.folded === isFolded) return;
    const { collection, part } = section;
    const name = JSON.stringify([collection, part]);
    if (isFolded) this.folded.set(name, { collection, part });
    else this.folded.delete(name);
    this.hooks.arranged();
    this.reload().catch((error) => this.hooks.failed(error));
  }

  settingRow(index, setting, properties) {
    const pending = this.hooks.pendingFor(setting);
    // The last one is cut off where there is little room: that it is changed shows in the letters of its name, too.
    const words = [pending && "unsaved", setting.problem && "problem", setting.locked && "locked", setting.changed && setting.declared && "changed"];
    const isInherited = setting.origin?.startsWith("parent:");
    const marked = this.isMarked(setting);
    properties.class = ["row", ...words.filter(Boolean), marked && "fresh", (setting.origin === "default" || isInherited) && "unset"]
      .filter(Boolean).join(" ");
    const cell = this.editing.cell(setting, pending);
    if (cell.classList.contains("editable")) cell.addEventListener("click", (event) => { event.stopPropagation(); this.edit(index); });
    const isByTime = this.filter.order === "time";
    return element("div", properties,
      element("span", { class: "name", role: "gridcell" },
        setting.collection !== "" && element("span", { class: "collection" }, `${visible(setting.collection)}/`),
        element("span", { class: "key", dir: "auto" }, visible(setting.key)),
        words.filter(Boolean).map((word) => element("span", { class: `tag ${word}` }, word)),
        isInherited && element("span", { class: "tag" }, `from ${visible(setting.origin.slice("parent:".length))}`)),
      cell,
      element("span", { class: "summary", dir: "auto", role: "gridcell" }, setting.problem ?? visible(setting.summary)),
      element("span", { class: "act", role: "gridcell" }, this.editing.reset(setting, pending)),
      element("span", { class: "type", role: "gridcell", title: isByTime ? timeText(setting.modified) : undefined },
        isByTime ? shortTime(setting.modified) : baseType(setting.type)));
  }

  /// Selects a row, and changes its value there; in the details if the row has no room.
  async edit(index, column = this.column) {
    await this.select(index, column);
    const setting = this.setting(index);
    const row = this.nodes.get(index);
    if (!setting || !row || index !== this.selected) return;
    if (this.editing.allows(setting) && !this.hooks.pendingFor(setting)) this.editing.begin(row, setting, this.place(row) ?? row);
    else this.hooks.opened();
  }

  /// Highlights settings for a moment that have just been changed.
  mark(names) {
    const end = Date.now() + markTime;
    for (const [collection, key] of names) this.marks.set(identity({ collection, key }), end);
    this.draw();
    setTimeout(() => {
      for (const [name, end] of this.marks) if (end <= Date.now()) this.marks.delete(name);
      this.draw();
    }, markTime + 50);
  }

  // Selecting

  async select(index, column = this.column) {
    if (index < 0 || index >= this.total) return;
    [this.selected, this.column] = [index, column];
    const height = this.rowHeight();
    const top = index * height;
    if (top < this.top) this.top = top;
    else if (top + height > this.top + this.viewHeight()) this.top = top + height - this.viewHeight();
    this.draw();
    this.showColumn();
    if (!this.entry(index)) await this.loading.get(Math.floor(index / blockSize));
    const setting = this.setting(index);
    if (setting && index === this.selected) this.hooks.selected(setting);
  }

  /// Scrolls sideways to the selected cell.
  showColumn() {
    const row = this.nodes.get(this.selected);
    const cell = row && this.place(row);
    if (!cell) return;
    // The names stay at the left, over what is scrolled.
    const [left, right] = [cell.offsetLeft - row.firstElementChild.offsetWidth, cell.offsetLeft + cell.offsetWidth - this.box.clientWidth];
    this.box.scrollLeft = Math.min(Math.max(this.box.scrollLeft, right), left);
  }

  key(event) {
    // A control in a row.
    if (event.target !== this.box) {
      if (event.key === "Escape") this.box.focus({ preventScroll: true });
      return;
    }
    const page = Math.max(1, Math.floor(this.viewHeight() / this.rowHeight()) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.total, End: this.total };
    if (event.key in steps && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      this.select(Math.min(this.total - 1, Math.max(0, this.selected + steps[event.key])));
    } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      const isRight = event.key === "ArrowRight";
      if (this.columns === null) this.fold(this.selected, !isRight);
      else this.select(Math.max(0, this.selected), Math.min(this.columns.length - 1, Math.max(0, this.column + (isRight ? 1 : -1))));
    } else if (event.key === "F2" && this.selected >= 0) {
      event.preventDefault();
      this.edit(this.selected);
    } else if (event.key === "Enter" && this.selected >= 0) {
      event.preventDefault();
      if (this.entry(this.selected)?.section) this.fold(this.selected);
      else this.hooks.opened();
    }
  }
}

/// The sidebar, and the menu that replaces it on small screens.
export class Sidebar {
  constructor(list, menu, chosen) {
    this.list = list;
    this.menu = menu;
    this.chosen = chosen;
    this.current = null;
    menu.addEventListener("change", () => this.choose(menu.value === "all" ? null : menu.value.slice(2)));
  }

  choose(name) {
    this.current = name;
    this.chosen(name);
    this.draw();
  }

  show(collections) {
    this.collections = collections;
    // The current collection stays, empty.
    if (this.current !== null && !collections.some(({ name }) => name === this.current)) {
      this.collections = [...collections, { name: this.current, count: 0 }];
    }
    this.draw();
  }

  draw() {
    const total = this.collections.reduce((sum, { count }) => sum + count, 0);
    const entries = [{ name: null, count: total }, ...this.collections];
    const state = JSON.stringify([entries, this.current]);
    if (state === this.state) return;
    this.state = state;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.collection;
    const label = (name) => name === null ? "All collections" : collectionName(name);
    this.list.replaceChildren(...entries.map(({ name, count, sealed }) => {
      const button = element("button", {
        type: "button", class: "plain", "aria-current": name === this.current ? "true" : undefined,
        onclick: () => this.choose(name),
      }, element("span", {}, label(name)), sealed && element("span", { class: "tag" }, "sealed"),
      element("span", { class: "number" }, count.toLocaleString()));
      button.dataset.collection = name === null ? "all" : `c:${name}`;
      return element("li", {}, button);
    }));
    if (focused) [...this.list.querySelectorAll("button")].find((node) => node.dataset.collection === focused)?.focus();
    this.menu.replaceChildren(...entries.map(({ name, count }) => element("option", {
      value: name === null ? "all" : `c:${name}`, selected: name === this.current,
    }, `${label(name)} (${count.toLocaleString()})`)));
  }
}
