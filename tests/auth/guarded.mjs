// An authorization server (oidc-provider) for tests, and an MCP server of the official SDK that it
// protects, at three addresses, each of which is a resource of its own. Prints one line of JSON with
// their addresses; exits at the end of its stdin.
//
// node guarded.mjs TTL_SECONDS FIXED_CLIENT
//
// `POST /control/NAME` on the MCP server's port: `rotate` (new signing keys), `revoke` (all issued
// tokens), `ttl/SECONDS`, `leeway/SECONDS` (the MCP server accepts expired tokens for this long),
// `format/opaque` (of tokens). `GET /control/counts` returns the number of requests by path.
// `GET /control/token?sub=NAME&audience=URL` returns a token of this person, as another client has it.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// Shifts the clock before other code reads it.
const ahead = Number(process.env.CLOCK_AHEAD_S ?? 0) * 1000;
if (ahead !== 0) {
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...parts) {
      if (parts.length) super(...parts);
      else super(Real.now() + ahead);
    }
    static now() { return Real.now() + ahead; }
  };
}

const require = createRequire(process.cwd() + "/");
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { Provider } = await load("oidc-provider");
const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = await load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { requireBearerAuth } = await load("@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js");
const { InvalidTokenError } = await load("@modelcontextprotocol/sdk/server/auth/errors.js");
const express = (await load("express")).default;
const jose = await load("jose");

let ttl = Number(process.argv[2] ?? 60);
let leeway = 0;
let format = "jwt";
const fixedClient = process.argv[3];
const counts = {};
const revoked = { before: 0 };

const listen = (server) =>
  new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));

let signing;
const newKey = async () => {
  const { privateKey, publicKey } = await jose.generateKeyPair("RS256", { extractable: true });
  const kid = Math.random().toString(36).slice(2);
  signing = { privateKey, kid, keys: jose.createLocalJWKSet({ keys: [{ ...(await jose.exportJWK(publicKey)), kid, alg: "RS256" }] }) };
  return { ...(await jose.exportJWK(privateKey)), use: "sig", alg: "RS256", kid };
};

// The issuer needs its port before it is created.
let provider;
const guard = createServer((request, response) => handler(request, response));
const guardPort = await listen(guard);
const issuer = `http://127.0.0.1:${guardPort}`;

const app = express();
const mcp = createServer(app);
const mcpPort = await listen(mcp);
const origin = `http://127.0.0.1:${mcpPort}`;
const resource = `${origin}/mcp`;
const resources = [resource, `${origin}/two/mcp`, `${origin}/three/mcp`];
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";

const adapter = new Map();
class Memory {
  constructor(name) { this.name = name; }
  key(id) { return `${this.name}:${id}`; }
  async upsert(id, payload) { adapter.set(this.key(id), payload); }
  async find(id) { return adapter.get(this.key(id)); }
  async findByUid(uid) {
    for (const [key, value] of adapter) if (key.startsWith("Session:") && value.uid === uid) return value;
  }
  async findByUserCode(code) {
    for (const [key, value] of adapter) if (key.startsWith("DeviceCode:") && value.userCode === code) return value;
  }
  async consume(id) { const it = adapter.get(this.key(id)); if (it) it.consumed = Math.floor(Date.now() / 1000); }
  async destroy(id) { adapter.delete(this.key(id)); }
  async revokeByGrantId(grant) {
    for (const [key, value] of adapter) if (value.grantId === grant) adapter.delete(key);
  }
}

let handler;
const make = async () => {
  provider = new Provider(issuer, {
    adapter: Memory,
    jwks: { keys: [await newKey()] },
    clients: fixedClient
      ? [{
          client_id: fixedClient,
          client_secret: "machine-secret-5f1e9c0b7a",
          grant_types: ["client_credentials", EXCHANGE],
          redirect_uris: [],
          response_types: [],
        }]
      : [],
    scopes: ["openid", "offline_access"],
    pkce: { required: () => true },
    ttl: { AccessToken: () => ttl, ClientCredentials: () => ttl, RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 600, DeviceCode: 600 },
    rotateRefreshToken: true,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed("refresh_token"),
    interactions: { url: (_ctx, interaction) => `/agree/${interaction.uid}` },
    findAccount: async (_ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true },
      clientCredentials: { enabled: true },
      deviceFlow: {
        enabled: true,
        userCodeInputSource: (ctx, form) => { ctx.body = form; },
        userCodeConfirmSource: (ctx, form) => { ctx.body = form; },
        successSource: (ctx) => { ctx.body = "done"; },
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        getResourceServerInfo: (_ctx, indicator) => {
          if (!resources.includes(indicator)) throw new Error("another resource");
          return { scope: "read admin", audience: indicator, accessTokenFormat: format, accessTokenTTL: ttl };
        },
        useGrantedResource: () => true,
      },
    },
  });
  provider.use(async (ctx, next) => {
    if (!ctx.path.startsWith("/agree/")) return next();
    const { params, prompt, grantId } = await provider.interactionDetails(ctx.req, ctx.res);
    const accountId = params.login_hint ?? "ada";
    if (prompt.name === "login") {
      return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId } });
    }
    const grant = grantId ? await provider.Grant.find(grantId) : new provider.Grant({ accountId, clientId: params.client_id });
    grant.addOIDCScope("openid offline_access");
    grant.addResourceScope(params.resource ?? resource, params.scope ?? "read");
    const consent = { grantId: await grant.save() };
    return provider.interactionFinished(ctx.req, ctx.res, { consent }, { mergeWithLastSubmission: true });
  });
  provider.registerGrantType(EXCHANGE, exchange, ["subject_token", "subject_token_type", "requested_token_type", "resource", "scope"]);
  handler = provider.callback();
};

