/** Forbidding a tool, for one client or for all: the difference is shown before the change is made. */

import { useEffect, useState } from "../vendor/hooks.js";
import { path, post } from "../api.js";
import { Action, Dialog, DiffText, Failure, act, html } from "../ui.js";
import { visible } from "../text.js";

/** @param {{server: string, tool: string, client?: string, onClose: () => void}} props */
export function ForbidDialog({ server, tool, client, onClose }) {
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const send = (/** @type {boolean} */ dry) => post(`${path("tools", server, tool)}/forbid`, { client, dry_run: dry });
  useEffect(() => {
    send(true).then(setShown, setError);
  }, []);
  const run = async () => {
    if (await act(() => send(false))) onClose();
  };
  return html`<${Dialog} title=${`Forbid ${visible(`${server}/${tool}`)}`} onClose=${onClose}>
    <p>A rule refuses this tool to ${client ? visible(client, 60) : "every client; a search no longer finds it"}.
      To remove the rule later, edit the configuration file.</p><${Failure} error=${error} />
    ${shown?.diff && html`<p class="muted">The change of the configuration file:</p><${DiffText} text=${shown.diff} />`}
    <div class="buttons">${shown && html`<${Action} kind="primary" run=${run}>Forbid the tool<//>`}
      <button type="button" onClick=${onClose}>Cancel</button></div><//>`;
}

/** A button that opens the dialog. @param {{server: string, tool: string, client?: string}} props */
export function Forbid({ server, tool, client }) {
  const [asks, setAsks] = useState(false);
  return html`<button type="button" onClick=${() => setAsks(true)}>Forbid for ${client ? visible(client, 40) : "every client"}</button>
    ${asks && html`<${ForbidDialog} server=${server} tool=${tool} client=${client} onClose=${() => setAsks(false)} />`}`;
}
