// Makes a screenshot smaller: at most 256 colours, the others by the nearest of them.

import { crc32, deflateSync, inflateSync } from "node:zlib";

const COLOURS_MAX = 256;
const COMMON = 160;

function* chunks(png) {
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    yield { kind: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) };
    at += 12 + length;
  }
}

function chunk(kind, data) {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(kind, 4, "latin1");
  data.copy(bytes, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

// Undoes the filters of the lines.
function decode(raw, width, height, step) {
  const length = width * step;
  const out = Buffer.alloc(length * height);
  const paeth = (a, b, c) => {
    const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
  };
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (length + 1)];
    for (let x = 0; x < length; x++) {
      const left = x >= step ? out[y * length + x - step] : 0;
      const up = y > 0 ? out[(y - 1) * length + x] : 0;
      const corner = x >= step && y > 0 ? out[(y - 1) * length + x - step] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      out[y * length + x] = raw[y * (length + 1) + 1 + x] + guess;
    }
  }
  return out;
}

export function shrink(png) {
  const parts = [...chunks(png)];
  const head = parts.find((it) => it.kind === "IHDR").data;
  const [width, height, kind] = [head.readUInt32BE(0), head.readUInt32BE(4), head[9]];
  const step = kind === 6 ? 4 : 3;
  const pixels = decode(inflateSync(Buffer.concat(parts.filter((it) => it.kind === "IDAT").map((it) => it.data))), width, height, step);
  const colours = new Uint32Array(width * height);
  const counts = new Map();
  for (let i = 0; i < colours.length; i++) {
    colours[i] = (pixels[i * step] << 16) | (pixels[i * step + 1] << 8) | pixels[i * step + 2];
    counts.set(colours[i], (counts.get(colours[i]) ?? 0) + 1);
  }
  const far = (a, b) => [16, 8, 0].reduce((sum, shift) => sum + (((a >> shift) & 255) - ((b >> shift) & 255)) ** 2, 0);
  // The most frequent ones, then those that are farthest from all of them: a small mark keeps its colour.
  const sorted = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour);
  const palette = sorted.slice(0, COMMON);
  const rest = sorted.slice(COMMON).map((colour) => ({ colour, far: Math.min(...palette.map((it) => far(it, colour))) }));
  while (palette.length < COLOURS_MAX && rest.length) {
    const next = rest.reduce((best, it) => (it.far > best.far ? it : best));
    palette.push(next.colour);
    for (const it of rest) it.far = Math.min(it.far, far(it.colour, next.colour));
    rest.splice(rest.indexOf(next), 1);
  }
  const places = new Map(palette.map((colour, i) => [colour, i]));
  const place = (colour) => {
    if (!places.has(colour)) places.set(colour, palette.reduce((best, it, i) => (far(it, colour) < far(palette[best], colour) ? i : best), 0));
    return places.get(colour);
  };
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) lines[y * (width + 1) + 1 + x] = place(colours[y * width + x]);
  const header = Buffer.from(head);
  header[8] = 8;
  header[9] = 3;
  const table = Buffer.from(palette.flatMap((it) => [it >> 16, (it >> 8) & 255, it & 255]));
  return Buffer.concat([png.subarray(0, 8), chunk("IHDR", header), chunk("PLTE", table), chunk("IDAT", deflateSync(lines, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
