// A browser with cookies that follows an address to its last page. Its user agrees to everything.
//
// node browser.mjs URL          prints the status and text of the last page
// node browser.mjs --stop URL   prints the loopback address of the last redirect without visiting it
// node browser.mjs --as NAME URL   logs in under this name

const args = process.argv.slice(2);
const stops = args[0] === "--stop";
const name = args[0] === "--as" ? args[1] : undefined;
let url = args.at(-1);
const jar = new Map();
let form;
for (let step = 0; step < 30; step++) {
  const target = new URL(url);
  if (name && target.searchParams.has("code_challenge") && !target.searchParams.has("login_hint")) {
    target.searchParams.set("login_hint", name);
    url = target.href;
  }
  if (stops && target.pathname === "/callback") {
    console.log(url);
    process.exit(0);
  }
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
  const response = await fetch(url, {
    redirect: "manual",
    headers: { ...(cookie && { cookie }), ...(form && { origin: target.origin }) },
    ...(form && { method: "POST", body: form }),
  });
  for (const line of response.headers.getSetCookie()) {
    const [pair] = line.split(";");
    const at = pair.indexOf("=");
    jar.set(pair.slice(0, at), pair.slice(at + 1));
  }
  const location = response.headers.get("location");
  form = undefined;
  if (location) {
    url = new URL(location, url).href;
    continue;
  }
  const page = await response.text();
  const action = page.match(/<form [^>]*method="post" action="([^"]+)"/)?.[1];
  if (!action) {
    console.log(`${response.status} ${page}`);
    process.exit(response.ok ? 0 : 1);
  }
  // A page that asks for consent gets it.
  form = new URLSearchParams({ confirm: "yes" });
  for (const [, name, value] of page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)) {
    form.set(name, value);
  }
  url = new URL(action, url).href;
}
console.error("it redirects for ever");
process.exit(1);
