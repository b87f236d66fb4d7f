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
// A name that is missing would be left out of a request, and be the default collection there.
const named = (collection, key) => {
  if (typeof collection === 'string' && typeof key === 'string') return { collection, key }
  throw new TypeError('A setting has a collection and a key, which are strings.')
}
// Whether there is anything to know of an item; a stored value that does not fit is a problem without a value.
const isKept = line => line.type || line.problem

export class Settings {
  #program
  #arguments
  #patience
  #wanted
  #items = new Map()
  #observers = new Set()
  #store = ''
  #watch
  #child
  #delay = 50
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
      const { problem } = settings
      await settings.close()
      throw problem ?? error
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
    return this.#items.get(place(collection, key)) ?? new Item({ collection: this.#followed(collection), key, version: 0 }, this.#store)
  }

  items(collection) {
    this.#followed(collection)
    return [...this.#items.values()].filter(item => item.collection === collection && item.isSet).sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  async secret(collection, key) {
    const { value } = new Item(await this.request('get', { ...named(collection, key), reveal: true }))
    if (value instanceof Secret) return value
    throw new CofferError(`${collection}/${key} is no secret.`, 'wrongType')
  }

  onChange(collection, key, observer) {
    const entry = { collection: this.#followed(collection), key, observer }
    this.#observers.add(entry)
    return () => this.#observers.delete(entry)
  }

  async set(collection, key, value, options) {
    return this.#change('set', { ...named(collection, key), value: encode(value), ...checkedOptions(options) })
  }

  async unset(collection, key, options) {
    return this.#change('unset', { ...named(collection, key), ...checkedOptions(options) })
  }

  async update(collection, key, change, options) {
    let item = this.item(collection, key)
    for (let attempt = 0; attempt < 1000; attempt++) {
      const value = await change(item.isSet ? item.copy().value : undefined) // It may change an array in place, and fail.
      const members = { ...checkedOptions(options), ifVersion: item.version, ...item.expected, reveal: this.#wanted.reveal }
      const { conflict, store } = await this.request('update', { collection, key, value: encode(value), ...members })
      if (!conflict) return value
      item = new Item(conflict, store)
      await new Promise(resolve => setTimeout(resolve, Math.random() * Math.min(attempt, 20)))
    }
    throw new Conflict(`Other programs changed ${collection}/${key} each time; nothing was changed.`)
  }

  async transaction(list, { checks = [] } = {}) {
    const store = this.#store
    const answer = await this.request('transaction', {
      checks: checks.map(({ collection, key, version, expected }) => ({ collection, key, version, ...expected })),
      changes: list.map(({ set, unset }) => {
        const [collection, key, value, options] = set ?? unset
        return set ? { set: { ...named(collection, key), value: encode(value), ...checkedOptions(options) } } : { unset: named(collection, key) }
      })
    })
    return answer.items.map(item => new Item(item, store))
  }

  async request(request, members = {}) {
    for (;;) {
      // Without waiting, if possible: what was asked for before `close` is sent before it.
      const child = this.#isCurrent && !this.#isClosing ? this.#child : await this.#connected()
      let late
      const start = resolve =>
        child.send(request, members, answer => {
          if (this.problem === late) this.problem = null
          resolve(answer)
        })
      const answer = await this.#within('prefs serve has not answered in time; a change may still be made.', start).catch(error => {
        if (error instanceof Unavailable) this.problem ??= late = error
        throw error
      })
      if (!changes.has(request) && answer.error?.error === 'unavailable') continue
      return checked(answer)
    }
  }

  async close() {
    this.#isClosing = true
    this.#child?.close()
    this.#wake()
    const late = setTimeout(() => this.#child?.kill(), 5000)
    await this.#over.finally(() => clearTimeout(late))
  }

  /** The child, once it has sent the values. */
  async #connected() {
    const message = `prefs serve has not sent the values for ${this.#patience} ms.`
    while (!this.#isCurrent && !this.#isClosing) await this.#within(message, resolve => this.#idle.push(resolve))
    if (this.#isClosing) throw new Unavailable('The settings are closed.')
    return this.#child
  }

  /** The item of the answer, in the store that was there before: if another one takes its place, a check must fail. */
  async #change(request, members) {
    const store = this.#store
    return new Item(await this.request(request, members), store)
  }

  #followed(collection) {
    if (this.#wanted.collections.includes(collection)) return collection
    throw new CofferError(`These settings do not follow the collection "${collection}": name it when they are opened.`, 'usage', 2)
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
    while (!this.#isClosing) {
      // In the place of a store that is away, another one would be empty.
      const args = this.#hasStarted ? [...this.#arguments, '--must-exist'] : this.#arguments
      this.#child = new Child(this.#program, args, {
        hello: child => this.#begin(child),
        notice: notice => this.#notice(notice),
        over: () => {
          this.#isCurrent = false
        }
      })
      this.problem = await this.#child.ended
      if (!this.#hasStarted) this.#isClosing = true
      if (!this.#isClosing) await new Promise(resolve => this.#idle.push(resolve) && setTimeout(resolve, this.#delay))
      this.#delay = Math.min(this.#delay * 2, 5000)
    }
    this.#wake()
  }

  #begin(child) {
    this.#watch = null
    child.send('watch', { ...this.#wanted, snapshots: true }, answer => (this.#watch = checked(answer).watch))
  }

  #notice({ watch, unavailable, store, items, changes = [] }) {
    if (watch !== this.#watch) return // Of one that the program has asked for.
    if (unavailable) this.problem = errorOf(unavailable)
    if (items) this.#take(store, items)
    for (const { item } of changes) {
      const name = place(item.collection, item.key)
      if (isKept(item)) this.#items.set(name, new Item(item, this.#store))
      else this.#items.delete(name)
    }
    for (const { item } of changes) this.#changed(item)
  }

  #take(store, items) {
    const former = this.#items
    this.#store = store
    this.#items = new Map(items.filter(isKept).map(line => [place(line.collection, line.key), new Item(line, store)]))
    this.#delay = 50
    this.problem = null
    if (this.#hasStarted) {
      for (const [name, item] of this.#items) if (!item.equals(former.get(name))) this.#changed(item)
      for (const [name, { collection, key }] of former) if (!this.#items.has(name)) this.#changed({ collection, key })
    }
    this.#hasStarted = this.#isCurrent = true
    this.#wake()
  }

  /** Calls observers, later, so that one that throws ends nothing here. */
  #changed({ collection, key }) {
    for (const entry of this.#observers) {
      if (entry.collection !== collection || (entry.key !== null && entry.key !== key)) continue
      queueMicrotask(() => this.#observers.has(entry) && entry.observer(this.item(collection, key)))
    }
  }
}

function checkedOptions(options = {}) {
  const unknown = Object.keys(options).filter(name => !known.has(name))
  if (unknown.length) throw new TypeError(`There is no option ${unknown.join(', ')}; there are ${[...known].join(', ')}.`)
  if ('ifVersion' in options && !Number.isSafeInteger(options.ifVersion)) throw new TypeError('ifVersion is an integer; 0 means that there must be no value.')
  return options
}
