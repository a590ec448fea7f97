// A browser with cookies: follows an address to its end. The person in it agrees to everything.
//
// node browser.mjs URL          ends where a browser would, on the page that a login ends with
// node browser.mjs --stop URL   prints the address of this machine to which it would go in the end

const args = process.argv.slice(2);
const stops = args[0] === "--stop";
let url = args.at(-1);
const jar = new Map();
for (let step = 0; step < 30; step++) {
  const target = new URL(url);
  if (stops && target.pathname === "/callback") {
    console.log(url);
    process.exit(0);
  }
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
  const response = await fetch(url, { redirect: "manual", headers: cookie ? { cookie } : {} });
  for (const line of response.headers.getSetCookie()) {
    const [pair] = line.split(";");
    const at = pair.indexOf("=");
    jar.set(pair.slice(0, at), pair.slice(at + 1));
  }
  const location = response.headers.get("location");
  if (!location) {
    console.log(`${response.status} ${await response.text()}`);
    process.exit(response.ok ? 0 : 1);
  }
  url = new URL(location, url).href;
}
console.error("it redirects for ever");
process.exit(1);
