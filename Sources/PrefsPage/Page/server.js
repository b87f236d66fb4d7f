// The way to the program that serves the page. The session's key lives in this module and nowhere else.

let session;

/// What went wrong with a call: `kind` is the word of the tool's exit codes.
export class CallError extends Error {
  constructor(status, answer) {
    super(answer.message ?? "The program does not answer. It has ended, or the session of this page has.");
    this.kind = answer.error ?? (status === 403 ? "session" : "other");
    this.answer = answer;
  }
}

async function send(call, body, { type = "application/json", isAutomatic = false, signal } = {}) {
  const headers = { "Content-Type": type };
  if (session) headers["X-Coffer-Session"] = session;
  if (isAutomatic) headers["X-Coffer-Automatic"] = "1";
  let response;
  try {
    response = await fetch(`api/${call}`, { method: "POST", headers, body, signal, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(0, { error: "connection" });
  }
  if (!response.ok) {
    let answer = {};
    try { answer = await response.json(); } catch { /* A refusal says nothing. */ }
    throw new CallError(response.status, answer);
  }
  return response;
}

/// Trades the token in the address for a session, and takes it out of the address.
export async function begin() {
  const token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (!token) throw new CallError(403, {});
  const answer = await (await send("session", JSON.stringify({ token }))).json();
  session = answer.session;
  return answer.about;
}

/// Calls the program, and returns its answer.
export async function call(name, request = {}, options = {}) {
  return (await send(name, JSON.stringify(request), options)).json();
}

export async function text(name, request) { return (await send(name, JSON.stringify(request))).text(); }

/// The passphrase goes as it is, and is in no JSON.
export async function unlock(passphrase) {
  await send("unlock", new TextEncoder().encode(passphrase), { type: "application/octet-stream" });
}

/// Calls `handlers[event](data)` for each event of the program, and `handlers.connection(isThere)` as it comes and goes.
export async function follow(handlers) {
  for (let failures = 0; failures < 5; failures += 1) {
    try {
      const response = await send("events", "{}", { isAutomatic: true });
      handlers.connection(true);
      failures = 0;
      await read(response.body.pipeThrough(new TextDecoderStream()).getReader(), handlers);
    } catch (error) {
      if (error.kind === "session") break;
    }
    handlers.connection(false);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  handlers.connection(false, true);
}

async function read(reader, handlers) {
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const name = /^event: (.*)$/m.exec(event)?.[1];
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (name && data) handlers[name]?.(JSON.parse(data));
    }
  }
}
