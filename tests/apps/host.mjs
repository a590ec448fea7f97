// The browser's part of a host: `AppBridge` of `@modelcontextprotocol/ext-apps` in a page, with a frame of another origin for what a
// server sends, as SEP-1865 demands of hosts that are web pages. `driver.mjs` bundles it and answers `toServer`.

import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const CAPABILITIES = { openLinks: {}, downloadFile: {}, serverTools: {}, serverResources: {}, logging: {}, updateModelContext: { text: {} }, message: { text: {} }, sampling: {} };

const HOST_CONTEXT = { theme: "dark", displayMode: "inline", availableDisplayModes: ["inline", "fullscreen"], locale: "en", containerDimensions: { maxHeight: 900, width: 800 } };

// What the views asked of the host besides its server.
window.heard = [];
const hears = (kind) => async (params) => {
  window.heard.push({ kind, params: JSON.parse(JSON.stringify(params ?? null)) });
  return kind === "display" ? { mode: params.mode } : {};
};

const toServer = async (method, params) => {
  const { result, error } = await window.toServer(method, params);
  if (error) throw new Error(error);
  return result;
};

let bridge = null;
let frame = null;

// Closes the view, as a host does.
window.closeView = async () => {
  const { promise: late, resolve } = Promise.withResolvers();
  setTimeout(() => resolve("late"), 2_000);
  const said = await Promise.race([bridge.teardownResource({}).then(() => "ended"), late]);
  frame.remove();
  return said;
};

// Shows a page of our server for a call, whose result comes later.
window.openView = async (sandbox, { html, csp, permissions }) => {
  frame?.remove();
  frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms");
  frame.style = "width: 800px; height: 300px; border: 0";
  bridge = new AppBridge(null, { name: "reference", version: "1.0.0" }, CAPABILITIES, { hostContext: HOST_CONTEXT });
  bridge.oncalltool = (params) => toServer("tools/call", params);
  bridge.onreadresource = (params) => toServer("resources/read", params);
  bridge.onlistresources = (params) => toServer("resources/list", params ?? {});
  bridge.oncreatesamplingmessage = hears("sampling");
  bridge.onmessage = hears("message");
  bridge.onopenlink = hears("link");
  bridge.ondownloadfile = hears("download");
  bridge.onupdatemodelcontext = hears("context");
  bridge.onrequestdisplaymode = hears("display");
  bridge.onloggingmessage = hears("log");
  bridge.onsizechange = ({ height }) => {
    if (height !== undefined) frame.style.height = `${Math.min(height, 900)}px`;
    window.height = height;
  };
  const ready = new Promise((resolve) => {
    window.addEventListener("message", function listen({ source, data }) {
      if (source !== frame.contentWindow || data?.method !== "ui/notifications/sandbox-proxy-ready") return;
      window.removeEventListener("message", listen);
      resolve();
    });
  });
  document.body.append(frame);
  frame.src = `${sandbox}?csp=${encodeURIComponent(JSON.stringify(csp ?? {}))}`;
  await ready;
  const initialized = new Promise((resolve) => {
    bridge.oninitialized = resolve;
  });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  await bridge.sendSandboxResourceReady({ html, csp, permissions });
  await initialized;
};

window.sendPartial = (given) => bridge.sendToolInputPartial({ arguments: given });
window.sendInput = (given) => bridge.sendToolInput({ arguments: given });
window.sendResult = (result) => bridge.sendToolResult(result);
window.sendCancelled = () => bridge.sendToolCancelled({ reason: "a person" });
window.setTheme = (theme) => bridge.setHostContext({ ...HOST_CONTEXT, theme });
