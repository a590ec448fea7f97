//! Every key of the configuration, declared once. The check, the defaults, the variables and
//! `docs/configuration.md` all read this table.

mod key;
mod lookup;
mod removed;
mod unknown;

use key::count;

pub(super) use key::{Count, KeySpec, ValueKind};
pub(super) use lookup::{KeyMatch, child, find, names};
pub(super) use unknown::{nearest, unknown};

#[cfg(test)]
pub(super) use removed::REMOVED;

const SECONDS_OF_A_CALL: ValueKind = count(1, 86_400, "seconds");
/// A footer with its next call takes half of the least.
const TOKENS: ValueKind = count(200, 1_000_000, "tokens");
const GRANT: ValueKind = ValueKind::Choice(&[
    "authorization_code",
    "client_credentials",
    "jwt_bearer",
    "enterprise_managed",
    "token_exchange",
]);

pub(super) static KEYS: &[KeySpec] = &[
    ValueKind::StateDir.variable(
        "state_dir",
        "folder for snapshots, the index and kept results; `~/` is the home folder, a relative \
         path starts at the folder of the configuration file. If not set: \
         `$XDG_STATE_HOME/proxy/STEM-HASH`, one folder per configuration file; two files on one \
         folder are refused",
    ),
    ValueKind::Filter.or("\"warn\"").variable(
        "log",
        "events logged to stderr, as directives of a tracing filter: `warn`, `warn,fleet=debug`",
    ),
    ValueKind::Choice(&["open", "careful", "read-only"]).or("\"open\"").variable(
        "policy",
        "decision about calls that match no rule. `\"open\"`: allow all; `\"careful\"`: ask a \
         person before destructive calls; `\"read-only\"`: allow only tools annotated as \
         read-only",
    ),
    ValueKind::Rules.key(
        "rules",
        "rules that allow, ask about or deny calls; the first that matches decides",
    ),
    ValueKind::Quotas.key(
        "quotas",
        "limits of calls, of tokens, and of repetitions of one call",
    ),
    count(0, 3_600, "seconds").or("50").variable(
        "approvals.wait_s",
        "time for which a call waits for a person's permission, if its client cannot ask for it: the \
         person answers with `proxy review --pending` or on the page. 0: it is refused at once",
    ),
    ValueKind::Choice(&["warn", "hold", "off"]).or("\"warn\"").variable(
        "pin",
        "handling of tools that changed since their server was added or they were last reviewed. \
         `\"warn\"`: `proxy review` reports them, and of one whose new text has a sign that it steers the \
         model, models get the accepted definition until `proxy review` accepts the new one; `\"hold\"`: \
         they are neither shown nor called until `proxy review` accepts them; `\"off\"`: tools are not \
         compared",
    ),
    ValueKind::Choice(&["digest", "full", "none"]).or("\"digest\"").variable(
        "audit.arguments",
        "form in which the audit log stores the arguments of a call; in `\"full\"`, secrets are \
         masked",
    ),
    count(0, 102_400, "MiB").or("64").variable(
        "audit.keep_mib",
        "size limit of the audit log; the oldest calls are removed first. 0: no audit log",
    ),
    ValueKind::Switch.or("true").variable(
        "stats.enabled",
        "`false`: count no calls. Writes neither the figures of `proxy stats` nor the calls of each \
         tool, and search learns nothing; existing files stay. The audit log has its own switch",
    ),
    ValueKind::Url.key(
        "traces.endpoint",
        "OpenTelemetry collector that receives a span for each call, by OTLP over HTTP as JSON: \
         `http://127.0.0.1:4318`; `/v1/traces` is appended. If not set, no spans are sent",
    ),
    ValueKind::Headers.key(
        "traces.headers",
        "headers sent with every request to the collector, preferably with `${secret:NAME}`",
    ),
    ValueKind::Switch.or("false").variable(
        "redaction.enabled",
        "`true`: replace keys of well-known services, private keys, card numbers and your own \
         `patterns` in everything that servers send, by `[redacted: github token]`",
    ),
    ValueKind::Patterns.key(
        "redaction.patterns",
        "your own patterns, regular expressions by the name that replaces them: `staff = \
         'E-\\d{6}'`",
    ),
    ValueKind::Choice(&["file", "keyring"]).or("\"file\"").variable(
        "secrets.store",
        "storage of secrets (`proxy secret set`) and logins. `\"file\"`: files that only their \
         owner can read; `\"keyring\"`: the same files, encrypted with a key from the system's \
         keyring. Existing files are encrypted when they next change. `\"keyring\"` requires a \
         build with `--features keyring`",
    ),
    TOKENS.or("4000").variable(
        "results.max_tokens",
        "longest result passed to the model; a longer result is cut and kept",
    ),
    count(1, 8_760, "hours").or("24").variable(
        "results.keep_hours",
        "time that a cut result is kept",
    ),
    count(1, 102_400, "MiB").or("256").variable(
        "results.keep_mib",
        "size limit of kept results; the oldest are removed first",
    ),
    ValueKind::Switch.or("true").variable(
        "search.learn",
        "rank a tool higher for similar queries once its call succeeded after a search. The state \
         folder keeps embeddings and known words of such queries for each client and project, and no \
         text. `false`: neither collected nor used",
    ),
    ValueKind::Text.variable(
        "search.enrich",
        "command that writes example requests for `proxy enrich`: it reads a prompt on stdin and \
         prints lines, as `claude -p` does. Words are split as in a shell, without a shell. If not \
         set, `proxy enrich` only prints its prompts",
    ),
    ValueKind::Choice(&["encoder", "off"]).or("\"encoder\"").variable(
        "search.semantic",
        "how queries are matched by meaning, besides their words. `\"encoder\"`: by a sentence \
         encoder that is part of the program (about 15 MB of memory while in use, 4 ms per tool \
         at `reindex`, up to 100,000 tools); `\"off\"`: not at all",
    ),
    ValueKind::Listen.variable(
        "http.listen",
        "address that serves MCP over streamable HTTP, at `/mcp`: `127.0.0.1:7331`, `[::1]:7331`, \
         `localhost:7331` or a port of the loopback interface. Any other address requires a \
         token. If not set, HTTP is not served; `proxy serve --http ADDR` takes precedence",
    ),
    ValueKind::Tokens.key(
        "http.tokens",
        "bearer tokens that admit clients, each under a name of your choice; at least 16 \
         characters",
    ),
    ValueKind::TokenFiles.key(
        "http.token_files",
        "bearer tokens, each read from a file when the program starts",
    ),
    ValueKind::Url.key(
        "http.oauth.issuer",
        "authorization server whose tokens (JWT) admit clients, besides `tokens`; its keys are \
         fetched from it, and fetched again when they change",
    ),
    ValueKind::Url.key(
        "http.oauth.audience",
        "public address of this proxy, `https://tools.example.com/mcp`; tokens must be issued for \
         it",
    ),
    ValueKind::List(&ValueKind::Text).key(
        "http.oauth.scopes",
        "scopes of which a token must have at least one; the first that it has selects the \
         `[clients.SCOPE]` whose rules apply to its client. If not set, any token of the issuer \
         for this audience is accepted",
    ),
    ValueKind::Template.key(
        "http.oauth.introspection_client_id",
        "client ID for introspection of opaque tokens at the issuer (RFC 7662); a response is \
         cached for a minute. If not set, opaque tokens are rejected",
    ),
    ValueKind::Template.key(
        "http.oauth.introspection_client_secret",
        "secret of that client, preferably as `${secret:NAME}`",
    ),
    ValueKind::Url.key(
        "http.public_url",
        "address at which browsers reach this proxy, `https://tools.example.com`: callers log in to \
         servers there (`servers.NAME.login`). If not set, that of `http.oauth.audience`, else the \
         address of the request",
    ),
    ValueKind::List(&ValueKind::Host).key(
        "http.allowed_hosts",
        "accepted values of the `Host` header, besides `localhost` and the listening address",
    ),
    ValueKind::List(&ValueKind::Origin).key(
        "http.allowed_origins",
        "accepted values of the `Origin` header (web pages that may send requests), besides the \
         listening address and `public_url`",
    ),
    ValueKind::File.key(
        "http.tls_cert",
        "certificate chain (PEM) for TLS; requires `tls_key`. If not set, TLS is off",
    ),
    ValueKind::File.key(
        "http.tls_key",
        "private key (PEM) of the certificate",
    ),
    ValueKind::Switch.or("false").variable(
        "http.metrics",
        "`true`: serve metrics since the start of the process at `/metrics`, in the format of \
         Prometheus",
    ),
    count(1, 1_048_576, "KiB").or("4096").variable(
        "http.max_body_kib",
        "size limit of one message",
    ),
    count(1, 65_536, "sessions").or("256").variable(
        "http.max_sessions",
        "limit of sessions; one token, or one remote address if no token is required, may have \
         half of them. A further session ends the oldest one that was not used after \
         `initialize`; if there is none, it is refused",
    ),
    TOKENS.key(
        "clients.NAME.max_tokens",
        "longest result passed to this client: replaces `results.max_tokens`, and limits the \
         values of servers and tools. Only a call can request more",
    ),
    ValueKind::List(&ValueKind::Glob).key(
        "clients.NAME.allow",
        "patterns of servers and categories whose tools this client sees. If not set, all",
    ),
    ValueKind::List(&ValueKind::Glob).key(
        "clients.NAME.deny",
        "patterns of servers and categories whose tools this client does not see",
    ),
    ValueKind::Choice(&["auto", "off"]).or("\"auto\"").key(
        "clients.NAME.resources",
        "`\"auto\"`: announce resources if a server has any; some clients then give their model \
         tools for them. `\"off\"`: neither announce nor list them",
    ),
    ValueKind::Choice(&["none", "servers", "names", "signatures"]).or("\"servers\"").key(
        "clients.NAME.catalog",
        "what the instructions for this client name: no server, the servers, or, if it sees at most \
         10 tools, each tool by its name (120 tokens) or its signature (450 tokens). A longer list \
         is replaced by the next shorter one",
    ),
    ValueKind::List(&ValueKind::Glob).key(
        "profiles.NAME.allow",
        "patterns of servers and categories whose tools a session with this profile sees. If not set, \
         all that its client sees",
    ),
    ValueKind::List(&ValueKind::Glob).key(
        "profiles.NAME.deny",
        "patterns of servers and categories whose tools it does not see",
    ),
    TOKENS.key(
        "profiles.NAME.max_tokens",
        "longest result passed to it, if that of its client is not shorter",
    ),
    ValueKind::List(&ValueKind::Text).key(
        "profiles.NAME.folders",
        "folders: the profile applies to each client that works in one of them, or below",
    ),
    ValueKind::List(&ValueKind::Text).key(
        "profiles.NAME.outside_folders",
        "folders: the profile applies to each client that works in none of them, and below none; also \
         to one whose folder is not known. With `deny`, a server is limited to these folders",
    ),
    ValueKind::List(&ValueKind::Glob).key(
        "profiles.NAME.callers",
        "patterns of `token NAME` and `oauth SUBJECT`: the profile applies to each client over HTTP \
         with such a credential",
    ),
    count(0, 604_800, "seconds").or("600").variable(
        "daemon.linger_s",
        "time that the daemon, with its running servers, keeps running after the last client \
         disconnects; 0: forever. A node of a `[cluster]` stays",
    ),
    ValueKind::List(&ValueKind::Template).key(
        "cluster.nats",
        "addresses of NATS servers, 2.10.23 or newer: `tls://nats.example.com:4222`; user and password \
         may stand before the host, preferably as `${secret:NAME}`. With this table, the process is a \
         node of a cluster",
    ),
    ValueKind::ClusterName.or("\"home\"").key(
        "cluster.name",
        "name of the cluster; several clusters may share NATS servers",
    ),
    ValueKind::ClusterName.variable(
        "cluster.node",
        "name of this node, unique in the cluster. If not set, the name of the host",
    ),
    ValueKind::Template.key(
        "cluster.key",
        "text of at least 32 characters that all nodes have, preferably as `${secret:NAME}`: it \
         encrypts and signs everything that nodes share. NATS never gets it",
    ),
    ValueKind::Template.key(
        "cluster.credentials",
        "content of a NATS credentials file (`.creds`), as `${file:PATH}`",
    ),
    ValueKind::File.key(
        "cluster.tls_ca",
        "certificates (PEM) that NATS servers are checked with. If not set, those of the system",
    ),
    ValueKind::File.key(
        "cluster.tls_cert",
        "certificate (PEM) that this node presents to NATS; requires `tls_key`",
    ),
    ValueKind::File.key(
        "cluster.tls_key",
        "private key (PEM) of that certificate",
    ),
    ValueKind::Switch.or("false").key(
        "cluster.require_shared",
        "if true, this node calls no server until it has the configuration that nodes share (`proxy \
         cluster push`), from NATS or from the copy in its state folder: its rules are there",
    ),
    ValueKind::Command.key(
        "servers.NAME.command",
        "program of a server that uses stdin and stdout. A bare word is looked up on `PATH`, `~/` \
         is the home folder, `./` is the folder of the configuration file",
    ),
    ValueKind::List(&ValueKind::Template).key(
        "servers.NAME.args",
        "arguments of the program, one text each; no shell interprets them",
    ),
    ValueKind::Variables.key(
        "servers.NAME.env",
        "environment variables of the server, besides a minimal environment",
    ),
    ValueKind::List(&ValueKind::Inherited).key(
        "servers.NAME.inherit_env",
        "environment variables that the server inherits from the proxy; `AWS_*` matches all that \
         begin with `AWS_`, `*` the whole environment",
    ),
    ValueKind::Folder.key(
        "servers.NAME.cwd",
        "working folder of the server; `~/` is the home folder, a relative path starts at the \
         folder of the configuration file",
    ),
    ValueKind::List(&ValueKind::Folder).key(
        "servers.NAME.roots",
        "folders sent to the server when it requests the client's roots. If not set, a server \
         with `scope = \"client\"` gets the roots of its client, and any other server gets none",
    ),
    ValueKind::Switch.key(
        "servers.NAME.sandbox.network",
        "`true`: a server with a `sandbox` table may open sockets. Without this key such a server \
         may only read files, and write those in `write`; enforced by Landlock on Linux",
    ),
    ValueKind::List(&ValueKind::Folder).key(
        "servers.NAME.sandbox.write",
        "existing folders and files that the server may write; `/tmp` only if it is listed",
    ),
    ValueKind::Template.key(
        "servers.NAME.image",
        "container image in which `command` runs, by `docker` or else `podman`; the container \
         gets `env` and `inherit_env` and, of the host's folders, those in `sandbox.write`",
    ),
    ValueKind::Url.key(
        "servers.NAME.url",
        "address of a server that speaks streamable HTTP (or the older HTTP+SSE), in place of \
         `command`",
    ),
    ValueKind::Headers.key(
        "servers.NAME.headers",
        "headers sent with every request to the `url`",
    ),
    ValueKind::Choice(&["shared", "caller"]).or("\"shared\"").key(
        "servers.NAME.login",
        "`\"caller\"`: each caller over HTTP logs in to the server for itself, and only its own calls \
         use that login. `\"shared\"`: all use the login of `proxy login`, as clients on this \
         machine always do",
    ),
    ValueKind::Template.key(
        "servers.NAME.oauth.client_id",
        "ID of a client that was registered manually. If not set, `proxy login` registers a \
         client if the authorization server allows it",
    ),
    ValueKind::Template.key(
        "servers.NAME.oauth.client_secret",
        "secret of that client, preferably as `${secret:NAME}`. If not set, the client is public",
    ),
    ValueKind::Template.key(
        "servers.NAME.oauth.private_key",
        "private key of that client, in place of a secret (`private_key_jwt`): a PEM text in PKCS \
         #8, preferably as `${file:PATH}`; P-256, P-384, RSA or Ed25519",
    ),
    ValueKind::Text.key(
        "servers.NAME.oauth.private_key_id",
        "key ID (`kid`) under which the authorization server stores that key",
    ),
    ValueKind::Url.key(
        "servers.NAME.oauth.client_metadata_url",
        "address of a Client ID Metadata Document that describes this client, used if the \
         authorization server supports such documents",
    ),
    ValueKind::List(&ValueKind::Text).key(
        "servers.NAME.oauth.scopes",
        "scopes to request. If not set, those that the server requests",
    ),
    count(1, 65_535, "port numbers").key(
        "servers.NAME.oauth.callback_port",
        "local port to which the browser is redirected. If not set, any free port",
    ),
    ValueKind::Choice(&["127.0.0.1", "localhost"]).or("\"127.0.0.1\"").key(
        "servers.NAME.oauth.callback_host",
        "local host name in that redirect address; many authorization servers compare it as a \
         text",
    ),
    ValueKind::Text.key(
        "servers.NAME.oauth.resource",
        "audience of tokens; `off` if the authorization server rejects the parameter. If not set, \
         the server's metadata decides, else its `url`",
    ),
    ValueKind::Url.key(
        "servers.NAME.oauth.issuer",
        "the only trusted authorization server; the server's own choice is ignored",
    ),
    GRANT.or("\"authorization_code\"").key(
        "servers.NAME.oauth.grant",
        "kind of grant. `\"client_credentials\"`: no login, by the client's own secret or key; \
         `\"jwt_bearer\"`: no login, by an assertion about the machine (workload identity); \
         `\"enterprise_managed\"`: no login, by an assertion of a company's identity provider \
         about its employee; `\"token_exchange\"`: no login, the token of each caller is exchanged \
         for one of the server (RFC 8693), with `login = \"caller\"`",
    ),
    ValueKind::Template.key(
        "servers.NAME.oauth.assertion",
        "for `\"jwt_bearer\"` the JWT of the machine, for `\"enterprise_managed\"` the ID token \
         of the employee; preferably as `${file:PATH}`, which is read again for each token",
    ),
    ValueKind::Url.key(
        "servers.NAME.oauth.idp_issuer",
        "identity provider that issued the ID token",
    ),
    ValueKind::Template.key(
        "servers.NAME.oauth.idp_client_id",
        "client to which the ID token was issued",
    ),
    ValueKind::Template.key(
        "servers.NAME.oauth.idp_client_secret",
        "secret of that client, if it has one",
    ),
    ValueKind::Choice(&["required", "assumed"]).or("\"required\"").key(
        "servers.NAME.oauth.pkce",
        "`\"assumed\"`: use an authorization server even if its metadata does not list PKCE",
    ),
    ValueKind::Choice(&["found", "assumed"]).or("\"found\"").key(
        "servers.NAME.oauth.endpoints",
        "`\"assumed\"`: use `/authorize`, `/token` and `/register` of the server's own address if \
         its authorization server, from before 2025-06, publishes no metadata",
    ),
    ValueKind::Variables.key(
        "servers.NAME.oauth.parameters",
        "additional parameters of the authorization request in the browser",
    ),
    ValueKind::Switch.or("true").variable(
        "servers.NAME.enabled",
        "`false`: ignore the server, but keep its table",
    ),
    ValueKind::Text.key(
        "servers.NAME.description",
        "sentence about the server, for searches, `proxy/list` and `describe_tool`",
    ),
    ValueKind::Category.key(
        "servers.NAME.category",
        "category of the server, by which searches can be filtered. If not set, it is derived \
         from the tools",
    ),
    ValueKind::List(&ValueKind::Tag).key(
        "servers.NAME.tags",
        "additional words that find the server's tools",
    ),
    ValueKind::Text.key(
        "servers.NAME.notes",
        "advice for the model, shown by `describe_tool` with each tool of the server",
    ),
    SECONDS_OF_A_CALL.or("60").variable(
        "servers.NAME.timeout_s",
        "timeout of a call, unless its tool or the call sets another",
    ),
    SECONDS_OF_A_CALL.variable(
        "servers.NAME.timeout_max_s",
        "timeout of a call that reports progress: each report restarts `timeout_s`, up to this \
         limit; at least `timeout_s`. If not set, progress does not extend the timeout",
    ),
    count(1, 3_600, "seconds").or("50").variable(
        "servers.NAME.start_timeout_s",
        "timeout of the server's start; a first `npx` or `uvx` downloads packages",
    ),
    ValueKind::Choice(&["on-call", "eager"]).or("\"on-call\"").variable(
        "servers.NAME.start",
        "time of the server's start: `\"on-call\"`, with the first call; `\"eager\"`, with the \
         program",
    ),
    ValueKind::Choice(&["shared", "client"]).variable(
        "servers.NAME.scope",
        "`\"shared\"`: one process for all clients. `\"client\"`: one process for each client \
         session; it runs in that client's folder unless `cwd` is set, and ends with the session. If not \
         set, one process for all clients, and up to three more for calls that would wait longer than 2 s \
         for another client's call, because the server asks questions",
    ),
    ValueKind::Choice(&["everywhere", "one", "client"]).key(
        "servers.NAME.placement",
        "node of a `[cluster]` that runs the server. `\"everywhere\"`: that of the client; `\"one\"`: one \
         node at a time, which the cluster chooses; `\"client\"`: that of the client, since the server \
         differs between clients. If not set, `one` for a `command`, `everywhere` for a `url`, and \
         `client` for a server that differs between clients",
    ),
    ValueKind::Glob.key(
        "servers.NAME.on",
        "pattern of the nodes that run the server: `mac-mini`, `gpu-*`",
    ),
    count(0, 604_800, "seconds").or("300").variable(
        "servers.NAME.idle_timeout_s",
        "time without a call after which the server is stopped until the next call; 0: never",
    ),
    count(0, 10_000, "calls").or("0").variable(
        "servers.NAME.max_concurrent_calls",
        "limit of concurrent calls; further calls wait, within their own timeouts. 0: no limit",
    ),
    ValueKind::Switch.or("false").variable(
        "servers.NAME.retry_safe_calls",
        "`true`: a call of a tool annotated read-only or idempotent is sent once more if the \
         server dies during the call",
    ),
    TOKENS.variable(
        "servers.NAME.max_tokens",
        "longest result of this server passed to the model. If not set: `results.max_tokens`",
    ),
    ValueKind::Choice(&["warn", "hold", "off"]).variable(
        "servers.NAME.pin",
        "the same as `pin` at the top, for this server. If not set, that value applies",
    ),
    ValueKind::Switch.variable(
        "servers.NAME.redact",
        "overrides `redaction.enabled` for this server",
    ),
    ValueKind::List(&ValueKind::Glob).key(
        "servers.NAME.tools.allow",
        "patterns of the names of tools that are admitted. If not set, all",
    ),
    ValueKind::List(&ValueKind::Glob).key(
        "servers.NAME.tools.deny",
        "patterns of the names of tools that are left out, even if `allow` matches",
    ),
    ValueKind::ArgumentSettings.key(
        "servers.NAME.arguments",
        "arguments of the server's tools that the configuration sets, by their name. `fixed`: every \
         call of a tool with this argument contains the value, and a call that sets it is refused; \
         `hidden`: no call contains it; `default`: sent if a call leaves it out. Signatures and \
         schemas show no fixed and no hidden argument",
    ),
    ValueKind::Text.key(
        "servers.NAME.overlay.TOOL.title",
        "replaces the tool's title, by which it can be described and called too",
    ),
    ValueKind::Text.key(
        "servers.NAME.overlay.TOOL.description",
        "replaces the tool's description",
    ),
    ValueKind::Text.key(
        "servers.NAME.overlay.TOOL.usage",
        "instructions for calls of the tool, shown by `describe_tool` after the description",
    ),
    ValueKind::List(&ValueKind::Tag).key(
        "servers.NAME.overlay.TOOL.tags",
        "additional words that find the tool",
    ),
    ValueKind::Category.key(
        "servers.NAME.overlay.TOOL.category",
        "replaces the server's category",
    ),
    ValueKind::Text.key(
        "servers.NAME.overlay.TOOL.notes",
        "advice for the model, shown by `describe_tool`",
    ),
    ValueKind::Arguments.key(
        "servers.NAME.overlay.TOOL.example",
        "arguments of a working call, shown by `describe_tool`",
    ),
    ValueKind::Version.key(
        "servers.NAME.overlay.TOOL.min_version",
        "oldest version of the server with this tool; if the server reports an older one, hits, \
         descriptions and results say so",
    ),
    ValueKind::Text.key(
        "servers.NAME.overlay.TOOL.deprecated",
        "successor of the tool, such as `use github/list_prs`: the tool is ranked below it, and \
         descriptions and results name it",
    ),
    ValueKind::Switch.or("false").key(
        "servers.NAME.overlay.TOOL.hidden",
        "`true`: leave the tool out of searches; it can still be called by name",
    ),
    ValueKind::ArgumentSettings.key(
        "servers.NAME.overlay.TOOL.arguments",
        "the same as `arguments` of the server, for one tool; these settings win. A fixed value is \
         sent even if the schema of the tool does not have the argument",
    ),
    SECONDS_OF_A_CALL.key(
        "servers.NAME.overlay.TOOL.timeout_s",
        "timeout of a call of the tool, unless the call sets another. If not set, the server's \
         value applies",
    ),
    TOKENS.key(
        "servers.NAME.overlay.TOOL.max_tokens",
        "longest result of the tool passed to the model. If not set, the server's value applies",
    ),
    ValueKind::List(&ValueKind::Template).key(
        "commands.NAME.command",
        "program and its arguments, one text each, without a shell. `{name}` stands for an \
         argument of the call, alone or in a word (`--glob={name}`); `{name?}` drops its word \
         without one; `{name...}` is a list, one word each; a value of `{-name}` may begin with `-`",
    ),
    ValueKind::Text.key(
        "commands.NAME.description",
        "description of the tool `commands/NAME`. If not set, its command line",
    ),
    ValueKind::Text.key(
        "commands.NAME.title",
        "title of the tool, such as `ripgrep` for `rg`",
    ),
    ValueKind::Arguments.key(
        "commands.NAME.args",
        "types of the placeholders: `\"string\"` (the default), `\"integer\"`, `\"number\"`, \
         `\"boolean\"`, or a table with `type`, `description`, `default`, `enum` and other \
         keywords of JSON Schema. For a list it is the type of its elements",
    ),
    ValueKind::Template.key(
        "commands.NAME.stdin",
        "text that the program reads from stdin, such as `{text}`. If not set, stdin is empty",
    ),
    ValueKind::List(&count(0, 255, "exit codes")).key(
        "commands.NAME.ok_codes",
        "exit codes that are no error, such as `[0, 1]` for `grep`. If not set, `[0]`",
    ),
    ValueKind::Switch.key(
        "commands.NAME.read_only",
        "`true`: annotate the tool as read-only, `false`: as not read-only",
    ),
    ValueKind::List(&ValueKind::Tag).key(
        "commands.NAME.tags",
        "additional words that find the tool",
    ),
];
