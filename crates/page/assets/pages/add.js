/** Adding a server: by a recipe or by an address. A program to run is named in a terminal only. */

import { useState } from "../vendor/hooks.js";
import { post } from "../api.js";
import { formatCount, visible } from "../text.js";
import { Action, Copy, Failure, Field, Foreign, Mark, html, say, to, useFetch } from "../ui.js";

/** More recipes than this are found by another word. */
const RECIPES_SHOWN = 24;

/** Posts the server; returns the error, or nothing after the page of the server is open. @param {object} body */
async function add(body) {
  try {
    const done = await post("/servers", body);
    // The difference may hold a value that is a secret.
    say({ ...done, diff: null });
    location.hash = to(["servers", done.name]);
    return null;
  } catch (error) {
    return /** @type {import("../api.js").ApiError} */ (error);
  }
}

/** @param {{recipe: Recipe, back: () => void}} props */
function RecipeForm({ recipe, back }) {
  const [values, setValues] = useState(/** @type {{[name: string]: string}} */ ({}));
  const [name, setName] = useState("");
  const [error, setError] = useState(/** @type {import("../api.js").ApiError|null} */ (null));
  const needs = error?.needs.length ? error.needs : recipe.needs;
  const run = async () => setError(await add({ recipe: recipe.name, values, ...(name && { name }) }));
  const errorOf = (/** @type {string} */ field) => (error?.field === field || error?.field === `values.${field}` ? error.message
    : error?.code === "missing_values" && !values[field] ? "This value is needed." : undefined);
  const isAtField = error && (error.field === "name" || needs.some((it) => errorOf(it.name)));
  return html`<form onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}><h3><${Foreign} text=${recipe.name} /></h3>
    <p class="muted"><${Foreign} text=${recipe.what} /></p>
    ${needs.map((need) => html`<${Field} key=${need.name} label=${html`<span class="mono">${need.name}</span>`} kind=${need.is_secret
      ? "password" : "text"} required value=${values[need.name] ?? ""} error=${errorOf(need.name)}
      hint=${html`<${Foreign} text=${need.what} />${need.origin && html` From <${Foreign} text=${need.origin} />`}
        ${need.is_secret && " It is stored as a secret, and not shown again."}`}
      onInput=${(/** @type {string} */ it) => setValues({ ...values, [need.name]: it })} />`)}
    <${Field} label="Name" hint=${`Lower-case letters, digits and "-". If empty: ${visible(recipe.name)}`} value=${name}
      error=${error?.field === "name" ? error.message : undefined} onInput=${setName} />
    ${!isAtField && html`<${Failure} error=${error} />`}
    <div class="buttons"><${Action} kind="primary" run=${run}>Add the server<//>
      <button type="button" onClick=${back}>Back to the list</button></div></form>`;
}

function AddressForm() {
  const [body, setBody] = useState(/** @type {{[name: string]: string}} */ ({}));
  const [error, setError] = useState(/** @type {import("../api.js").ApiError|null} */ (null));
  const read = (/** @type {string} */ name) => ({ value: body[name] ?? "", error: error?.field === name ? error.message : undefined,
    onInput: (/** @type {string} */ it) => setBody({ ...body, [name]: it }) });
  return html`<form class="row" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <${Field} label="Address" wide required input=${{ placeholder: "https://example.com/mcp" }} ...${read("address")} />
    <${Field} label="Name" hint="If empty: from the address" ...${read("name")} />
    <div class="buttons"><${Action} kind="primary" run=${async () => setError(await add(body))}>Add the server<//></div>
    ${error && !["address", "name"].includes(error.field ?? "") && html`<${Failure} error=${error} />`}</form>`;
}

export function AddServer() {
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(/** @type {Recipe|null} */ (null));
  const { data, error } = useFetch("/recipes");
  /** @type {Recipe[]} */
  const recipes = data?.recipes ?? [];
  const all = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = recipes.filter((it) => all.every((word) => `${it.name} ${it.what}`.toLowerCase().includes(word)));
  return html`<div class="add"><section aria-labelledby="by-recipe"><h3 id="by-recipe">A well-known server</h3>
    ${chosen ? html`<${RecipeForm} key=${chosen.name} recipe=${chosen} back=${() => setChosen(null)} />` : html`
      <${Failure} error=${error} /><${Field} label="Search the recipes" kind="search" value=${words} onInput=${setWords}
        input=${{ placeholder: "browser, files, github ..." }} />
      <ul class="cards">${found.slice(0, RECIPES_SHOWN)
        .map((it) => html`<li key=${it.name}><button type="button" class="card" onClick=${() => setChosen(it)}>
        <span><strong><${Foreign} text=${it.name} /></strong>${it.login && html` <${Mark} kind="warn">login<//>`}
          ${it.needs.length > 0 && html` <span class="muted">${it.needs.length === 1 ? "1 value"
            : `${it.needs.length} values`}</span>`}</span>
        <span class="what"><${Foreign} text=${it.deprecated ? `Deprecated: ${it.deprecated}` : it.what}
          max=${140} /></span></button></li>`)}</ul>
      ${found.length > RECIPES_SHOWN && html`<p class="muted">
        ${formatCount(found.length - RECIPES_SHOWN)} more: write a word to find them.</p>`}
      ${data && found.length === 0 && html`<p class="muted">No recipe has these words.</p>`}`}</section>
    <section aria-labelledby="by-address"><h3 id="by-address">A server at an address</h3><${AddressForm} /></section>
    <section aria-labelledby="by-command"><h3 id="by-command">A program on this machine</h3>
      <p class="muted">A page runs no program. In a terminal:</p><${Copy} text="proxy add NAME -- COMMAND" /></section></div>`;
}
