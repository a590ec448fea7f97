/** A list of any length: only the rows in sight are in the document. */

import { useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import { html } from "./ui.js";

/** Rows beyond the edges, so that a fast scroll shows no gap. */
const SPARE = 10;

/**
 * @typedef {{key: string, head: string, cell: (row: any) => any, sort?: (row: any) => string|number, num?: boolean, kind?: string}} Column
 *   `kind`: `p2` is left out on narrow screens, `p3` on medium ones too.
 */

/** Sorts by the column; numbers and times the largest first. @param {any[]} rows @param {Column[]} columns @param {{key: string, up: boolean}|null} sort */
function sortRows(rows, columns, sort) {
  const value = columns.find((it) => it.key === sort?.key)?.sort;
  if (!value) return rows;
  const sorted = [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
  });
  return sort?.up ? sorted : sorted.reverse();
}

/**
 * A grid with one focusable row at a time: arrows, Home, End, Page Up and Page Down move, Enter opens.
 * @param {{label: string, kind: string, columns: Column[], rows: any[], keyOf: (row: any) => string, open: (row: any) => void, selected?: string|null,
 *   sort?: {key: string, up: boolean}|null, nameOf?: (row: any) => string, classOf?: (row: any) => string, onEnd?: () => void, empty?: any}} props
 */
export function Grid({ label, kind, columns, rows, keyOf, open, selected, sort: sortAtFirst = null, nameOf, classOf, onEnd, empty }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [sort, setSort] = useState(sortAtFirst);
  const [view, setView] = useState({ top: 0, height: 900, row: 34 });
  const [active, setActive] = useState(/** @type {string|null} */ (null));
  const wantsFocus = useRef(false);
  const lastAt = useRef(0);
  const sorted = useMemo(() => sortRows(rows, columns, sort), [rows, sort]);

  const measure = () => {
    const it = box.current;
    if (!it) return;
    const row = parseFloat(getComputedStyle(it).getPropertyValue("--row")) || 34;
    const top = Math.floor(it.scrollTop / row / SPARE) * SPARE * row;
    setView((old) => (old.top === top && old.height === it.clientHeight && old.row === row ? old : { top, height: it.clientHeight, row }));
    if (onEnd && it.scrollTop + it.clientHeight * 2 > it.scrollHeight) onEnd();
  };
  useLayoutEffect(() => {
    const watch = new ResizeObserver(measure);
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);

  const [first, last] = [Math.max(0, Math.floor(view.top / view.row) - SPARE), Math.ceil((view.top + view.height) / view.row) + 2 * SPARE];
  const hasFocus = () => !!box.current?.querySelector(".grid-body")?.contains(document.activeElement);
  // Before the redraw: a row that is moved or removed loses the focus. If it is gone, the row at its place gets it.
  const hadFocus = hasFocus();
  const found = sorted.findIndex((it) => keyOf(it) === (active ?? selected));
  const at = found >= 0 ? found : hadFocus ? Math.max(0, Math.min(lastAt.current, sorted.length - 1)) : 0;
  lastAt.current = at;
  const shown = sorted.slice(first, last).map((row, i) => ({ row, i: first + i }));
  // In the order of the list: no redraw moves the element of the row.
  if (sorted.length && (at < first || at >= last)) shown[at < first ? "unshift" : "push"]({ row: sorted[at], i: at });

  useLayoutEffect(() => {
    if (!wantsFocus.current && (!hadFocus || hasFocus())) return;
    wantsFocus.current = false;
    const row = /** @type {HTMLElement|null|undefined} */ (box.current?.querySelector('[tabindex="0"][role="row"]'));
    row?.focus({ preventScroll: true });
  });
  // New rows may leave the end of the list in sight.
  useLayoutEffect(measure, [rows]);
  const move = (/** @type {number} */ to) => {
    const next = Math.min(sorted.length - 1, Math.max(0, to));
    if (!sorted[next] || !box.current) return;
    const head = /** @type {HTMLElement} */ (box.current.firstElementChild).offsetHeight;
    const [above, below] = [next * view.row, (next + 1) * view.row + head - box.current.clientHeight];
    if (box.current.scrollTop > above) box.current.scrollTop = above;
    if (box.current.scrollTop < below) box.current.scrollTop = below;
    wantsFocus.current = true;
    setActive(keyOf(sorted[next]));
    measure();
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (/** @type {HTMLElement} */ (event.target).getAttribute("role") !== "row" || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(view.height / view.row) - 2);
    /** @type {{[key: string]: number}} */
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: sorted.length - 1, PageDown: at + page, PageUp: at - page };
    if (event.key in next) move(next[event.key]);
    else if (event.key === "Enter" || event.key === " ") open(sorted[at]);
    else return;
    event.preventDefault();
  };
  const turn = (/** @type {Column} */ column) =>
    setSort((old) => ({ key: column.key, up: old?.key === column.key ? !old.up : !column.num }));
  const order = (/** @type {Column} */ column) => (sort?.key !== column.key ? undefined : sort.up ? "ascending" : "descending");

  return html`<div class=${`grid ${kind}`} role="grid" aria-label=${label} aria-rowcount=${sorted.length + 1} ref=${box} onScroll=${measure}
    onKeyDown=${press}>
    <div role="rowgroup" class="grid-head"><div role="row" aria-rowindex="1">${columns.map((column) => html`
      <div role="columnheader" class=${`${column.kind ?? ""} ${column.num ? "num" : ""}`} aria-sort=${order(column)}>
        ${column.sort ? html`<button type="button" onClick=${() => turn(column)}>${column.head}
          <span aria-hidden="true">${sort?.key !== column.key ? "" : sort.up ? " ▲" : " ▼"}</span></button>` : column.head}
      </div>`)}</div></div>
    ${sorted.length === 0 ? html`<div role="rowgroup"><div role="row"><div role="gridcell" class="empty" tabindex="0">
      ${empty}</div></div></div>` : html`
    <div role="rowgroup" class="grid-body" style=${{ height: `${sorted.length * view.row}px` }}>${shown.map(({ row, i }) => html`
      <div role="row" key=${keyOf(row)} class=${classOf?.(row) ?? ""} aria-rowindex=${i + 2} tabindex=${i === at ? 0 : -1}
        aria-label=${nameOf?.(row)}
        aria-selected=${keyOf(row) === selected ? "true" : undefined} style=${{ transform: `translateY(${i * view.row}px)` }}
        onFocus=${() => setActive(keyOf(row))} onClick=${() => open(row)}>
        ${columns.map((column) => html`<div role="gridcell" class=${`${column.kind ?? ""} ${column.num ? "num" : ""}`}>
          ${column.cell(row)}</div>`)}</div>`)}</div>`}
  </div>`;
}
