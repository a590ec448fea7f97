/** The schema of a tool as a form. A part that no field fits is written as JSON. */

import { useState } from "./vendor/hooks.js";
import { Field, Foreign, html } from "./ui.js";
import { pretty, visible } from "./text.js";

/** Deeper objects are written as JSON. */
const DEPTH_MAX = 3;
/** More members make a form that nobody fills in; the rest is written as JSON. */
const MEMBERS_MAX = 60;

/** @param {Schema} schema @returns {string} */
function typeOf(schema) {
  const types = [schema.type].flat().filter((it) => it && it !== "null");
  if (Array.isArray(schema.enum) && schema.enum.every((it) => typeof it !== "object")) return "enum";
  if (types.length === 1) return types[0];
  return schema.properties ? "object" : "json";
}

/** @param {Schema} schema */
const isTextList = (schema) => schema.type === "array" && schema.items?.type === "string" && !schema.items.enum;

/** Returns the limits of a value in words. @param {Schema} schema */
function limitsOf(schema) {
  const limits = [];
  const { minimum, maximum, minLength, maxLength, pattern, format } = schema;
  if (minimum !== undefined || maximum !== undefined) limits.push(`${minimum ?? "..."} to ${maximum ?? "..."}`);
  if (maxLength !== undefined) limits.push(`${minLength ?? 0} to ${maxLength} characters`);
  if (pattern) limits.push(`matches ${pattern}`);
  if (format) limits.push(format);
  if (schema.default !== undefined && typeof schema.default !== "object") limits.push(`default ${JSON.stringify(schema.default)}`);
  return limits.join(", ");
}

/**
 * @param {{name: string, schema: Schema, value: any, required: boolean, depth: number, errors: {[name: string]: string}, at: string, onChange: (value: any) => void}} props
 */
function Member({ name, schema, value, required, depth, errors, at, onChange }) {
  const type = depth > DEPTH_MAX ? "json" : typeOf(schema);
  const [draft, setDraft] = useState(/** @type {string|null} */ (null));
  const [mistake, setMistake] = useState("");
  const limits = limitsOf(schema);
  const hint = html`${schema.description && html`<${Foreign} text=${schema.description} max=${300} />`}
    ${schema.description && limits && " "}${limits && html`<span class="limits">(<${Foreign} text=${limits} max=${120} />)</span>`}`;
  const label = html`<span class="mono"><${Foreign} text=${name} max=${80} /></span>`;
  const all = { label, required, hint: schema.description || limits ? hint : undefined, error: mistake
    || (errors[at] && html`<${Foreign} text=${errors[at]} />`) };
  if (type === "object" && schema.properties) {
    return html`<fieldset><legend>${label}${required && html`<span class="required"> required</span>`}</legend>
      <${Members} schema=${schema} value=${value ?? {}} depth=${depth + 1} errors=${errors} at=${`${at}/`}
        onChange=${(/** @type {any} */ it) => onChange(Object.keys(it).length ? it : undefined)} /></fieldset>`;
  }
  if (type === "enum" || type === "boolean") {
    const values = type === "boolean" ? [true, false] : schema.enum;
    const options = [["", "(not set)"], ...values.map((/** @type {any} */ it) => [JSON.stringify(it), visible(it)])];
    return html`<${Field} ...${all} options=${options} value=${value === undefined ? "" : JSON.stringify(value)}
      onInput=${(/** @type {string} */ it) => onChange(it === "" ? undefined : JSON.parse(it))} />`;
  }
  if (type === "integer" || type === "number") {
    const read = (/** @type {string} */ text) => {
      const number = Number(text);
      const isRight = text.trim() !== "" && Number.isFinite(number) && (type === "number" || Number.isInteger(number));
      setDraft(text);
      setMistake(text.trim() === "" || isRight ? "" : type === "integer" ? "Write a whole number." : "Write a number.");
      onChange(isRight ? number : undefined);
    };
    return html`<${Field} ...${all} value=${value === undefined ? draft ?? "" : Number(draft) === value ? draft : String(value)}
      input=${{ inputmode: "decimal" }} onInput=${read} />`;
  }
  if (type === "string") {
    const isLong = (schema.maxLength ?? 0) > 200 || /body|content|text|query|sql|script|code|message|description/i.test(name);
    return html`<${Field} ...${all} kind=${isLong ? "textarea" : "text"} value=${value ?? ""} onInput=${(/** @type {string} */ it) =>
      onChange(it === "" && !required ? undefined : it)} />`;
  }
  if (isTextList(schema)) {
    return html`<${Field} ...${all} kind="textarea" label=${html`${label} <span class="limits">one a line</span>`}
      value=${draft ?? (value ?? []).join("\n")}
      onInput=${(/** @type {string} */ it) => { setDraft(it); onChange(it.trim() === "" ? undefined : it.split("\n")
        .filter(Boolean)); }} />`;
  }
  return html`<${JsonField} ...${all} label=${html`${label} <span class="limits">JSON</span>`} value=${value} onChange=${onChange} />`;
}

