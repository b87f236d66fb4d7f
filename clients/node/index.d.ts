/** Any error, with the `name`, the `code` and the `message` of `prefs`, or the name "hidden", "wrongType" or "unavailable". */
export class CofferError extends Error {
  readonly code: number
  readonly store: string | null
}
/** There is no such setting, and no default. */
export class NotFound extends CofferError {}
/** The value does not fit the declaration of the setting, or its type. */
export class InvalidValue extends CofferError {}
/** The setting has another version than the one that was expected. */
export class Conflict extends CofferError {}
/** The server does not run, or has not answered; whether a change that was sent was made is then unknown. */
export class Unavailable extends CofferError {}

/** A secret, which is printed as its length. */
export class Secret {
  constructor(value: string | Uint8Array)
  readonly data: Uint8Array
  /** Throws for a secret that is not text. */
  readonly text: string
}
/** A UUID, which is no string to the store. */
export class UUID {
  constructor(text: string)
  readonly text: string
}
/** JSON that the store keeps as one text. */
export class Json {
  constructor(value: unknown)
  readonly value: unknown
}
/** A value that JavaScript has no type for, such as a date beyond its calendar, in the form of the protocol. */
export class Marked {
  readonly form: unknown
}

/** Integers beyond 2^53 are `bigint`. */
export type Value =
  | null | boolean | number | bigint | string | Uint8Array | Date | URL | UUID | Json | Secret | Marked
  | Value[] | { [name: string]: Value }

/** A setting: its value, and what the store knows of it. */
export class Item {
  readonly collection: string
  readonly key: string
  /** 0 for one that is absent or a default. */
  readonly version: number
  readonly type: string | null
  readonly origin: string | null
  readonly sealed: boolean
  readonly modified?: string
  readonly expires?: string
  readonly due?: string
  readonly problem?: string
  /** Whether it has a value or a default. */
  readonly isSet: boolean
  /** Throws `NotFound` if there is none, `InvalidValue` if the protocol has no form for it, and "hidden" if it is a secret that was not asked for, or sealed. */
  readonly value: Value
}

type Kinds = [
  [NumberConstructor, number], [BigIntConstructor, bigint], [StringConstructor, string], [BooleanConstructor, boolean],
  [DateConstructor, Date], [typeof URL, URL], [typeof Uint8Array, Uint8Array], [typeof UUID, UUID],
  [typeof Json, Json], [typeof Secret, Secret], [typeof Marked, Marked], [ArrayConstructor, Value[]],
  [ObjectConstructor, { [name: string]: Value }]
]
export type Kind = Kinds[number][0]
export type ValueOf<K extends Kind> = Extract<Kinds[number], [K, unknown]>[1]

/** Those of `prefs set`. */
export interface SetOptions {
  type?: string
  ifVersion?: number
  expiresIn?: string
  expiresAt?: string
  due?: string
  undeclared?: boolean
}

export interface OpenOptions {
  store?: string
  keyFile?: string
  app?: string
  /** More arguments for `prefs serve`. */
  args?: string[]
  /** Secrets are in memory like other values. */
  reveal?: boolean
  program?: string
  /** How many milliseconds a request waits before it is `Unavailable`: 30,000. */
  patience?: number
}

export type Change =
  | { set: [collection: string, key: string, value: Value, options?: SetOptions] }
  | { unset: [collection: string, key: string] }

/**
 * Collections of a store, as they are now.
 *
 * A child, `prefs serve`, runs until `close()`. While it is away, for whatever reason, values stay as they were, `problem` says why,
 * and it is started again.
 */
export class Settings {
  private constructor()
  /** Starts the child, and reads the collections. */
  static open(collections: string | string[] | undefined, options?: OpenOptions): Promise<Settings>
  /** Why values may be old; null while the child runs and can read the store. That it was stopped is noticed by the next request. */
  readonly problem: CofferError | null
  /** Throws "usage", as `item`, `items` and others do, for a collection that was not named at the opening. */
  get(collection: string, key: string): Value
  /** The value, else its declared default, else `fallback`. Throws "wrongType" if it is not of this kind. */
  get<K extends Kind>(collection: string, key: string, kind: K, fallback?: ValueOf<K>): ValueOf<K>
  /** The setting with its version and origin; one that is absent has version 0. */
  item(collection: string, key: string): Item
  /** All that are set or have a default, by key. */
  items(collection: string): Item[]
  /** A secret, which is asked for now, and not kept. */
  secret(collection: string, key: string): Promise<Secret>
  /** Calls `observer` with the newest item after each change of a key, or of any for null. Returns what ends it. */
  onChange(collection: string, key: string | null, observer: (item: Item) => void): () => void
  /** Sets a value with all checks of `prefs set`. Afterwards it is on the disk, and `get` has it. */
  set(collection: string, key: string, value: Value, options?: SetOptions): Promise<Item>
  unset(collection: string, key: string, options?: Pick<SetOptions, 'ifVersion'>): Promise<Item>
  /** Sets what `change` makes of the present value, or of undefined, and returns it; again if another program was faster. */
  update<T extends Value>(collection: string, key: string, change: (value: Value | undefined) => T | Promise<T>, options?: SetOptions): Promise<T>
  /** Changes that are made together, or not at all; none if an item of `checks` has another version by then, or is of another store. */
  transaction(changes: Change[], options?: { checks?: Item[] }): Promise<Item[]>
  /** Any request of the protocol: `ok` of its answer, or its error thrown. */
  request(request: string, members?: Record<string, unknown>): Promise<Record<string, any>>
  /** Ends the child. Values can still be read. */
  close(): Promise<void>
}
