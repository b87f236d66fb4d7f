// A child, `prefs serve`: requests and their answers, and notices.
import { spawn } from 'node:child_process'
import { CofferError, InvalidValue, Unavailable, errorOf, errorOfExit } from './errors.js'
import { parse, stringify } from './values.js'

const version = 1

export class Child {
  #process
  #observer
  #parts = []
  #waiting = [] // In the order of the requests, and so of the answers: all may have one ID.
  #failure
  hello
  isOver = false
  /** Resolves to the error that says why the child is no more. */
  ended

  /** `observer` has `hello(child)`, `notice(line)` and `over()`, which are called as lines come. */
  constructor(program, args, observer) {
    this.#observer = observer
    // A group of its own: an interrupt from the terminal is for the program, which may still have something to set.
    this.#process = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
    this.#process.stdin.on('error', () => {}) // The end of the child is the answer to all that wait.
    this.#process.stdout.on('data', part => this.#read(part))
    this.ended = new Promise(resolve => {
      this.#process.on('error', error => resolve(this.#end(new Unavailable(`prefs serve cannot be started: ${error.message}.`))))
      this.#process.on('close', code => resolve(this.#end(
        this.hello ? new Unavailable('prefs serve has ended.') : errorOfExit(code))))
    })
  }

  /** Sends a request, and calls `handler` with the answer, or with an error if the child ends before. */
  send(request, members, handler) {
    const line = Buffer.from(stringify({ id: 0, do: request, ...members }) + '\n')
    const { maximum } = this.hello
    if (line.length > maximum) throw new InvalidValue(`The server takes requests of at most ${maximum} bytes; this one has ${line.length}.`)
    this.#waiting.push(handler)
    this.#process.stdin.write(line)
  }

  /** Lets the child finish what it has read, and end. */
  close() {
    this.#process.stdin.end()
  }

  kill() {
    this.#process.kill('SIGKILL')
  }

  #read(part) {
    if (this.#failure) return
    try {
      for (let end; (end = part.indexOf(10)) >= 0; part = part.subarray(end + 1)) {
        this.#parts.push(part.subarray(0, end))
        const line = parse(Buffer.concat(this.#parts).toString())
        this.#parts = []
        this.#take(line)
      }
      if (part.length) this.#parts.push(part)
    } catch (error) {
      this.#failure ??= error instanceof CofferError ? error : new Unavailable(`What prefs serve has sent is not understood: ${error.message}.`)
      this.kill()
    }
  }

  #take(line) {
    if (!this.hello) {
      if (line.serve !== version) throw new Unavailable(`${line.program} has version ${line.serve} of the protocol; this package has ${version}.`)
      this.hello = line
      this.#observer.hello(this)
    } else if ('id' in line) {
      this.#waiting.shift()?.(line)
    } else if ('watch' in line) {
      this.#observer.notice(line)
    }
  }

  #end(error) {
    if (this.isOver) return error
    this.isOver = true
    this.#observer.over()
    const message = 'prefs serve ended before it answered; a change may have been made.'
    for (const handler of this.#waiting) {
      try {
        handler({ error: { error: 'unavailable', code: 1, message } })
      } catch {
        // That of the watch throws, and why the child ended is known.
      }
    }
    return this.#failure ?? error
  }
}

/** What an answer has as `ok`; its error is thrown. */
export function checked(answer) {
  if (answer.error) throw errorOf(answer.error)
  return answer.ok
}
