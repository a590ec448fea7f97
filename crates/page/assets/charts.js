/** Charts as SVG. Each bar is a link to its calls; one bar at a time is in the tab order, arrows move. */

import { useLayoutEffect, useRef, useState } from "./vendor/hooks.js";
import { html, rove } from "./ui.js";
import { formatMs, formatShort, visible } from "./text.js";

const HEIGHT = 150;
const [LEFT, BOTTOM, TOP] = [46, 20, 8];

/** Returns a reference and the width of its element. @returns {[import("./vendor/preact.js").RefObject<any>, number]} */
function useWidth() {
  const ref = useRef(/** @type {HTMLElement|null} */ (null));
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    if (!ref.current) return;
    const element = ref.current;
    const read = () => setWidth(Math.max(200, Math.round(element.clientWidth)));
    read();
    const watch = new ResizeObserver(read);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return [ref, width];
}

/** The next round number with a round half. @param {number} value */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return (power === 1 ? [1, 2, 4, 6, 8, 10] : [1, 2, 3, 4, 5, 6, 8, 10]).map((it) => it * power).find((it) => it >= value) ?? value;
}

/**
 * Bars over time; `bad` is the lower part of a bar.
 * @param {{label: string, points: {name: string, value: number, bad?: number, text: string, href: string}[], legend: string[]}} props
 */
export function Bars({ label, points, legend }) {
  const [ref, width] = useWidth();
  const [told, setTold] = useState("");
  const top = roundUp(Math.max(1, ...points.map((it) => it.value)));
  const step = (width - LEFT) / Math.max(1, points.length);
  const scale = (/** @type {number} */ value) => (value / top) * (HEIGHT - BOTTOM - TOP);
  const every = Math.ceil(points.length / Math.max(2, Math.floor(width / 90)));
  const ticks = top < 2 ? [0, 1] : [0, top / 2, top];
  return html`<figure class="chart" ref=${ref}>
    <figcaption><span>${label}</span><span class="legend">
      ${legend.map((it, i) => html`<span class=${`key k${i}`}>${it}</span>`)}</span></figcaption>
    <svg role="group" aria-label=${label} width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => rove(event, "a")}>
      ${ticks.map((it) => html`<line class="rule" x1=${LEFT} x2=${width} y1=${HEIGHT - BOTTOM - scale(it)}
        y2=${HEIGHT - BOTTOM - scale(it)} />
        <text x=${LEFT - 6} y=${HEIGHT - BOTTOM - scale(it) + 4} text-anchor="end" aria-hidden="true">${formatShort(it)}</text>`)}
      ${points.map((it, i) => {
        const x = LEFT + i * step;
        const [all, bad] = [Math.max(it.value ? 1.5 : 0, scale(it.value)), Math.max(it.bad ? 1.5 : 0, scale(it.bad ?? 0))];
        const tell = () => setTold(it.text);
        return html`<a href=${it.href} aria-label=${it.text} tabindex=${i === points.length - 1 ? 0 : -1} onMouseEnter=${tell}
          onFocus=${tell}>
          <rect class="hit" x=${x} y="0" width=${step} height=${HEIGHT - BOTTOM} />
          <rect class="bar" x=${x + step * 0.12} y=${HEIGHT - BOTTOM - all} width=${step * 0.76} height=${all}
            rx=${Math.min(2, step * 0.2)} />
          ${bad > 0 && html`<rect class="bar bad" x=${x + step * 0.12} y=${HEIGHT - BOTTOM - bad} width=${step * 0.76}
            height=${bad} />`}</a>
        ${(points.length - 1 - i) % every === 0
          && html`<text x=${x + step / 2} y=${HEIGHT - 5} text-anchor=${i === points.length - 1 && points.length > 3 ? "end" : "middle"}
          aria-hidden="true">${it.name}</text>`}`;
      })}
    </svg><p class="told" aria-hidden="true">${told}</p></figure>`;
}

const ROW = 24;

/**
 * The median and the 95th percentile of each row, on a scale of powers of ten.
 * @param {{label: string, rows: {name: string, p50: number, p95: number, href: string}[]}} props in milliseconds
 */
export function Ranges({ label, rows }) {
  const [ref, width] = useWidth();
  const names = Math.min(240, width * 0.36);
  const low = Math.floor(Math.log10(Math.max(0.1, Math.min(...rows.map((it) => it.p50)))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(0.1, ...rows.map((it) => it.p95)))));
  const place = (/** @type {number} */ ms) =>
    names + 12 + ((Math.log10(Math.max(10 ** low, ms)) - low) / (high - low)) * (width - names - 90);
  const height = rows.length * ROW + BOTTOM;
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  const letters = Math.floor(names / 7.2);
  return html`<figure class="chart" ref=${ref}>
    <figcaption><span>${label}</span><span class="legend"><span class="key k0">p50</span><span class="key k2">p95</span></span></figcaption>
    <svg role="group" aria-label=${label} width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => rove(event, "a")}>
      ${ticks.map((it) => html`<line class="rule" x1=${place(it)} x2=${place(it)} y1="0" y2=${height - BOTTOM} />
        <text x=${place(it)} y=${height - 5} text-anchor="middle" aria-hidden="true">${formatMs(it)}</text>`)}
      ${rows.map((it, i) => {
        const y = i * ROW + ROW / 2;
        const name = visible(it.name, 120);
        return html`<a href=${it.href} tabindex=${i === 0 ? 0 : -1}>
          <rect class="hit" x="0" y=${i * ROW} width=${width} height=${ROW} />
          <text x=${names} y=${y + 4} text-anchor="end">${name.length > letters ? `...${name.slice(3 - letters)}` : name}</text>
          <line class="range" x1=${place(it.p50)} x2=${place(it.p95)} y1=${y} y2=${y} />
          <circle class="p50" cx=${place(it.p50)} cy=${y} r="4" /><circle class="p95" cx=${place(it.p95)} cy=${y} r="4" />
          <text class="unseen" x=${names} y=${y + 4}> p50 ${formatMs(it.p50)}, p95 </text><text x=${place(it.p95) + 9} y=${y + 4}>
            ${formatMs(it.p95)}</text></a>`;
      })}
    </svg></figure>`;
}
