// Items and values, as JavaScript's and in the form of the protocol, which is that of `prefs export --format json`.
import { randomUUID } from 'node:crypto'
import { inspect, isDeepStrictEqual } from 'node:util'
import { CofferError, InvalidValue, NotFound } from './errors.js'

const marks = new Set('$null $int $double $string $data $date $url $uuid $json $secret $dict'.split(' '))
const from2001 = Date.UTC(2001)
// Stands for a number that `JSON.parse` and `JSON.stringify` would round or write otherwise, in what JSON of this process has no other name for.
const exact = `exact-${randomUUID()}`

export class Secret {
  #data
  constructor(value) {
    if (typeof value === 'string' && !value.isWellFormed()) throw new TypeError('A secret with half of a surrogate pair cannot be stored.')
    this.#data = Buffer.from(value)
  }
  get data() {
    return Buffer.from(this.#data)
  }
  get text() {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.#data)
  }
  toString() {
    return `<secret: ${this.#data.length} byte${this.#data.length === 1 ? '' : 's'}>`
  }
  toJSON() {
    return this.toString()
  }
  [inspect.custom]() {
    return this.toString()
  }
}

export class UUID {
  constructor(text) {
    this.text = text
  }
  toString() {
    return this.text
  }
}

export class Json {
  constructor(value) {
    this.value = value
  }
}

export class Marked {
  constructor(form) {
    this.form = form
  }
}

export class Item {
  #line
  #store
  #value
  /** One of the store with this ID, if it is known. */
  constructor(line, store) {
    const { value, ...members } = line
    Object.assign(this, { type: null, origin: null, sealed: false }, members)
    this.#line = line
    this.#store = store
    this.#value = value === undefined ? undefined : decode(value)
  }
  get isSet() {
    return this.type !== null
  }
  /** The store that the version is of, for a request. */
  get expected() {
    return { store: this.#store }
  }
  get value() {
    if (this.#value !== undefined) return this.#value
    const name = `${this.collection}/${this.key}`
    if (!this.isSet) throw new NotFound(this.problem ? `There is no ${name}: ${this.problem}.` : `There is no ${name}.`)
    if (this.sealed) throw new CofferError(`${name} is sealed, and the vault is locked: prefs unlock opens it.`, 'hidden')
    if (this.type === 'secret') throw new CofferError(`${name} is a secret: read it with secret(), or open with reveal.`, 'hidden')
    if (this.problem) throw new InvalidValue(`${name} has a value that cannot be read: ${this.problem}.`)
    throw new CofferError(`This item of ${name} is the answer to a change, without a value: read it with get().`, 'hidden')
  }
  copy() {
    return new Item(this.#line, this.#store)
  }
  equals(other) {
    return isDeepStrictEqual(this.#line, other?.#line)
  }
}

export function decode(value) {
  if (Array.isArray(value)) return value.map(decode)
  if (value === null || typeof value !== 'object') return value
  const names = Object.keys(value)
  if (names.length !== 1) return mapped(value, decode)
  const [name] = names
  const content = value[name]
  switch (name) {
    case '$null': return null
    case '$int': return Number.isSafeInteger(Number(content)) ? Number(content) : BigInt(content)
    case '$double': return { inf: Infinity, '-inf': -Infinity }[content] ?? NaN
    case '$string': return content
    case '$data': return Buffer.from(content, 'base64')
    case '$date': {
      const isText = typeof content === 'string'
      const date = new Date(isText ? content : from2001 + Number(decode(content)) * 1000)
      return Number.isNaN(date.getTime()) || (isText && !/^\d{4}-/.test(content)) ? new Marked(value) : date
    }
    case '$url':
      try {
        return Array.isArray(content) ? new URL(...content) : new URL(content)
      } catch {
        return new Marked(value)
      }
    case '$uuid': return new UUID(content)
    case '$json': return new Json(typeof content === 'string' ? parse(content) : decode(content))
    case '$secret': return new Secret(decode(content))
    case '$dict': return mapped(content, decode)
    default: return { [name]: decode(content) }
  }
}

const mapped = (object, change) => Object.fromEntries(Object.entries(object).map(([name, element]) => [name, change(element)]))

export function encode(value) {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return { $double: Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf' }
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? exact + value.toExponential() : value // Else it would be an integer.
  }
  if (typeof value === 'bigint') return exact + value
  if (Array.isArray(value)) return Array.from(value, element => encode(element)) // `map` would pass over holes.
  if (value instanceof Uint8Array) return { $data: Buffer.from(value).toString('base64') }
  if (value instanceof Date) return { $date: value.toISOString() }
  if (value instanceof URL) return { $url: value.href }
  if (value instanceof UUID) return { $uuid: value.text }
  if (value instanceof Marked) return value.form
  if (value instanceof Json) {
    const text = stringify(value.value)
    if (text === undefined) throw new TypeError(`A ${typeof value.value} is no JSON.`)
    return { $json: text }
  }
  if (value instanceof Secret) {
    const text = value.data.toString()
    return { $secret: Buffer.from(text).equals(value.data) ? text : encode(value.data) }
  }
  if (typeof value === 'object' && [Object.prototype, null].includes(Object.getPrototypeOf(value))) {
    const members = mapped(value, encode)
    const names = Object.keys(value)
    return names.length === 1 && marks.has(names[0]) ? { $dict: members } : members
  }
  throw new TypeError(`A ${value?.constructor?.name ?? typeof value} cannot be stored.`)
}

/** JSON whose integers beyond 2^53 are exact, which `JSON.parse` rounds. */
export function parse(line) {
  if (!/\d{16}/.test(line)) return JSON.parse(line)
  let isText = false
  const marked = line.replace(/\\.|"|[-+.eE\d]+/g, part => {
    if (part === '"') isText = !isText
    const isLarge = !isText && /^-?\d+$/.test(part) && !Number.isSafeInteger(Number(part))
    return isLarge ? `{"${exact}":"${part}"}` : part
  })
  return JSON.parse(marked, (_, value) => (value?.[exact] === undefined ? value : BigInt(value[exact])))
}

/** The opposite of `parse`, for what `encode` returns. */
export function stringify(value) {
  const marked = JSON.stringify(value, (_, element) => {
    if (typeof element === 'number' && !Number.isFinite(element)) throw new TypeError(`${element} is no JSON.`)
    return Object.is(element, -0) ? exact + '-0.0' : typeof element === 'bigint' ? exact + element : element
  })
  return marked?.replace(new RegExp(`"${exact}([^"]*)"`, 'g'), '$1')
}
