/** Text: numbers, times, foreign text made visible, commands for a shell. No component. */

const count = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const when = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockWithSeconds = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** @param {number|null|undefined} n */
export const formatCount = (n) => (n === null || n === undefined ? "" : count.format(n));
/** @param {number} n */
export const formatShort = (n) => (n < 10_000 ? count.format(n) : short.format(n));
/** @param {number} ms */
export const formatTime = (ms) => when.format(ms);
/** @param {number} ms */
export const formatClock = (ms) => clock.format(ms);
/** Today only the time, otherwise with its day. @param {number} ms */
export function formatMoment(ms) {
  const isToday = new Date(ms).toDateString() === new Date().toDateString();
  return isToday ? clockWithSeconds.format(ms) : `${day.format(ms)} ${clock.format(ms)}`;
}
/** @param {string} date as 2026-11-25 */
export const formatDay = (date) => (/^\d{4}-\d\d-\d\d$/.test(date) ? day.format(Date.parse(`${date}T12:00`)) : date);

/** @param {number} n @param {string} noun @param {string} [many] */
export const plural = (n, noun, many = `${noun}s`) => `${formatCount(n)} ${n === 1 ? noun : many}`;

/** @param {number|null|undefined} bytes */
export function formatBytes(bytes) {
  if (bytes === null || bytes === undefined) return "";
  const units = ["B", "KB", "MB", "GB"];
  let unit = 0;
  for (; bytes >= 1000 && unit < 3; unit++) bytes /= 1000;
  return `${bytes < 10 && unit ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

/** @param {number|null|undefined} ms */
export function formatMs(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.floor(ms / 1000);
  return s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
}

/** @param {number} ms @param {number} now */
export function formatAgo(ms, now) {
  const s = Math.max(0, Math.round((now - ms) / 1000));
  if (s < 5) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  return plural(Math.floor(s / 86_400), "day") + " ago";
}

/** Characters that are not seen, or that change the order of others: controls, bidirectional marks, tags, fillers. */
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e" +
  "\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]", "gu");

/** @param {string} character */
const codeOf = (character) => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Splits text into what is seen and the codes of what is not. @param {string} text @returns {{text: string, hidden: boolean}[]} */
export function splitHidden(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) parts.push({ text: text.slice(from, match.index), hidden: false });
    parts.push({ text: codeOf(match[0]), hidden: true });
    from = match.index + match[0].length;
  }
  if (from < text.length || !parts.length) parts.push({ text: text.slice(from), hidden: false });
  return parts;
}

/** Returns text for an attribute or a name: hidden characters as codes, at most `max` characters. @param {unknown} value @param {number} [max] */
export function visible(value, max = 200) {
  const text = cut(String(value ?? ""), max).replace(HIDDEN, (it) => `[${codeOf(it)}]`);
  return String(value ?? "").length > max ? `${text} ...` : text;
}

/** Cuts between characters. @param {string} text @param {number} max */
export function cut(text, max) {
  if (text.length <= max) return text;
  return text.slice(0, /[\ud800-\udbff]/.test(text[max - 1] ?? "") ? max - 1 : max);
}

/** Quotes a word for a POSIX shell. @param {string} word */
const quote = (word) => (/^[\w./:@=+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** @param {...string} words */
export const shell = (...words) => words.map(quote).join(" ");

/** @param {any} value */
export const pretty = (value) => JSON.stringify(value, null, 2);

/** Writes JSON text over several lines; returns other text as it is. @param {string} text */
export function prettyText(text) {
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text;
  }
}

/**
 * Puts each item after the one that it belongs to, with its depth. The order is kept otherwise, or turned below the first level.
 * @template T @param {T[]} items @param {(it: T) => any} idOf @param {(it: T) => any} parentOf @param {boolean} [turns]
 * @returns {{item: T, depth: number}[]}
 */
export function nest(items, idOf, parentOf, turns = false) {
  const ids = new Set(items.map(idOf).filter(Boolean));
  const under = Map.groupBy(items, (it) => (ids.has(parentOf(it)) ? parentOf(it) : null));
  /** @type {(parent: any, depth: number) => {item: T, depth: number}[]} */
  const list = (parent, depth) => {
    const own = under.get(parent) ?? [];
    return (turns && depth ? own.toReversed() : own).flatMap((item) => [{ item, depth }, ...(idOf(item) ? list(idOf(item), depth + 1) : [])]);
  };
  return list(null, 0);
}

/** More cells than this make a difference too slow to compute; then all lines count as changed. */
const CELLS_MAX = 2_000_000;

/**
 * Returns the lines of both texts in order: `-` only before, `+` only now, ` ` in both.
 * @param {string} before @param {string} now @returns {{sign: "-"|"+"|" ", text: string}[]}
 */
export function diffLines(before, now) {
  const [a, b] = [before.split("\n"), now.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const [m, n] = [a.length - start - end, b.length - start - end];
  /** @type {{sign: "-"|"+"|" ", text: string}[]} */
  const lines = a.slice(0, start).map((text) => ({ sign: " ", text }));
  const width = n + 1;
  const common = new Uint32Array(m * n > CELLS_MAX ? 0 : (m + 1) * width);
  const isBounded = common.length > 0;
  if (isBounded) {
    for (let i = m - 1; i >= 0; i--) {
      for (let j = n - 1; j >= 0; j--) {
        const [down, right] = [common[(i + 1) * width + j], common[i * width + j + 1]];
        common[i * width + j] = a[start + i] === b[start + j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(down, right);
      }
    }
  }
  let [i, j] = [0, 0];
  while (i < m || j < n) {
    if (isBounded && i < m && j < n && a[start + i] === b[start + j]) lines.push({ sign: " ", text: a[start + i++] }), j++;
    else if (i < m && (!isBounded || j >= n || common[(i + 1) * width + j] >= common[i * width + j + 1])) lines.push({ sign: "-",
      text: a[start + i++] });
    else lines.push({ sign: "+", text: b[start + j++] });
  }
  return lines.concat(a.slice(a.length - end).map((text) => ({ sign: " ", text })));
}
