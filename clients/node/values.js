// Items and values, as JavaScript's and in the form of the protocol, which is that of `prefs export --format json`.
import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { Hidden, NotFound } from './errors.js'

const marks = new Set('$null $int $double $string $data $date $url $uuid $json $secret $dict'.split(' '))
const from2001 = Date.UTC(2001)
// Stands for a number that `JSON.parse` and `JSON.stringify` would round or write otherwise, in what JSON of this process has no other name for.
const exact = `exact-${randomUUID()}`

/** A secret, which is printed as its length. */
export class Secret {
  #data
  constructor(value) {
    if (typeof value === 'string' && !value.isWellFormed()) throw new TypeError('A secret with half of a surrogate pair cannot be stored.')
    this.#data = Buffer.from(value)
  }
  get data() {
    return this.#data
  }
  /** Throws for a secret that is not text. */
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

/** A UUID, which is no string to the store. */
export class UUID {
  constructor(text) {
    this.text = text
  }
  toString() {
    return this.text
  }
}

/** JSON that the store keeps as one text. */
export class Json {
  constructor(value) {
    this.value = value
  }
}

/** A value that JavaScript has no type for, such as a date beyond its calendar, in the form of the protocol. */
export class Marked {
  constructor(form) {
    this.form = form
  }
}

/** A setting: its value, and what the store knows of it. */
export class Item {
  #text
  #value
  constructor(line) {
    const { value, ...members } = line
    Object.assign(this, { type: null, origin: null, sealed: false }, members)
    this.#text = JSON.stringify(line)
    this.#value = value === undefined ? undefined : decode(value)
  }
  /** Whether it has a value or a default. */
  get isSet() {
    return this.type !== null
  }
  /** Throws `NotFound` if there is none, and `Hidden` if it is a secret that was not asked for, or sealed. */
  get value() {
    const name = `${this.collection}/${this.key}`
    if (this.#value !== undefined) return this.#value
    if (this.sealed) throw new Hidden(`${name} is sealed, and the vault is locked: prefs unlock opens it.`)
    if (this.type === 'secret') throw new Hidden(`${name} is a secret: read it with secret(), or open with reveal.`)
    if (this.isSet) throw new Hidden(`This item of ${name} is the answer to a change, without a value: read it with get().`)
    throw new NotFound(`There is no ${name}.`)
  }
  copy() {
    return new Item(JSON.parse(this.#text))
  }
  equals(other) {
    return other?.#text === this.#text
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
    case exact: return BigInt(content)
    case '$null': return null
    case '$int': return Number.isSafeInteger(Number(content)) ? Number(content) : BigInt(content)
    case '$double': return { inf: Infinity, '-inf': -Infinity }[content] ?? NaN
    case '$string': return content
    case '$data': return Buffer.from(content, 'base64')
    case '$date': {
      const isText = typeof content === 'string'
      const date = new Date(isText ? content : from2001 + decode(content) * 1000)
      return Number.isNaN(date.getTime()) || (isText && !/^\d{4}-/.test(content)) ? new Marked(value) : date
    }
    case '$url':
      try {
        return Array.isArray(content) ? new URL(...content) : new URL(content)
      } catch {
        return new Marked(value)
      }
    case '$uuid': return new UUID(content)
    case '$json': return new Json(typeof content === 'string' ? inJson(parse(content)) : decode(content))
    case '$secret': return new Secret(decode(content))
    case '$dict': return mapped(content, decode)
    default: return { [name]: decode(content) }
  }
}

/** The contents of a Json, in which names have no meaning but the one for numbers. */
function inJson(value) {
  if (Array.isArray(value)) return value.map(inJson)
  if (value === null || typeof value !== 'object') return value
  return exact in value ? BigInt(value[exact]) : mapped(value, inJson)
}

const mapped = (object, change) => Object.fromEntries(Object.entries(object).map(([name, element]) => [name, change(element)]))

export function encode(value) {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return { $double: Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf' }
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? exact + value.toExponential() : value // Else it would be an integer.
  }
  if (typeof value === 'bigint') return exact + value
  if (Array.isArray(value)) return value.map(encode)
  if (value instanceof Uint8Array) return { $data: Buffer.from(value).toString('base64') }
  if (value instanceof Date) return { $date: value.toISOString() }
  if (value instanceof URL) return { $url: value.href }
  if (value instanceof UUID) return { $uuid: value.text }
  if (value instanceof Marked) return value.form
  if (value instanceof Json) {
    const text = stringify(value.value, (_, element) => (typeof element === 'bigint' ? exact + element : element))
    if (text === undefined) throw new TypeError(`A ${typeof value.value} is no JSON.`)
    return { $json: text }
  }
  if (value instanceof Secret) {
    const text = value.data.toString()
    return { $secret: Buffer.from(text).equals(value.data) ? text : encode(value.data) }
  }
  if (typeof value === 'object' && [Object.prototype, null].includes(Object.getPrototypeOf(value))) {
    const members = mapped(value, encode)
    const [name, ...others] = Object.keys(value)
    return !others.length && marks.has(name) ? { $dict: members } : members
  }
  throw new TypeError(`A ${value?.constructor?.name ?? typeof value} cannot be stored.`)
}

/** JSON whose integers beyond 2^53 are exact, which `JSON.parse` rounds. */
export function parse(line) {
  if (!/\d{16}/.test(line)) return JSON.parse(line)
  let text = ''
  for (let start = 0; start < line.length; ) {
    const quote = line.indexOf('"', start)
    const between = quote < 0 ? line.slice(start) : line.slice(start, quote)
    text += between.replace(/-?\d+(\.\d+)?([eE][-+]?\d+)?/g, number =>
      /^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number)) ? `{"${exact}":"${number}"}` : number)
    if (quote < 0) break
    let end = quote
    let slashes
    do {
      end = line.indexOf('"', end + 1)
      for (slashes = 0; line[end - 1 - slashes] === '\\'; ) slashes++
    } while (slashes % 2)
    text += line.slice(quote, end + 1)
    start = end + 1
  }
  return JSON.parse(text)
}

/** The opposite of `parse`, for what `encode` returns. */
export function stringify(value, replacer) {
  return JSON.stringify(value, replacer)?.replace(new RegExp(`"${exact}([^"]*)"`, 'g'), '$1')
}
