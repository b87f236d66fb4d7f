// The connection to the program that serves the page. The session's key exists only in this module, and is never sent: it seals
// the messages. Once the program has ended, another one that listens at the port can neither read nor forge them.

import { channelOfSession, channelOfToken, isPossible } from "./channel.js";

/// The longest request that the program accepts.
const requestLimit = 8 << 20;

let session;

/// A failed call: `kind` is the word of the tool's exit codes, `connection` if there is no answer, or `session` if another program
/// answers, or this one no longer knows the page.
export class CallError extends Error {
  constructor(kind, answer = {}) {
    super(answer.message ?? "The program does not answer. It has ended, or the session of this page has.");
    this.kind = kind;
    this.answer = answer;
  }
}

/**
 * Sends a sealed request. Returns the response, and a function that opens it.
 *
 * @param {string} name
 * @param {Uint8Array} bytes
 * @param {{ isAutomatic?: boolean, signal?: AbortSignal, channel?: any }} options
 */
async function send(name, bytes, { isAutomatic = false, signal, channel = session.channel } = {}) {
  const sealed = await channel.seal(bytes, `request ${name}`);
  if (sealed.length > requestLimit) throw new CallError("format", { message: "The value is too large for the page." });
  const headers = { "Content-Type": "application/octet-stream" };
  if (session) headers["X-Coffer-Session"] = session.name;
  if (isAutomatic) headers["X-Coffer-Automatic"] = "1";
  const failed = (error) => { throw error.name === "AbortError" ? error : new CallError("connection"); };
  const response = await fetch(`api/${name}`, {
    method: "POST", headers, body: sealed, signal, credentials: "omit", cache: "no-store", redirect: "error",
  }).catch(failed);
  const open = async (bytes, purpose) => {
    try { return await channel.open(bytes, purpose, sealed); } catch {
      session?.lost?.({});
      throw new CallError("session");
    }
  };
  return { response, open, failed };
}

/// How long an answer usually takes at most, in milliseconds.
const patience = 5000;
const late = new Set();
let slow = (isSlow) => {};

/// Calls `handler(isSlow)` when an answer takes long, and again once there is none to wait for.
export function whenSlow(handler) { slow = handler; }

async function ask(name, bytes, options) {
  const call = {};
  const timer = setTimeout(() => { late.add(call); slow(true); }, patience);
  try {
    return await answered(name, bytes, options);
  } finally {
    clearTimeout(timer);
    if (late.delete(call) && late.size === 0) slow(false);
  }
}

async function answered(name, bytes, options) {
  const { response, open, failed } = await send(name, bytes, options);
  const answer = new Uint8Array(await response.arrayBuffer().catch(failed));
  const text = await open(answer, `${response.ok ? "answer" : "failure"} ${name}`);
  if (response.ok) return text;
  const problem = JSON.parse(text);
  throw new CallError(problem.error, problem);
}

const encode = (request) => new TextEncoder().encode(JSON.stringify(request));

/// Trades the token in the address for a session, and removes it from the address.
export async function begin() {
  const token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (!token || !isPossible) throw new CallError("session");
  const answer = JSON.parse(await ask("session", encode({}), { channel: await channelOfToken(token) }));
  session = { name: answer.session, channel: await channelOfSession(answer.key) };
  return { ...answer.about, idleSeconds: answer.idleSeconds };
}

/// Calls the program, and returns its answer.
export async function call(name, request = {}, options = {}) { return JSON.parse(await text(name, request, options)); }

export function text(name, request, options) { return ask(name, encode(request), options); }

/// The passphrase is sent without JSON.
export async function unlock(passphrase) { await ask("unlock", new TextEncoder().encode(passphrase)); }

/// Calls `handlers[event](data)` for each event of the program, `handlers.connection(isThere)` when the connection opens and
/// breaks, and `handlers.end({reason})` at the end.
///
/// One tab of a browser listens, and passes the events to the others: a browser has only six connections for all of them. Where a browser
/// that blocks cookies lets tabs share nothing, each one listens, and a sixth gets no answers.
export async function follow(handlers) {
  const name = `events of ${location.pathname}`;
  let isOver = false;
  const handle = ({ name, data }) => {
    if (isOver) return;
    isOver = name === "end";
    handlers[name]?.(data);
  };
  session.lost = (data) => handle({ name: "end", data });
  try {
    const shared = new BroadcastChannel(name);
    shared.addEventListener("message", (event) => handle(event.data));
    // There may have been commits before this tab listened.
    handlers.connection(true);
    const publish = (name, data) => { shared.postMessage({ name, data }); handle({ name, data }); };
    await navigator.locks.request(name, () => isOver ? undefined : listen(publish));
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
    await listen((name, data) => handle({ name, data }));
  }
}

async function listen(publish) {
  for (let failures = 0; failures < 5; failures += 1) {
    try {
      const { response, open } = await send("events", encode({}), { isAutomatic: true });
      for await (const { name, data } of events(response, open)) {
        if (name === "open") { failures = 0; publish("connection", true); } else publish(name, data);
        if (name === "end") return;
      }
    } catch (error) {
      // Each of the other tabs checks its own session.
      if (error.kind === "session") return session.lost({});
    }
    publish("connection", false);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  publish("end", {});
}

/// The events of a response: each follows its length, and is bound to its position.
async function* events(response, open) {
  if (!response.ok) throw new CallError(response.status === 403 ? "session" : "busy");
  const reader = response.body.getReader();
  let rest = new Uint8Array();
  for (let count = 0; ;) {
    while (rest.length >= 4) {
      const size = new DataView(rest.buffer, rest.byteOffset).getUint32(0);
      if (size > requestLimit) throw new CallError("session");
      if (rest.length < 4 + size) break;
      const text = await open(rest.subarray(4, 4 + size), `event ${count}`);
      const end = text.indexOf("\n");
      yield { name: text.slice(0, end), data: JSON.parse(text.slice(end + 1)) };
      rest = rest.slice(4 + size);
      count += 1;
    }
    const { value, done } = await reader.read();
    if (done) return;
    const all = new Uint8Array(rest.length + value.length);
    all.set(rest);
    all.set(value, rest.length);
    rest = all;
  }
}
