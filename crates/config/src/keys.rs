//! Every key of the configuration, declared once. The check, the defaults, the variables and
//! `docs/configuration.md` all read this table.

mod key;
mod lookup;
mod unknown;

use key::{count, key};

pub(super) use key::{Count, KeySpec, ValueKind};
pub(super) use lookup::{KeyMatch, child, find, names};
pub(super) use unknown::{nearest, unknown};

const SECONDS_OF_A_CALL: ValueKind = count(1, 86_400, "seconds");
/// A footer with its next call takes half of the least.
const TOKENS: ValueKind = count(200, 1_000_000, "tokens");

pub(super) static KEYS: &[KeySpec] = &[
    key(
        "state_dir",
        ValueKind::StateDir,
        "folder for snapshots, the index and kept results; `~/` is the home folder, a relative \
         path starts at the folder of the configuration file. If not set: \
         `$XDG_STATE_HOME/proxy/STEM-HASH`, one folder per configuration file",
    )
    .variable(),
    key(
        "log",
        ValueKind::Filter,
        "events logged to stderr, as directives of a tracing filter: `warn`, `warn,fleet=debug`",
    )
    .or("\"warn\"")
    .variable(),
    key(
        "policy",
        ValueKind::Choice(&["open", "careful", "read-only"]),
        "decision about calls that match no rule. `\"open\"`: allow all; `\"careful\"`: ask a \
         person before destructive calls; `\"read-only\"`: allow only tools annotated as \
         read-only",
    )
    .or("\"open\"")
    .variable(),
    key(
        "rules",
        ValueKind::Rules,
        "rules that allow, ask about or deny calls; the first that matches decides",
    ),
    key(
        "quotas",
        ValueKind::Quotas,
        "limits of calls, of tokens, and of repetitions of one call",
    ),
    key(
        "approvals.wait_s",
        count(0, 3_600, "seconds"),
        "time for which a call waits for a person's permission, if its client cannot ask for it: the \
         person answers with `proxy review --pending` or on the page. 0: it is refused at once",
    )
    .or("50")
    .variable(),
    key(
        "pin",
        ValueKind::Choice(&["warn", "hold", "off"]),
        "handling of tools that changed since their server was added or they were last reviewed. \
         `\"warn\"`: `proxy review` reports them; `\"hold\"`: they are neither shown nor called \
         until `proxy review` accepts them; `\"off\"`: tools are not compared",
    )
    .or("\"warn\"")
    .variable(),
    key(
        "audit.arguments",
        ValueKind::Choice(&["digest", "full", "none"]),
        "form in which the audit log stores the arguments of a call; in `\"full\"`, secrets are \
         masked",
    )
    .or("\"digest\"")
    .variable(),
    key(
        "audit.keep_mib",
        count(0, 102_400, "MiB"),
        "size limit of the audit log; the oldest calls are removed first. 0: no audit log",
    )
    .or("64")
    .variable(),
    key(
        "stats.enabled",
        ValueKind::Switch,
        "`false`: count no calls. Writes neither the figures of `proxy stats` nor the calls of each \
         tool, and search learns nothing; existing files stay. The audit log has its own switch",
    )
    .or("true")
    .variable(),
    key(
        "traces.endpoint",
        ValueKind::Url,
        "OpenTelemetry collector that receives a span for each call, by OTLP over HTTP as JSON: \
         `http://127.0.0.1:4318`; `/v1/traces` is appended. If not set, no spans are sent",
    ),
    key(
        "traces.headers",
        ValueKind::Headers,
        "headers sent with every request to the collector, preferably with `${secret:NAME}`",
    ),
    key(
        "redaction.enabled",
        ValueKind::Switch,
        "`true`: replace keys of well-known services, private keys, card numbers and your own \
         `patterns` in everything that servers send, by `[redacted: github token]`",
    )
    .or("false")
    .variable(),
    key(
        "redaction.patterns",
        ValueKind::Patterns,
        "your own patterns, regular expressions by the name that replaces them: `staff = \
         'E-\\d{6}'`",
    ),
    key(
        "secrets.store",
        ValueKind::Choice(&["file", "keyring"]),
        "storage of secrets (`proxy secret set`) and logins. `\"file\"`: files that only their \
         owner can read; `\"keyring\"`: the same files, encrypted with a key from the system's \
         keyring. Existing files are encrypted when they next change. `\"keyring\"` requires a \
         build with `--features keyring`",
    )
    .or("\"file\"")
    .variable(),
    key(
        "results.max_tokens",
        TOKENS,
        "longest result passed to the model; a longer result is cut and kept",
    )
    .or("4000")
    .variable(),
    key(
        "results.keep_hours",
        count(1, 8_760, "hours"),
        "time that a cut result is kept",
    )
    .or("24")
    .variable(),
    key(
        "results.keep_mib",
        count(1, 102_400, "MiB"),
        "size limit of kept results; the oldest are removed first",
    )
    .or("256")
    .variable(),
    key(
        "search.learn",
        ValueKind::Switch,
        "rank a tool higher for similar queries once its call succeeded after a search. The state \
         folder keeps embeddings and known words of such queries for each client and project, and no \
         text. `false`: neither collected nor used",
    )
    .or("true")
    .variable(),
    key(
        "search.enrich",
        ValueKind::Text,
        "command that writes example requests for `proxy enrich`: it reads a prompt on stdin and \
         prints lines, as `claude -p` does. Words are split as in a shell, without a shell. If not \
         set, `proxy enrich` only prints its prompts",
    )
    .variable(),
    key(
        "search.semantic",
        ValueKind::Choice(&["encoder", "off"]),
        "how queries are matched by meaning, besides their words. `\"encoder\"`: by a sentence \
         encoder that is part of the program (about 15 MB of memory while in use, 4 ms per tool \
         at `reindex`, up to 100,000 tools); `\"off\"`: not at all",
    )
    .or("\"encoder\"")
    .variable(),
    key(
        "reindex.parallel",
        count(1, 64, "servers"),
        "number of servers started and queried at the same time",
    )
    .or("4")
    .variable(),
    key(
        "http.listen",
        ValueKind::Listen,
        "address that serves MCP over streamable HTTP, at `/mcp`: `127.0.0.1:7331`, `[::1]:7331`, \
         `localhost:7331` or a port of the loopback interface. Any other address requires a \
         token. If not set, HTTP is not served; `proxy serve --http ADDR` takes precedence",
    )
    .variable(),
    key(
        "http.tokens",
        ValueKind::Tokens,
        "bearer tokens that admit clients, each under a name of your choice; at least 16 \
         characters",
    ),
    key(
        "http.token_files",
        ValueKind::TokenFiles,
        "bearer tokens, each read from a file when the program starts",
    ),
    key(
        "http.oauth.issuer",
        ValueKind::Url,
        "authorization server whose tokens (JWT) admit clients, besides `tokens`; its keys are \
         fetched from it, and fetched again when they change",
    ),
    key(
        "http.oauth.audience",
        ValueKind::Url,
        "public address of this proxy, `https://tools.example.com/mcp`; tokens must be issued for \
         it",
    ),
    key(
        "http.oauth.scopes",
        ValueKind::List(&ValueKind::Text),
        "scopes of which a token must have at least one; the first that it has selects the \
         `[clients.SCOPE]` whose rules apply to its client. If not set, any token of the issuer \
         for this audience is accepted",
    ),
    key(
        "http.oauth.introspection_client_id",
        ValueKind::Template,
        "client ID for introspection of opaque tokens at the issuer (RFC 7662); a response is \
         cached for a minute. If not set, opaque tokens are rejected",
    ),
    key(
        "http.oauth.introspection_client_secret",
        ValueKind::Template,
        "secret of that client, preferably as `${secret:NAME}`",
    ),
    key(
        "http.public_url",
        ValueKind::Url,
        "address at which browsers reach this proxy, `https://tools.example.com`: callers log in to \
         servers there (`servers.NAME.login`). If not set, that of `http.oauth.audience`, else the \
         address of the request",
    ),
    key(
        "http.allowed_hosts",
        ValueKind::List(&ValueKind::Host),
        "accepted values of the `Host` header, besides `localhost` and the listening address",
    ),
    key(
        "http.allowed_origins",
        ValueKind::List(&ValueKind::Origin),
        "accepted values of the `Origin` header (web pages that may send requests), besides the \
         listening address",
    ),
    key(
        "http.tls_cert",
        ValueKind::File,
        "certificate chain (PEM) for TLS; requires `tls_key`. If not set, TLS is off",
    ),
    key(
        "http.tls_key",
        ValueKind::File,
        "private key (PEM) of the certificate",
    ),
    key(
        "http.sessions",
        ValueKind::Switch,
        "`false`: clients get no session; each request is independent, and log levels and \
         cancellations do not persist",
    )
    .or("true")
    .variable(),
    key(
        "http.metrics",
        ValueKind::Switch,
        "`true`: serve metrics since the start of the process at `/metrics`, in the format of \
         Prometheus",
    )
    .or("false")
    .variable(),
    key(
        "http.max_body_kib",
        count(1, 1_048_576, "KiB"),
        "size limit of one message",
    )
    .or("4096")
    .variable(),
    key(
        "http.max_header_kib",
        count(8, 1_024, "KiB"),
        "size limit of the headers of one request",
    )
    .or("32")
    .variable(),
    key(
        "http.max_connections",
        count(1, 65_536, "connections"),
        "limit of open connections; one remote address may have half of them. A further \
         connection closes the one that has been idle longest",
    )
    .or("512")
    .variable(),
    key(
        "http.max_sessions",
        count(1, 65_536, "sessions"),
        "limit of sessions; one token, or one remote address if no token is required, may have \
         half of them. A further session ends the oldest one that was not used after \
         `initialize`; if there is none, it is refused",
    )
    .or("256")
    .variable(),
    key(
        "http.max_requests",
        count(1, 65_536, "requests"),
        "limit of requests in flight; one session, token or address (as for sessions) may have \
         half of them. A further request is refused. The same number of messages may be arriving; \
         a further one ends the slowest",
    )
    .or("256")
    .variable(),
    key(
        "http.session_idle_s",
        count(1, 604_800, "seconds"),
        "time after which an idle session releases its slot, and its processes if `scope` is \
         `\"client\"`. If its client returns, the session resumes",
    )
    .or("1800")
    .variable(),
    key(
        "http.receive_timeout_s",
        count(1, 3_600, "seconds"),
        "timeout for receiving the headers of a request, and then its body; a connection without \
         a request is closed after the same time",
    )
    .or("30")
    .variable(),
    key(
        "http.stall_timeout_s",
        count(1, 3_600, "seconds"),
        "time after which a client that does not read its response is disconnected",
    )
    .or("30")
    .variable(),
    key(
        "clients.NAME.max_tokens",
        TOKENS,
        "longest result passed to this client: replaces `results.max_tokens`, and limits the \
         values of servers and tools. Only a call can request more",
    ),
    key(
        "clients.NAME.allow",
        ValueKind::List(&ValueKind::Glob),
        "patterns of servers and categories whose tools this client sees. If not set, all",
    ),
    key(
        "clients.NAME.deny",
        ValueKind::List(&ValueKind::Glob),
        "patterns of servers and categories whose tools this client does not see",
    ),
    key(
        "clients.NAME.resources",
        ValueKind::Choice(&["auto", "off"]),
        "`\"auto\"`: announce resources if a server has any; some clients then give their model \
         tools for them. `\"off\"`: neither announce nor list them",
    )
    .or("\"auto\""),
    key(
        "clients.NAME.catalog",
        ValueKind::Choice(&["none", "servers", "names", "signatures"]),
        "what the instructions for this client name: no server, the servers, or, if it sees at most \
         10 tools, each tool by its name (120 tokens) or its signature (450 tokens). A longer list \
         is replaced by the next shorter one",
    )
    .or("\"servers\""),
    key(
        "profiles.NAME.allow",
        ValueKind::List(&ValueKind::Glob),
        "patterns of servers and categories whose tools a session with this profile sees. If not set, \
         all that its client sees",
    ),
    key(
        "profiles.NAME.deny",
        ValueKind::List(&ValueKind::Glob),
        "patterns of servers and categories whose tools it does not see",
    ),
    key(
        "profiles.NAME.max_tokens",
        TOKENS,
        "longest result passed to it, if that of its client is not shorter",
    ),
    key(
        "profiles.NAME.folders",
        ValueKind::List(&ValueKind::Text),
        "folders: the profile applies to each client that works in one of them, or below",
    ),
    key(
        "profiles.NAME.callers",
        ValueKind::List(&ValueKind::Glob),
        "patterns of `token NAME` and `oauth SUBJECT`: the profile applies to each client over HTTP \
         with such a credential",
    ),
    key(
        "daemon.linger_s",
        count(0, 604_800, "seconds"),
        "time that the daemon, with its running servers, keeps running after the last client \
         disconnects; 0: forever. A node of a `[cluster]` stays",
    )
    .or("600")
    .variable(),
    key(
        "cluster.nats",
        ValueKind::List(&ValueKind::Template),
        "addresses of NATS servers, 2.10.23 or newer: `tls://nats.example.com:4222`; user and password \
         may stand before the host, preferably as `${secret:NAME}`. With this table, the process is a \
         node of a cluster",
    ),
    key(
        "cluster.name",
        ValueKind::ClusterName,
        "name of the cluster; several clusters may share NATS servers",
    )
    .or("\"home\""),
    key(
        "cluster.node",
        ValueKind::ClusterName,
        "name of this node, unique in the cluster. If not set, the name of the host",
    )
    .variable(),
    key(
        "cluster.key",
        ValueKind::Template,
        "text of at least 32 characters that all nodes have, preferably as `${secret:NAME}`: it \
         encrypts and signs everything that nodes share. NATS never gets it",
    ),
    key(
        "cluster.credentials",
        ValueKind::Template,
        "content of a NATS credentials file (`.creds`), as `${file:PATH}`",
    ),
    key(
        "cluster.tls_ca",
        ValueKind::File,
        "certificates (PEM) that NATS servers are checked with. If not set, those of the system",
    ),
    key(
        "cluster.tls_cert",
        ValueKind::File,
        "certificate (PEM) that this node presents to NATS; requires `tls_key`",
    ),
    key(
        "cluster.tls_key",
        ValueKind::File,
        "private key (PEM) of that certificate",
    ),
    key(
        "cluster.require_shared",
        ValueKind::Switch,
        "if true, this node calls no server until it has the configuration that nodes share (`proxy \
         cluster push`), from NATS or from the copy in its state folder: its rules are there",
    )
    .or("false"),
    key(
        "servers.NAME.command",
        ValueKind::Command,
        "program of a server that uses stdin and stdout. A bare word is looked up on `PATH`, `~/` \
         is the home folder, `./` is the folder of the configuration file",
    ),
    key(
        "servers.NAME.args",
        ValueKind::List(&ValueKind::Template),
        "arguments of the program, one text each; no shell interprets them",
    ),
    key(
        "servers.NAME.env",
        ValueKind::Variables,
        "environment variables of the server, besides a minimal environment",
    ),
    key(
        "servers.NAME.inherit_env",
        ValueKind::List(&ValueKind::Inherited),
        "environment variables that the server inherits from the proxy; `AWS_*` matches all that \
         begin with `AWS_`, `*` the whole environment",
    ),
    key(
        "servers.NAME.cwd",
        ValueKind::Folder,
        "working folder of the server; `~/` is the home folder, a relative path starts at the \
         folder of the configuration file",
    ),
    key(
        "servers.NAME.roots",
        ValueKind::List(&ValueKind::Folder),
        "folders sent to the server when it requests the client's roots. If not set, a server \
         with `scope = \"client\"` gets the roots of its client, and any other server gets none",
    ),
    key(
        "servers.NAME.sandbox.network",
        ValueKind::Switch,
        "`true`: a server with a `sandbox` table may open sockets. Without this key such a server \
         may only read files, and write those in `write`; enforced by Landlock on Linux",
    ),
    key(
        "servers.NAME.sandbox.write",
        ValueKind::List(&ValueKind::Folder),
        "existing folders and files that the server may write; `/tmp` only if it is listed",
    ),
    key(
        "servers.NAME.image",
        ValueKind::Template,
        "container image in which `command` runs, by `docker` or else `podman`; the container \
         gets `env` and `inherit_env` and, of the host's folders, those in `sandbox.write`",
    ),
    key(
        "servers.NAME.url",
        ValueKind::Url,
        "address of a server that speaks streamable HTTP (or the older HTTP+SSE), in place of \
         `command`",
    ),
    key(
        "servers.NAME.headers",
        ValueKind::Headers,
        "headers sent with every request to the `url`",
    ),
    key(
        "servers.NAME.login",
        ValueKind::Choice(&["shared", "caller"]),
        "`\"caller\"`: each caller over HTTP logs in to the server for itself, and only its own calls \
         use that login. `\"shared\"`: all use the login of `proxy login`, as clients on this \
         machine always do",
    )
    .or("\"shared\""),
    key(
        "servers.NAME.max_callers",
        count(1, 10_000, "callers"),
        "most callers over HTTP with a process or connection of their own at one time, for a server \
         with `login = \"caller\"` or `${caller:...}`; the one that was not used for longest ends \
         for another. If not set, 100 for a `command` and 1000 for a `url`",
    ),
    key(
        "servers.NAME.oauth.client_id",
        ValueKind::Template,
        "ID of a client that was registered manually. If not set, `proxy login` registers a \
         client if the authorization server allows it",
    ),
    key(
        "servers.NAME.oauth.client_secret",
        ValueKind::Template,
        "secret of that client, preferably as `${secret:NAME}`. If not set, the client is public",
    ),
    key(
        "servers.NAME.oauth.private_key",
        ValueKind::Template,
        "private key of that client, in place of a secret (`private_key_jwt`): a PEM text in PKCS \
         #8, preferably as `${file:PATH}`; P-256, P-384, RSA or Ed25519",
    ),
    key(
        "servers.NAME.oauth.private_key_id",
        ValueKind::Text,
        "key ID (`kid`) under which the authorization server stores that key",
    ),
    key(
        "servers.NAME.oauth.client_metadata_url",
        ValueKind::Url,
        "address of a Client ID Metadata Document that describes this client, used if the \
         authorization server supports such documents",
    ),
    key(
        "servers.NAME.oauth.scopes",
        ValueKind::List(&ValueKind::Text),
        "scopes to request. If not set, those that the server requests",
    ),
    key(
        "servers.NAME.oauth.callback_port",
        count(1, 65_535, "port numbers"),
        "local port to which the browser is redirected. If not set, any free port",
    ),
    key(
        "servers.NAME.oauth.callback_host",
        ValueKind::Choice(&["127.0.0.1", "localhost"]),
        "local host name in that redirect address; many authorization servers compare it as a \
         text",
    )
    .or("\"127.0.0.1\""),
    key(
        "servers.NAME.oauth.resource",
        ValueKind::Text,
        "audience of tokens; `off` if the authorization server rejects the parameter. If not set, \
         the server's metadata decides, else its `url`",
    ),
    key(
        "servers.NAME.oauth.issuer",
        ValueKind::Url,
        "the only trusted authorization server; the server's own choice is ignored",
    ),
    key(
        "servers.NAME.oauth.grant",
        ValueKind::Choice(&[
            "authorization_code",
            "client_credentials",
            "jwt_bearer",
            "enterprise_managed",
            "token_exchange",
        ]),
        "kind of grant. `\"client_credentials\"`: no login, by the client's own secret or key; \
         `\"jwt_bearer\"`: no login, by an assertion about the machine (workload identity); \
         `\"enterprise_managed\"`: no login, by an assertion of a company's identity provider \
         about its employee; `\"token_exchange\"`: no login, the token of each caller is exchanged \
         for one of the server (RFC 8693), with `login = \"caller\"`",
    )
    .or("\"authorization_code\""),
    key(
        "servers.NAME.oauth.assertion",
        ValueKind::Template,
        "for `\"jwt_bearer\"` the JWT of the machine, for `\"enterprise_managed\"` the ID token \
         of the employee; preferably as `${file:PATH}`, which is read again for each token",
    ),
    key(
        "servers.NAME.oauth.idp_issuer",
        ValueKind::Url,
        "identity provider that issued the ID token",
    ),
    key(
        "servers.NAME.oauth.idp_client_id",
        ValueKind::Template,
        "client to which the ID token was issued",
    ),
    key(
        "servers.NAME.oauth.idp_client_secret",
        ValueKind::Template,
        "secret of that client, if it has one",
    ),
    key(
        "servers.NAME.oauth.pkce",
        ValueKind::Choice(&["required", "assumed"]),
        "`\"assumed\"`: use an authorization server even if its metadata does not list PKCE",
    )
    .or("\"required\""),
    key(
        "servers.NAME.oauth.endpoints",
        ValueKind::Choice(&["found", "assumed"]),
        "`\"assumed\"`: use `/authorize`, `/token` and `/register` of the server's own address if \
         its authorization server, from before 2025-06, publishes no metadata",
    )
    .or("\"found\""),
    key(
        "servers.NAME.oauth.parameters",
        ValueKind::Variables,
        "additional parameters of the authorization request in the browser",
    ),
    key(
        "servers.NAME.enabled",
        ValueKind::Switch,
        "`false`: ignore the server, but keep its table",
    )
    .or("true")
    .variable(),
    key(
        "servers.NAME.description",
        ValueKind::Text,
        "sentence about the server, for searches, `proxy/list` and `describe_tool`",
    ),
    key(
        "servers.NAME.category",
        ValueKind::Category,
        "category of the server, by which searches can be filtered. If not set, it is derived \
         from the tools",
    ),
    key(
        "servers.NAME.tags",
        ValueKind::List(&ValueKind::Tag),
        "additional words that find the server's tools",
    ),
    key(
        "servers.NAME.notes",
        ValueKind::Text,
        "advice for the model, shown by `describe_tool` with each tool of the server",
    ),
    key(
        "servers.NAME.timeout_s",
        SECONDS_OF_A_CALL,
        "timeout of a call, unless its tool or the call sets another",
    )
    .or("60")
    .variable(),
    key(
        "servers.NAME.timeout_max_s",
        SECONDS_OF_A_CALL,
        "timeout of a call that reports progress: each report restarts `timeout_s`, up to this \
         limit; at least `timeout_s`. If not set, progress does not extend the timeout",
    )
    .variable(),
    key(
        "servers.NAME.start_timeout_s",
        count(1, 3_600, "seconds"),
        "timeout of the server's start; a first `npx` or `uvx` downloads packages",
    )
    .or("50")
    .variable(),
    key(
        "servers.NAME.start",
        ValueKind::Choice(&["on-call", "eager"]),
        "time of the server's start: `\"on-call\"`, with the first call; `\"eager\"`, with the \
         program",
    )
    .or("\"on-call\"")
    .variable(),
    key(
        "servers.NAME.scope",
        ValueKind::Choice(&["shared", "client"]),
        "`\"shared\"`: one process for all clients. `\"client\"`: one process for each client \
         session; it runs in that client's folder unless `cwd` is set, and ends with the session",
    )
    .or("\"shared\"")
    .variable(),
    key(
        "servers.NAME.placement",
        ValueKind::Choice(&["everywhere", "one", "client"]),
        "node of a `[cluster]` that runs the server. `\"everywhere\"`: that of the client; `\"one\"`: one \
         node at a time, which the cluster chooses; `\"client\"`: that of the client, since the server \
         differs between clients. If not set, `one` for a `command`, `everywhere` for a `url`, and \
         `client` for a server that differs between clients",
    ),
    key(
        "servers.NAME.on",
        ValueKind::Glob,
        "pattern of the nodes that run the server: `mac-mini`, `gpu-*`",
    ),
    key(
        "servers.NAME.idle_timeout_s",
        count(0, 604_800, "seconds"),
        "time without a call after which the server is stopped until the next call; 0: never",
    )
    .or("300")
    .variable(),
    key(
        "servers.NAME.max_concurrent_calls",
        count(0, 10_000, "calls"),
        "limit of concurrent calls; further calls wait, within their own timeouts. 0: no limit",
    )
    .or("0")
    .variable(),
    key(
        "servers.NAME.retry_safe_calls",
        ValueKind::Switch,
        "`true`: a call of a tool annotated read-only or idempotent is sent once more if the \
         server dies during the call",
    )
    .or("false")
    .variable(),
    key(
        "servers.NAME.max_tokens",
        TOKENS,
        "longest result of this server passed to the model. If not set: `results.max_tokens`",
    )
    .variable(),
    key(
        "servers.NAME.pin",
        ValueKind::Choice(&["warn", "hold", "off"]),
        "the same as `pin` at the top, for this server. If not set, that value applies",
    )
    .variable(),
    key(
        "servers.NAME.redact",
        ValueKind::Switch,
        "overrides `redaction.enabled` for this server",
    )
    .variable(),
    key(
        "servers.NAME.tools.allow",
        ValueKind::List(&ValueKind::Glob),
        "patterns of the names of tools that are admitted. If not set, all",
    ),
    key(
        "servers.NAME.tools.deny",
        ValueKind::List(&ValueKind::Glob),
        "patterns of the names of tools that are left out, even if `allow` matches",
    ),
    key(
        "servers.NAME.arguments",
        ValueKind::ArgumentSettings,
        "arguments of the server's tools that the configuration sets, by their name. `fixed`: every \
         call of a tool with this argument contains the value, and a call that sets it is refused; \
         `hidden`: no call contains it; `default`: sent if a call leaves it out. Signatures and \
         schemas show no fixed and no hidden argument",
    ),
    key(
        "servers.NAME.overlay.TOOL.title",
        ValueKind::Text,
        "replaces the tool's title, by which it can be described and called too",
    ),
    key(
        "servers.NAME.overlay.TOOL.description",
        ValueKind::Text,
        "replaces the tool's description",
    ),
    key(
        "servers.NAME.overlay.TOOL.usage",
        ValueKind::Text,
        "instructions for calls of the tool, shown by `describe_tool` after the description",
    ),
    key(
        "servers.NAME.overlay.TOOL.tags",
        ValueKind::List(&ValueKind::Tag),
        "additional words that find the tool",
    ),
    key(
        "servers.NAME.overlay.TOOL.category",
        ValueKind::Category,
        "replaces the server's category",
    ),
    key(
        "servers.NAME.overlay.TOOL.notes",
        ValueKind::Text,
        "advice for the model, shown by `describe_tool`",
    ),
    key(
        "servers.NAME.overlay.TOOL.example",
        ValueKind::Arguments,
        "arguments of a working call, shown by `describe_tool`",
    ),
    key(
        "servers.NAME.overlay.TOOL.min_version",
        ValueKind::Version,
        "oldest version of the server with this tool; if the server reports an older one, hits, \
         descriptions and results say so",
    ),
    key(
        "servers.NAME.overlay.TOOL.deprecated",
        ValueKind::Text,
        "successor of the tool, such as `use github/list_prs`: the tool is ranked below it, and \
         descriptions and results name it",
    ),
    key(
        "servers.NAME.overlay.TOOL.hidden",
        ValueKind::Switch,
        "`true`: leave the tool out of searches; it can still be called by name",
    )
    .or("false"),
    key(
        "servers.NAME.overlay.TOOL.arguments",
        ValueKind::ArgumentSettings,
        "the same as `arguments` of the server, for one tool; these settings win. A fixed value is \
         sent even if the schema of the tool does not have the argument",
    ),
    key(
        "servers.NAME.overlay.TOOL.timeout_s",
        SECONDS_OF_A_CALL,
        "timeout of a call of the tool, unless the call sets another. If not set, the server's \
         value applies",
    ),
    key(
        "servers.NAME.overlay.TOOL.max_tokens",
        TOKENS,
        "longest result of the tool passed to the model. If not set, the server's value applies",
    ),
    key(
        "commands.NAME.command",
        ValueKind::List(&ValueKind::Template),
        "program and its arguments, one text each, without a shell. `{name}` stands for an \
         argument of the call, alone or in a word (`--glob={name}`); `{name?}` drops its word \
         without one; `{name...}` is a list, one word each; a value of `{-name}` may begin with `-`",
    ),
    key(
        "commands.NAME.description",
        ValueKind::Text,
        "description of the tool `commands/NAME`. If not set, its command line",
    ),
    key(
        "commands.NAME.title",
        ValueKind::Text,
        "title of the tool, such as `ripgrep` for `rg`",
    ),
    key(
        "commands.NAME.args",
        ValueKind::Arguments,
        "types of the placeholders: `\"string\"` (the default), `\"integer\"`, `\"number\"`, \
         `\"boolean\"`, or a table with `type`, `description`, `default`, `enum` and other \
         keywords of JSON Schema. For a list it is the type of its elements",
    ),
    key(
        "commands.NAME.stdin",
        ValueKind::Template,
        "text that the program reads from stdin, such as `{text}`. If not set, stdin is empty",
    ),
    key(
        "commands.NAME.ok_codes",
        ValueKind::List(&count(0, 255, "exit codes")),
        "exit codes that are no error, such as `[0, 1]` for `grep`. If not set, `[0]`",
    ),
    key(
        "commands.NAME.read_only",
        ValueKind::Switch,
        "`true`: annotate the tool as read-only, `false`: as not read-only",
    ),
    key(
        "commands.NAME.tags",
        ValueKind::List(&ValueKind::Tag),
        "additional words that find the tool",
    ),
];
