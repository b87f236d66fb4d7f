// The client for Node, driven like worker.py.
import { createInterface } from 'node:readline'
import { CofferError, InvalidValue, Secret, Settings } from 'coffer-client'

const settings = await Settings.open(process.argv.slice(2), {
  reveal: 'COFFER_REVEAL' in process.env, patience: (process.env.COFFER_PATIENCE ?? 30) * 1000
})
const seen = []
const print = answer => process.stdout.write(JSON.stringify(answer) + '\n')
const byName = list => Object.fromEntries(list.map(item => [item.key, item.value]))

const names = {
  get: (collection, key) => settings.get(collection, key),
  default: (collection, key, value) => settings.get(collection, key, value.constructor, value),
  number: (collection, key) => settings.get(collection, key, Number),
  item: (collection, key) => [settings.item(collection, key).version, settings.item(collection, key).origin],
  items: collection => settings.items(collection).map(item => item.key),
  values: collection => byName(settings.items(collection)),
  size: (collection, key) => settings.get(collection, key, String).length,
  large: async (collection, key, size) => (await settings.set(collection, key, 'é'.repeat(size / 2))).version,
  set: async (collection, key, value, { if_version: ifVersion, ...options } = {}) =>
    (await settings.set(collection, key, value, ifVersion === undefined ? options : { ifVersion, ...options })).version,
  'set-secret': async (collection, key, value) => (await settings.set(collection, key, new Secret(value))).version,
  secret: async (collection, key) => (await settings.secret(collection, key)).text,
  shown: async (collection, key) => `${JSON.stringify(settings.item(collection, key))} ${await settings.secret(collection, key)}`,
  unset: async (collection, key) => (await settings.unset(collection, key)).version,
  copy: async (collection, key, other) => (await settings.set(collection, other, settings.get(collection, key))).version,
  // Appends to a secret that is in memory.
  lengthen: async (collection, key) => {
    await settings.update(collection, key, secret => new Secret(secret.text + '!'))
    return `${settings.get(collection, key).text} ${settings.item(collection, key).value}`
  },
  // Changes a list in place, and then gives up.
  spoil: (collection, key) =>
    settings.update(collection, key, value => {
      value.list.push(5)
      throw new InvalidValue('given up')
    }),
  increment: async (collection, key, times) => {
    let last
    for (let count = 0; count < times; count++) last = await settings.update(collection, key, value => (value ?? 0) + 1)
    return last
  },
  // Sets keys with numbers, and prints each number once it is acknowledged; reads meanwhile.
  write: async (collection, key, first, times, size) => {
    for (let number = first; number < first + times; number++) {
      try {
        await settings.set(collection, `${key}${number}`, number)
        print({ acknowledged: number })
      } catch (error) {
        if (error.name !== 'unavailable') throw error
      }
      if (settings.get(collection, 'large', String).length !== size) throw new Error('a value is gone')
    }
    return null
  },
  transaction: async (collection, key, version, ...changes) => {
    const list = changes.map(([name, value, options]) =>
      value === null ? { unset: [collection, name] } : { set: [collection, name, value, options] })
    const items = await settings.transaction(list, { checks: key === null ? [] : [{ collection, key, version }] })
    return items.map(item => item.version)
  },
  // Sets a value if that in memory is the present one.
  check: async (collection, key, value) => {
    await settings.transaction([{ set: [collection, key, value] }], { checks: [settings.item(collection, key)] })
  },
  // Until an observer has been called, and the value is this one.
  wait: (collection, key, value) =>
    new Promise(resolve => {
      const wanted = JSON.stringify(value)
      const look = () => {
        const item = settings.item(collection, key)
        if (JSON.stringify(item.isSet ? item.value : null) !== wanted) return
        clearTimeout(timer)
        end()
        resolve(true)
      }
      const timer = setTimeout(() => resolve(false), 60_000)
      const end = settings.onChange(collection, key, look)
      look()
    }),
  describe: async (collection, key) => (await settings.request('describe', { collection, key })).type,
  observe: (collection, key) => Boolean(settings.onChange(collection, key, item => seen.push([item.key, item.isSet ? item.value : null]))),
  seen: () => seen,
  problem: () => settings.problem?.name ?? null,
  close: () => settings.close()
}

print('ready')
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...values] = JSON.parse(line)
  try {
    print({ ok: (await names[name](...values)) ?? null })
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    print({ error: error.name, code: error.code, message: error.message })
  }
}
await settings.close()
