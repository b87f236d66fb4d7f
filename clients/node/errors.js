// What can go wrong: the errors of the server, which are those of `prefs`, and a few of this package.

/** `name`, `code` and `message` are those of the server: the name of an exit code of `prefs`, the code, and a sentence. */
export class CofferError extends Error {
  constructor(message, name = 'other', code = 1, store = null) {
    super(message)
    Object.assign(this, { name, code, store })
  }
}

const named = (name, code) =>
  class extends CofferError {
    constructor(message, store) {
      super(message, name, code, store)
    }
  }

export class NotFound extends named('notFound', 3) {}
export class WrongKey extends named('wrongKey', 5) {}
export class KeyUnavailable extends named('keyUnavailable', 6) {}
export class InvalidValue extends named('format', 8) {}
export class Conflict extends named('conflict', 9) {}
export class Busy extends named('busy', 10) {}
export class Refused extends named('refused', 11) {}
export class Locked extends named('managed', 13) {}
export class Hidden extends named('hidden', 1) {}
export class WrongType extends named('wrongType', 1) {}
export class Unavailable extends named('unavailable', 1) {}

const kinds = {
  notFound: NotFound, wrongKey: WrongKey, keyUnavailable: KeyUnavailable, format: InvalidValue, conflict: Conflict, busy: Busy, refused: Refused,
  managed: Locked, unavailable: Unavailable
}

/** The error of an answer. */
export function errorOf({ error, code, message, store }) {
  return kinds[error] ? new kinds[error](message, store) : new CofferError(message, error, code, store)
}

/** The error of a child that has ended at once. */
export function errorOfExit(code) {
  const message = `prefs serve ended with exit code ${code}; standard error has its message.`
  const error = Object.values(kinds).map(kind => new kind(message)).find(error => error.code === code && code > 1)
  return error ?? new CofferError(message, 'other', code ?? 1)
}
