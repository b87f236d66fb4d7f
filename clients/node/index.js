// Settings that are read from memory, and follow the store. index.d.ts has the documentation.
import { Child, checked } from './child.js'
import { CofferError, Conflict, Unavailable, errorOf } from './errors.js'
import { Item, Secret, encode } from './values.js'

export * from './errors.js'
export { Item, Json, Marked, Secret, UUID } from './values.js'

// They are not sent to another child if the answer is missing.
const changes = new Set(['set', 'unset', 'update', 'transaction'])
const known = new Set(['type', 'ifVersion', 'expiresIn', 'expiresAt', 'due', 'undeclared'])
const place = (collection, key) => `${collection?.length} ${collection}${key}`
const commit = position => parseInt(position) || 0

export class Settings {
  #program
  #arguments
  #patience
  #wanted
  #items = new Map()
  #observers = new Set()
  #position = ''
  #child
  #hasStarted = false
  #isCurrent = false
  #isClosing = false
  #idle = []
  #over
  problem = null

  static async open(collections, options = {}) {
    const settings = new Settings(collections, options)
    settings.#over = settings.#follow()
    try {
      await Promise.race([settings.#over, settings.#connected()])
      await settings.#connected()
    } catch (error) {
      await settings.close()
      throw settings.problem ?? error
    }
    return settings
  }

  constructor(collections, { store, keyFile, app, args = [], reveal = false, program = 'prefs', patience = 30_000 }) {
    const options = { '--store': store, '--key-file': keyFile, '--app': app }
    const given = Object.entries(options).filter(([, value]) => value != null).flat()
    this.#program = program
    this.#arguments = ['serve', ...args, ...given]
    this.#patience = patience
    this.#wanted = { collections: [collections ?? app ?? ''].flat(), reveal }
  }

  get(collection, key, kind, fallback) {
    const item = this.item(collection, key)
    if (!item.isSet && fallback !== undefined) return fallback
    const { value } = item
    const isOfKind = kind === Object ? Object.getPrototypeOf(Object(value)) === Object.prototype : Object(value) instanceof (kind ?? Object)
    if (!kind || (value !== null && isOfKind)) return value
    throw new CofferError(`${collection}/${key} has a value of type ${item.type}, and ${kind.name} was asked for.`, 'wrongType')
  }

  item(collection, key) {
    return this.#items.get(place(collection, key)) ?? new Item({ collection, key, version: 0 })
  }

  items(collection) {
    return [...this.#items.values()].filter(item => item.collection === collection).sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  async secret(collection, key) {
    const { value } = new Item(await this.request('get', { collection, key, reveal: true }))
    if (value instanceof Secret) return value
    throw new CofferError(`${collection}/${key} is no secret.`, 'wrongType')
  }

  onChange(collection, key, observer) {
    const entry = { collection, key, observer }
    this.#observers.add(entry)
    return () => this.#observers.delete(entry)
  }

  async set(collection, key, value, options) {
    return new Item(await this.request('set', { collection, key, value: encode(value), ...checkedOptions(options) }))
  }

  async unset(collection, key, options) {
    return new Item(await this.request('unset', { collection, key, ...checkedOptions(options) }))
  }

  async update(collection, key, change, options) {
    let item = this.item(collection, key)
    for (let attempt = 0; attempt < 1000; attempt++) {
      const value = await change(item.isSet ? item.copy().value : undefined) // It may change an array in place, and fail.
      const members = { ...checkedOptions(options), ifVersion: item.version, reveal: this.#wanted.reveal }
      const { conflict } = await this.request('update', { collection, key, value: encode(value), ...members })
      if (!conflict) return value
      item = new Item(conflict)
      await new Promise(resolve => setTimeout(resolve, Math.random() * Math.min(attempt, 20)))
    }
    throw new Conflict(`Other programs changed ${collection}/${key} each time; nothing was changed.`)
  }

  async transaction(list, { checks = [] } = {}) {
    const answer = await this.request('transaction', {
      undeclared: list.some(({ set }) => set?.[3]?.undeclared),
      checks: checks.map(({ collection, key, version }) => ({ collection, key, version })),
      changes: list.map(({ set, unset }) => {
        const [collection, key, value, options] = set ?? unset
        return set ? { set: { collection, key, value: encode(value), ...checkedOptions(options) } } : { unset: { collection, key } }
      })
    })
    return answer.items.map(item => new Item(item))
  }

  async request(request, members = {}) {
    for (;;) {
      // Without waiting, if possible: what was asked for before `close` is sent before it.
      const child = this.#isCurrent && !this.#isClosing ? this.#child : await this.#connected()
      const answer = await this.#within('prefs serve has not answered in time; a change may still be made.', resolve => child.send(request, members, resolve))
      if (changes.has(request) || answer.error?.error !== 'unavailable') return checked(answer)
    }
  }

  async close() {
    this.#isClosing = true
    this.#child?.close()
    this.#wake()
    const late = setTimeout(() => this.#child?.kill(), 5000)
    await this.#over.finally(() => clearTimeout(late))
  }

  /** The child, once its snapshot is there. */
  async #connected() {
    while (!this.#isCurrent && !this.#isClosing) await this.#within('prefs serve does not run.', resolve => this.#idle.push(resolve))
    if (this.#isClosing) throw new Unavailable('The settings are closed.')
    return this.#child
  }

  async #within(message, start) {
    let timer
    try {
      return await new Promise((resolve, reject) => {
        timer = setTimeout(() => reject(new Unavailable(`${message} ${this.problem?.message ?? ''}`.trim())), this.#patience)
        start(resolve)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  #wake() {
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Starts one child after another. */
  async #follow() {
    let delay = 50
    while (!this.#isClosing) {
      // In the place of a store that is away, another one would be empty.
      const args = this.#hasStarted ? [...this.#arguments, '--must-exist'] : this.#arguments
      this.#child = new Child(this.#program, args, {
        hello: child => this.#begin(child),
        notice: notice => this.#notice(notice),
        over: () => {
          delay = this.#isCurrent ? 50 : delay
          this.#isCurrent = false
        }
      })
      this.problem = await this.#child.ended
      if (!this.#hasStarted) this.#isClosing = true
      if (!this.#isClosing) await new Promise(resolve => this.#idle.push(resolve) && setTimeout(resolve, delay))
      delay = Math.min(delay * 2, 5000)
    }
    this.#wake()
  }

  #begin(child) {
    this.#position = ''
    child.send('watch', { ...this.#wanted, values: true }, checked)
    this.#ask(child)
  }

  #ask(child = this.#child) {
    child.send('snapshot', this.#wanted, answer => child.isOver || this.#fill(checked(answer)))
  }

  /** Takes a snapshot. */
  #fill({ position, items }) {
    if (commit(position) < commit(this.#position)) return this.#ask() // A newer notice came before it.
    const former = this.#items
    this.#items = new Map(items.map(line => new Item(line)).filter(item => item.isSet).map(item => [place(item.collection, item.key), item]))
    this.#position = position
    this.problem = null
    if (this.#hasStarted) {
      for (const [name, item] of this.#items) if (!item.equals(former.get(name))) this.#changed(item)
      for (const [name, { collection, key }] of former) if (!this.#items.has(name)) this.#changed(this.item(collection, key))
    }
    this.#hasStarted = this.#isCurrent = true
    this.#wake()
  }

  #notice(notice) {
    if (notice.unavailable) {
      this.problem = errorOf(notice.unavailable)
    } else if (!notice.changes) {
      this.#position = notice.position ?? this.#position // Of a replaced store, it may be lower.
      this.#ask()
    } else if (commit(notice.position) >= commit(this.#position)) { // Else the snapshot has it, and what came after it.
      this.#position = notice.position
      const items = notice.changes.map(change => new Item(change.item))
      for (const item of items) {
        if (item.isSet) this.#items.set(place(item.collection, item.key), item)
        else this.#items.delete(place(item.collection, item.key))
      }
      items.forEach(item => this.#changed(item))
    }
  }

  /** Calls observers, later, so that one that throws ends nothing here. */
  #changed(item) {
    for (const entry of this.#observers) {
      const { collection, key, observer } = entry
      if (collection !== item.collection || (key !== null && key !== item.key)) continue
      queueMicrotask(() => this.#observers.has(entry) && observer(item))
    }
  }
}

function checkedOptions(options = {}) {
  const unknown = Object.keys(options).filter(name => !known.has(name))
  if (unknown.length) throw new TypeError(`There is no option ${unknown.join(', ')}; there are ${[...known].join(', ')}.`)
  if ('ifVersion' in options && !Number.isSafeInteger(options.ifVersion)) throw new TypeError('ifVersion is an integer; 0 means that there must be no value.')
  return options
}
