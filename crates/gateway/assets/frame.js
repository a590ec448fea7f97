// The page that a host shows for a call of `execute_dynamic_tool` (docs/decisions/0041-apps.md). It finds the app of the called
// tool, runs it in an inner frame without an origin, and relays between the app and the host: the app reaches its own server alone.
"use strict";
(() => {
  const VERSION = "2026-01-26";
  const REQUESTS_MAX = 100;
  const HEIGHT = 400;
  const OURS = "proxy/app";
  const TYPE = "text/html;profile=mcp-app";
  const METHOD_NOT_FOUND = -32601;
  const INVALID_PARAMS = -32602;

  // What the host said in `ui/initialize`; then the called tool, its server and the inner frame.
  let hello = null;
  let called = null;
  let inner = null;
  let isLoading = false;
  let isAppReady = false;
  // Notifications for the app until it is ready: the last partial input, the input, the result.
  const waiting = new Map();

  const isObject = (it) => typeof it === "object" && it !== null && !Array.isArray(it);

  // One end of a connection: requests of ours with their answers, and messages.
  const end = (target) => {
    const open = new Map();
    let last = 0;
    const send = (message) => target().postMessage({ jsonrpc: "2.0", ...message }, "*");
    return {
      send,
      count: () => open.size,
      tell: (method, params) => send({ method, params }),
      // `from` is the id of the request that this one passes on.
      ask: (method, params, from) =>
        new Promise((resolve, reject) => {
          last += 1;
          open.set(last, { resolve, reject, from });
          send({ id: last, method, params });
        }),
      answer: ({ id, result, error }) => {
        const request = open.get(id);
        open.delete(id);
        if (request && error) request.reject(error);
        else request?.resolve(result);
      },
      // The id of the open request that passes on `from`.
      find: (from) => [...open].find(([, it]) => it.from === from)?.[0],
    };
  };
  const host = end(() => window.parent);
  const app = end(() => inner.contentWindow);
  const fail = (code, message) => ({ code, message });

  // --- the called tool and its app

  const base64 = (text) => {
    const bytes = String.fromCharCode(...new TextEncoder().encode(text));
    return btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  };

  const read = async (uri) => (await host.ask("resources/read", { uri })).contents;

  // Shows the app of this tool; a tool without one shows nothing.
  async function load(name) {
    if (isLoading) return;
    isLoading = true;
    try {
      const [about, page] = await read(`ui://proxy/tool/${base64(name)}`);
      const tool = JSON.parse(about.text);
      if (!page) return;
      if (page.mimeType !== TYPE) throw new Error(`its type is ${page.mimeType}, not ${TYPE}`);
      called = tool;
      show(page);
    } catch (error) {
      const line = document.createElement("p");
      line.textContent = `The app of ${name} cannot be shown: ${error?.message ?? error}`;
      document.body.append(line);
      host.tell("ui/notifications/size-changed", { height: 40 });
    }
  }

  const textOf = ({ text, blob }) =>
    text ?? new TextDecoder().decode(Uint8Array.from(atob(blob), (it) => it.charCodeAt(0)));

  const SOURCE = /^[A-Za-z0-9\-._~:/*[\]?=&%]+$/;

  // Our page was loaded with the domains of all apps. It narrows itself to those of this one, and the inner frame inherits that.
  function policy() {
    const named = (kind) => {
      const all = called.needs?.csp?.[kind];
      return Array.isArray(all) ? all.filter((it) => typeof it === "string" && SOURCE.test(it)).join(" ") : "";
    };
    const resources = named("resourceDomains");
    const files = `data: blob: ${resources}`;
    return [
      "default-src 'none'",
      `script-src 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' ${files}`,
      `style-src 'unsafe-inline' ${files}`,
      `img-src ${files}`,
      `font-src ${files}`,
      `media-src ${files}`,
      `worker-src blob: ${resources}`,
      `connect-src ${named("connectDomains") || "'none'"}`,
      `frame-src ${named("frameDomains") || "'none'"}`,
      `base-uri ${named("baseUriDomains") || "'none'"}`,
      "form-action 'none'",
      "object-src 'none'",
    ].join("; ");
  }

  const PERMISSIONS = { camera: "camera", microphone: "microphone", geolocation: "geolocation", clipboardWrite: "clipboard-write" };

  const granted = () => Object.keys(PERMISSIONS).filter((it) => isObject(called.needs?.permissions?.[it]));

  function show(page) {
    const meta = document.createElement("meta");
    meta.httpEquiv = "Content-Security-Policy";
    meta.content = policy();
    document.head.append(meta);
    inner = document.createElement("iframe");
    inner.setAttribute("sandbox", "allow-scripts allow-forms");
    inner.allow = granted()
      .map((it) => PERMISSIONS[it])
      .join("; ");
    inner.srcdoc = textOf(page);
    document.body.append(inner);
    // An app that wants another height says so.
    host.tell("ui/notifications/size-changed", { height: HEIGHT });
  }

  // --- from the host to the app

  const forApp = (method, params) => {
    if (isAppReady) app.tell(method, params);
    else waiting.set(method, params);
  };

  function takeInput(method, input) {
    const named = isObject(input) ? input : {};
    const own = named.tool_input;
    // As models write it, right or nearly.
    const name = [named.tool_name, named.name, named.tool].find((it) => typeof it === "string");
    const isWhole = method === "ui/notifications/tool-input";
    // The name in a partial input is whole when the next member has begun.
    if (name !== undefined && (isWhole || own !== undefined)) load(name);
    let parsed = own;
    try {
      if (typeof own === "string") parsed = JSON.parse(own);
    } catch {
      // A partial text.
    }
    if (isWhole) waiting.delete("ui/notifications/tool-input-partial");
    if (isWhole || isObject(parsed)) forApp(method, { arguments: isObject(parsed) ? parsed : {} });
  }

  async function takeResult(result) {
    const { [OURS]: ours, ...meta } = isObject(result?._meta) ? result._meta : {};
    let whole = null;
    if (typeof ours?.whole === "string") {
      try {
        const [content] = await read(`ui://proxy/result/${ours.whole}`);
        whole = JSON.parse(content.text);
      } catch {
        // It is kept for some hours: afterwards the app gets what the model got.
      }
    }
    forApp("ui/notifications/tool-result", whole ?? { ...result, _meta: meta });
  }

  async function takeRequestOfHost({ id, method, params }) {
    const answer = (result) => host.send({ id, result });
    if (method === "ping") return answer({});
    if (method !== "ui/resource-teardown") {
      return host.send({ id, error: fail(METHOD_NOT_FOUND, `proxy passes ${method} on to no app`) });
    }
    if (isAppReady) await app.ask(method, params).catch(() => {});
    return answer({});
  }

  function takeOfHost(message) {
    const { id, method, params } = message;
    if (method === undefined) host.answer(message);
    else if (id !== undefined) takeRequestOfHost(message);
    else if (method === "ui/notifications/tool-input" || method === "ui/notifications/tool-input-partial") {
      takeInput(method, params?.arguments);
    } else if (method === "ui/notifications/tool-result") takeResult(params);
    else if (method === "ui/notifications/tool-cancelled") forApp(method, params);
    else if (method === "ui/notifications/host-context-changed") {
      hello = { ...hello, hostContext: { ...hello?.hostContext, ...params } };
      const { toolInfo, ...rest } = params ?? {};
      if (isAppReady) app.tell(method, rest);
    }
  }

  // --- from the app to the host

  const isWeb = (text) => /^https?:\/\//i.test(String(text));

  // A link to a resource means one of the app's server.
  const ownUri = (uri) => `proxy://${called.server}/${uri}`;
  const owned = (block) => {
    if (Array.isArray(block)) return block.map(owned);
    return block?.type === "resource_link" && !isWeb(block.uri) ? { ...block, uri: ownUri(block.uri) } : block;
  };

  const SHOWN = ["openLinks", "downloadFile", "serverTools", "serverResources", "logging", "updateModelContext", "message"];

  function initialize(params) {
    const offered = hello.hostCapabilities ?? {};
    const hostCapabilities = {};
    for (const key of SHOWN) if (offered[key]) hostCapabilities[key] = offered[key];
    for (const key of ["serverTools", "serverResources"]) if (offered[key]) hostCapabilities[key] = {};
    const permissions = Object.fromEntries(granted().map((it) => [it, {}]));
    hostCapabilities.sandbox = { permissions, csp: called.needs?.csp ?? {} };
    return {
      protocolVersion: params?.protocolVersion ?? VERSION,
      hostInfo: hello.hostInfo,
      hostCapabilities,
      hostContext: { ...hello.hostContext, toolInfo: { ...hello.hostContext?.toolInfo, tool: called.tool } },
    };
  }

  const callTool = ({ name, arguments: given }) => {
    if (typeof name !== "string") throw fail(INVALID_PARAMS, "`name` is missing; it is a text");
    const others = Object.entries(isObject(given) ? given : {}).filter(([key]) => !key.startsWith("proxy/"));
    const input = { ...Object.fromEntries(others), [OURS]: called.server };
    return { name: "execute_dynamic_tool", arguments: { tool_name: `${called.server}/${name}`, tool_input: input } };
  };

  // The requests of an app, each with what the host is asked instead.
  const REQUESTS = {
    "tools/call": callTool,
    "resources/read": ({ uri }) => ({ uri: ownUri(uri) }),
    "ui/open-link": (params) => {
      if (!isWeb(params.url)) throw fail(INVALID_PARAMS, "`url` is no address of the web");
      return { url: params.url };
    },
    "ui/message": (params) => ({ ...params, content: owned(params.content) }),
    "ui/update-model-context": (params) => ({ ...params, content: owned(params.content) }),
    "ui/download-file": (params) => ({ ...params, contents: owned(params.contents) }),
    "ui/request-display-mode": (params) => params,
  };

  async function takeRequestOfApp({ id, method, params }) {
    try {
      if (method === "ping") return app.send({ id, result: {} });
      if (method === "ui/initialize") return app.send({ id, result: initialize(params) });
      if (!Object.hasOwn(REQUESTS, method)) throw fail(METHOD_NOT_FOUND, `proxy passes on no ${method} of an app`);
      if (host.count() >= REQUESTS_MAX) throw fail(-32000, `${REQUESTS_MAX} requests of this app are open`);
      const wanted = REQUESTS[method](isObject(params) ? params : {});
      return app.send({ id, result: await host.ask(method, wanted, id) });
    } catch (error) {
      return app.send({ id, error: fail(error?.code ?? -32000, String(error?.message ?? error)) });
    }
  }

  function takeOfApp(message) {
    const { id, method, params } = message;
    if (method === undefined) app.answer(message);
    else if (id !== undefined) takeRequestOfApp(message);
    else if (method === "ui/notifications/initialized") {
      isAppReady = true;
      for (const [kind, given] of waiting) app.tell(kind, given);
      waiting.clear();
    } else if (method === "ui/notifications/size-changed") {
      const { width, height } = params ?? {};
      host.tell(method, { width, height });
    } else if (method === "ui/notifications/request-teardown" || method === "notifications/message") host.tell(method, params);
    else if (method === "notifications/cancelled") {
      const requestId = host.find(params?.requestId);
      if (requestId !== undefined) host.tell(method, { ...params, requestId });
    }
  }

  window.addEventListener("message", ({ source, data }) => {
    if (data?.jsonrpc !== "2.0") return;
    if (source === window.parent) takeOfHost(data);
    else if (inner && source === inner.contentWindow) takeOfApp(data);
  });

  const appCapabilities = { availableDisplayModes: ["inline", "fullscreen", "pip"] };
  host.ask("ui/initialize", { appInfo: { name: "proxy", version: VERSION }, appCapabilities, protocolVersion: VERSION }).then((said) => {
    hello = { ...said, hostContext: { ...said?.hostContext, ...hello?.hostContext } };
    host.tell("ui/notifications/initialized", {});
    host.tell("ui/notifications/size-changed", { height: 0 });
  });
})();
