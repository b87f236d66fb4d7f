// What can go wrong: the errors of `prefs`, and a few of this package.
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
export class InvalidValue extends named('format', 8) {}
export class Conflict extends named('conflict', 9) {}
export class Unavailable extends named('unavailable', 1) {}

const kinds = { notFound: NotFound, format: InvalidValue, conflict: Conflict, unavailable: Unavailable }
const exitCodes = { 5: 'wrongKey', 6: 'keyUnavailable', 8: 'format', 10: 'busy', 11: 'refused' }

/** The error of an answer. */
export function errorOf({ error, code, message, store }) {
  return kinds[error] ? new kinds[error](message, store) : new CofferError(message, error, code, store)
}

/** The error of a child that has ended at once. */
export function errorOfExit(code) {
  return new CofferError(`prefs serve ended with exit code ${code}; standard error has its message.`, exitCodes[code], code ?? 1)
}
