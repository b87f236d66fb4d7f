// What the compiler has to accept, and to refuse, of a program that uses the client for Node.
import { Conflict, InvalidValue, Secret, Settings, UUID, Value } from 'coffer-client'

const settings = await Settings.open(['web', 'shop'], { store: 'store', keyFile: 'key', reveal: false, patience: 1000 })
const port: number = settings.get('web', 'port', Number)
const theme: string = settings.get('web', 'theme', String, 'light')
const big: bigint = settings.get('web', 'big', BigInt)
const data: Uint8Array = settings.get('web', 'data', Uint8Array)
const since: Date = settings.get('web', 'since', Date)
const id: UUID = settings.get('web', 'id', UUID)
const hosts: Value[] = settings.get('web', 'hosts', Array)
const any: Value = settings.get('web', 'any')
const token: Secret = await settings.secret('web', 'token')
const end: () => void = settings.onChange('web', null, item => item.version > 1 && item.value)
const visits: number = await settings.update('web', 'visits', value => (typeof value === 'number' ? value : 0) + 1)
const version: number = (await settings.set('web', 'port', port, { ifVersion: 3, expiresIn: '2h' })).version
await settings.transaction([{ set: ['web', 'port', 1, { type: 'int' }] }, { unset: ['web', 'host'] }], { checks: [settings.item('web', 'port')] })
try {
  await settings.unset('web', 'port', { ifVersion: version })
} catch (error) {
  if (error instanceof Conflict || error instanceof InvalidValue) console.log(error.name, error.code, error.message, error.store)
}
// @ts-expect-error: a number is no string.
const wrong: string = settings.get('web', 'port', Number)
// @ts-expect-error: a function is no value.
await settings.set('web', 'port', () => 1)
// @ts-expect-error: there is no such option.
await settings.set('web', 'port', 1, { ifversion: 1 })
// @ts-expect-error: a change has a place.
await settings.transaction([{ set: ['web'] }])
console.log(theme, big, data, since, id, hosts, any, token.text, end, visits, wrong)
await settings.close()