/** @param {{label: any, value: any, onChange: (value: any) => void, error?: any, hint?: any, required?: boolean}} props */
export function JsonField({ value, onChange, error, ...rest }) {
  const [draft, setDraft] = useState(/** @type {string|null} */ (null));
  const [mistake, setMistake] = useState("");
  const read = (/** @type {string} */ text) => {
    setDraft(text);
    try {
      onChange(text.trim() === "" ? undefined : JSON.parse(text));
      setMistake("");
    } catch (cause) {
      setMistake(`No valid JSON: ${/** @type {Error} */ (cause).message}`);
    }
  };
  return html`<${Field} ...${rest} kind="textarea" error=${mistake || error} input=${{ class: "mono" }}
    value=${draft ?? (value === undefined ? "" : pretty(value))} onInput=${read} />`;
}

/** @param {{schema: Schema, value: any, depth?: number, errors: {[name: string]: string}, at?: string, onChange: (value: any) => void}} props */
export function Members({ schema, value, depth = 0, errors, at = "", onChange }) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const members = Object.entries(schema.properties ?? {}).filter(([, it]) => it && typeof it === "object");
  const change = (/** @type {string} */ name, /** @type {any} */ it) => {
    const next = Object.fromEntries(Object.entries(value).filter(([other]) => other !== name));
    if (it !== undefined) Object.defineProperty(next, name, { value: it, enumerable: true, configurable: true, writable: true });
    onChange(next);
  };
  const sorted = [...members.filter(([name]) => required.has(name)), ...members.filter(([name]) => !required.has(name))];
  return html`${sorted.slice(0, MEMBERS_MAX)
    .map(([name, part]) => html`<${Member} key=${name} name=${name} schema=${part} value=${Object.hasOwn(value, name) ? value[name]
      : undefined} required=${required.has(name)}
    depth=${depth} errors=${errors} at=${at + name} onChange=${(/** @type {any} */ it) => change(name, it)} />`)}
    ${sorted.length > MEMBERS_MAX && html`<p class="hint">${sorted.length - MEMBERS_MAX} more members: write them as JSON.</p>`}
    ${sorted.length === 0 && depth === 0 && html`<p class="hint">This tool takes no arguments.</p>`}`;
}

/** Finds the fields that an error names, as `name` or /name. @param {Schema} schema @param {string} text */
export function errorsByField(schema, text) {
  const lineOf = (/** @type {string} */ name) => text.split("\n").find((it) =>
    [`\`${name}\``, `/${name}`, `"${name}"`, `'${name}'`].some((form) => it.includes(form)))?.trim();
  const lines = Object.keys(schema.properties ?? {}).map((name) => [name, lineOf(name)]);
  return Object.fromEntries(lines.filter(([, line]) => line));
}