const sign = (sub, audience, seconds) =>
  new jose.SignJWT({ client_id: "another", scope: "read" })
    .setProtectedHeader({ alg: "RS256", kid: signing.kid, typ: "at+jwt" })
    .setIssuer(issuer).setSubject(sub).setAudience(audience).setJti(crypto.randomUUID())
    .setIssuedAt().setExpirationTime(Math.floor(Date.now() / 1000) + seconds)
    .sign(signing.privateKey);

// RFC 8693: the token of a person for one of these resources, in exchange for that person's token for
// another one.
const exchange = async (ctx) => {
  const { subject_token: token, subject_token_type: kind, resource: wanted } = ctx.oidc.params;
  const refuse = (error, text) => { ctx.status = 400; ctx.body = { error, error_description: text }; };
  if (kind !== ACCESS_TOKEN || !resources.includes(wanted)) return refuse("invalid_request", "the resource");
  let payload;
  try {
    ({ payload } = await jose.jwtVerify(token, signing.keys, { issuer }));
    if (payload.iat <= revoked.before) throw new Error("revoked");
  } catch (error) {
    return refuse("invalid_grant", error.message);
  }
  ctx.body = { access_token: await sign(payload.sub, wanted, ttl), token_type: "Bearer", issued_token_type: ACCESS_TOKEN, expires_in: ttl };
};
await make();
const count = (request) => {
  const kind = request.url.split("?")[0];
  counts[kind] = (counts[kind] ?? 0) + 1;
};
const counted = () => {
  const inner = handler;
  handler = (request, response) => { count(request); inner(request, response); };
};
counted();

const verifier = (audience) => ({
  async verifyAccessToken(token) {
    try {
      const { payload } = await jose.jwtVerify(token, signing.keys, { issuer, audience, clockTolerance: leeway });
      if (payload.iat <= revoked.before) throw new Error("revoked");
      return { token, clientId: payload.client_id, scopes: (payload.scope ?? "").split(" "), expiresAt: payload.exp + leeway, extra: { sub: payload.sub } };
    } catch (error) {
      throw new InvalidTokenError(error.message);
    }
  },
});
app.use(express.json());
app.get("/control/counts", (_request, response) => response.json(counts));
app.post("/control/ttl/:seconds", (request, response) => { ttl = Number(request.params.seconds); response.end(); });
app.post("/control/leeway/:seconds", (request, response) => { leeway = Number(request.params.seconds); response.end(); });
app.post("/control/format/:format", (request, response) => { format = request.params.format; response.end(); });
app.post("/control/rotate", async (_request, response) => { await make(); counted(); response.end(); });
app.post("/control/revoke", (_request, response) => {
  revoked.before = Math.floor(Date.now() / 1000);
  for (const key of [...adapter.keys()]) if (/^(RefreshToken|Grant|AccessToken):/.test(key)) adapter.delete(key);
  response.end();
});

app.get("/control/token", async (request, response) =>
  response.json({ token: await sign(request.query.sub, request.query.audience, Number(request.query.seconds ?? 3600)) }));

const whoami = (server) => {
  server.registerTool("whoami", { description: "Who calls" }, async (extra) => ({
    content: [{ type: "text", text: `client ${extra.authInfo?.clientId ? "known" : "unknown"}, scopes ${extra.authInfo?.scopes.join("+")}` }],
  }));
  server.registerTool("me", { description: "Returns the person who calls" }, async (extra) => ({
    content: [{ type: "text", text: extra.authInfo?.extra?.sub ?? "unknown" }],
  }));
  server.registerTool("rule", { description: "Needs the scope admin" }, async () => ({
    content: [{ type: "text", text: "ruled" }],
  }));
};
for (const audience of resources) {
  const path = new URL(audience).pathname;
  const metadata = `${origin}/.well-known/oauth-protected-resource${path}`;
  app.get(new URL(metadata).pathname, (_request, response) =>
    response.json({ resource: audience, authorization_servers: [issuer], scopes_supported: ["read"] }));
  const bearer = requireBearerAuth({ verifier: verifier(audience), resourceMetadataUrl: metadata });
  app.post(path, bearer, async (request, response) => {
    const asksToRule = request.body?.method === "tools/call" && request.body.params?.name === "rule";
    if (asksToRule && !request.auth.scopes.includes("admin")) {
      response.status(403).set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin", resource_metadata="${metadata}"`);
      return response.json({ error: "insufficient_scope" });
    }
    const server = new McpServer({ name: "guarded", version: "1" });
    whoami(server);
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    response.on("close", () => { transport.close(); server.close(); });
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
  });
  app.all(path, bearer, (_request, response) => response.status(405).end());
}

console.log(JSON.stringify({ url: resource, issuer, control: `${origin}/control` }));
process.stdin.resume().on("end", () => process.exit(0));
