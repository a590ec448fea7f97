/** Requests to `/api/v1`: the session, errors, and one function for each method. */

const BASE = "/api/v1";
const KEY = "proxy-token";

/** A code of `proxy web` is 32 hexadecimal digits; fragments of pages begin with `#/`. */
const CODE = /^#[0-9a-f]{32}$/i;

/** An answer that is no success, or no answer at all (status 0). */
export class ApiError extends Error {
  /** @param {number} status @param {{[key: string]: any}} error */
  constructor(status, error) {
    super(String(error.message ?? `The daemon answered with status ${status}.`));
    this.status = status;
    /** @type {string} */
    this.code = error.code ?? "";
    /** @type {string|undefined} */
    this.nextStep = error.next_step ?? undefined;
    /** @type {string|undefined} */
    this.field = error.field ?? undefined;
    /** @type {Need[]} */
    this.needs = error.needs ?? [];
  }
}

/** Tabs hand the token of a new session to those whose session ended with their daemon: they go on where they were. */
const tabs = new BroadcastChannel("proxy-session");

/** Calls the listener when another tab has brought a session. @param {() => void} listener */
export function listenForSessions(listener) {
  tabs.onmessage = ({ data }) => {
    if (hasSession() || isSignedOut) return;
    sessionStorage.setItem(KEY, data);
    listener();
  };
}

let isSignedOut = false;

/** Called with the error when the session is not, or no longer, valid. @type {(error: ApiError) => void} */
let onClosed = () => {};

/** @param {(error: ApiError) => void} listener */
export const listenForClosed = (listener) => { onClosed = listener; };

/** Takes the one-time code out of the address; returns it. Runs before anything else. */
export function takeCode() {
  if (!CODE.test(location.hash)) return null;
  const code = location.hash.slice(1);
  history.replaceState(null, "", "#/now");
  return code;
}

/** Trades the code for a token. @param {string} code */
export async function openSession(code) {
  sessionStorage.removeItem(KEY);
  const { token } = await request("POST", "/session", { code });
  sessionStorage.setItem(KEY, token);
  tabs.postMessage(token);
}

/** Ends the session in the daemon and here. */
export async function closeSession() {
  await request("DELETE", "/session", {});
  sessionStorage.removeItem(KEY);
  isSignedOut = true;
  onClosed(new ApiError(401, { message: "You signed out of this page.", code: "signed_out" }));
}

export const hasSession = () => sessionStorage.getItem(KEY) !== null;

/**
 * Sends a request and returns the response if it is a success.
 * @param {string} method @param {string} path @param {object} [body] @param {AbortSignal} [signal]
 */
export async function send(method, path, body, signal) {
  /** @type {{[name: string]: string}} */
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token) headers.authorization = `Bearer ${token}`;
  if (body) headers["content-type"] = "application/json";
  let response;
  try {
    const text = body && JSON.stringify(body);
    response = await fetch(BASE + path, { method, headers, body: text, signal, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new ApiError(0, { code: "away", message: "The daemon does not answer.", next_step: "proxy daemon start" });
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  const error = new ApiError(response.status, answer.error ?? {});
  if (response.status === 401) {
    sessionStorage.removeItem(KEY);
    onClosed(error);
  }
  throw error;
}

/** @param {string} method @param {string} path @param {object} [body] @param {AbortSignal} [signal] @returns {Promise<any>} */
export const request = async (method, path, body, signal) => (await send(method, path, body, signal)).json();

/** @param {string} path @param {AbortSignal} [signal] */
export const get = (path, signal) => request("GET", path, undefined, signal);

/** @param {string} path @param {object} [body] @param {AbortSignal} [signal] */
export const post = (path, body = {}, signal) => request("POST", path, body, signal);

/** Joins parts of a path, escaped. @param {...(string|number)} parts */
export const path = (...parts) => parts.map((part) => `/${encodeURIComponent(part)}`).join("");

/** Returns `?a=b` of the members that have a value. @param {{[name: string]: unknown}} members */
export function queryOf(members) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) query.set(name, String(value));
  }
  return query.size ? `?${query}` : "";
}
