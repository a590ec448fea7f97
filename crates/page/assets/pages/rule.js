/** A change of the rules: its difference is shown before it is made. */

import { useEffect, useState } from "../vendor/hooks.js";
import { post } from "../api.js";
import { Action, Dialog, DiffText, Failure, act, html } from "../ui.js";

/**
 * @param {{title: string, text?: any, button: string, rule: Rule, remove?: number, position?: number, onClose: () => void, onDone?: () => void}} props
 */
export function RuleDialog({ title, text, button, rule, remove, position, onClose, onDone }) {
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const send = (/** @type {boolean} */ dry) => (remove ? post(`/rules/${remove}/remove`, { rule, dry_run: dry })
    : post("/rules", { rule, ...(position && { position }), dry_run: dry }));
  useEffect(() => {
    send(true).then(setShown, setError);
  }, []);
  const run = async () => {
    if (!(await act(() => send(false)))) return;
    onClose();
    onDone?.();
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>${text && html`<p>${text}</p>`}<${Failure} error=${error} />
    ${shown?.diff && html`<p class="muted">The change of the configuration file:</p><${DiffText} text=${shown.diff} />`}
    <div class="buttons">${shown && html`<${Action} kind="primary" run=${run}>${button}<//>`}
      <button type="button" onClick=${onClose}>Cancel</button></div><//>`;
}
