// The page between a host and a view (SEP-1865, "Sandbox proxy"): it has another origin than the host, and shows what it is sent.
"use strict";
const inner = document.createElement("iframe");
inner.style = "width: 100%; height: 100%; border: 0";
inner.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms");
document.body.append(inner);
const RESERVED = "ui/notifications/sandbox-";
window.addEventListener("message", ({ source, data }) => {
  const method = data?.method ?? "";
  if (source === window.parent && method === `${RESERVED}resource-ready`) {
    const { html, permissions } = data.params;
    inner.allow = Object.keys(permissions ?? {}).join("; ");
    inner.contentDocument.open();
    inner.contentDocument.write(html);
    inner.contentDocument.close();
  } else if (method.startsWith(RESERVED)) return;
  else if (source === window.parent) inner.contentWindow.postMessage(data, "*");
  else if (source === inner.contentWindow) window.parent.postMessage(data, "*");
});
window.parent.postMessage({ jsonrpc: "2.0", method: `${RESERVED}proxy-ready`, params: {} }, "*");
