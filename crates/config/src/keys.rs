//! Every key of the configuration, declared once. The check, the defaults, the variables and
//! `docs/configuration.md` all read this table.

mod key;
mod lookup;
mod unknown;

use key::{count, key};

pub(super) use key::{Count, Key, Kind};
pub(super) use lookup::{Found, child, find, names};
pub(super) use unknown::{nearest, unknown};

const SECONDS_OF_A_CALL: Kind = count(1, 86_400, "seconds");
/// A footer with its next call takes half of the least.
const TOKENS: Kind = count(200, 1_000_000, "tokens");

pub(super) static KEYS: &[Key] = &[
    key(
        "state_dir",
        Kind::StateDir,
        "where snapshots, the index and kept results lie; `~/` is the home folder, a relative \
         path starts at the folder of the file. Left out: \
         `$XDG_STATE_HOME/proxy/STEM-HASH`, one folder a configuration file",
    )
    .variable(),
    key(
        "log",
        Kind::Filter,
        "what is logged to stderr, as directives of a tracing filter: `warn`, \
         `warn,fleet=debug`",
    )
    .or("\"warn\"")
    .variable(),
    key(
        "policy",
        Kind::Choice(&["open", "careful", "read-only"]),
        "which calls are made where no rule says so: all; a person is asked before what is \
         destructive; only what says that it changes nothing",
    )
    .or("\"open\"")
    .variable(),
    key(
        "rules",
        Kind::Rules,
        "which calls are made, asked about or refused; the first that fits decides",
    ),
    key(
        "pin",
        Kind::Choice(&["warn", "hold", "off"]),
        "tools that are not as they were when their server was added or they were reviewed: `proxy \
         review` tells of them; they are neither shown nor called until it accepted them; nothing is \
         compared",
    )
    .or("\"warn\"")
    .variable(),
    key(
        "audit.arguments",
        Kind::Choice(&["digest", "full", "none"]),
        "what the audit log holds of a call's arguments; of `\"full\"` secrets are masked",
    )
    .or("\"digest\"")
    .variable(),
    key(
        "audit.keep_mib",
        count(0, 102_400, "MiB"),
        "how much room the audit log may take; the oldest calls go first. 0: there is none",
    )
    .or("64")
    .variable(),
    key(
        "traces.endpoint",
        Kind::Url,
        "a collector of OpenTelemetry to which a span of each call is sent by OTLP over HTTP, as JSON: \
         `http://127.0.0.1:4318`; `/v1/traces` is added. Left out: nowhere",
    ),
    key(
        "traces.headers",
        Kind::Headers,
        "headers sent with every request to the collector, best with `${secret:NAME}`",
    ),
    key(
        "secrets.store",
        Kind::Choice(&["file", "keyring"]),
        "how secrets (`proxy secret set`) and logins are kept: in files that nobody else may read, or \
         in the same files sealed with a key that the system's keyring has. What is there already is \
         sealed when it changes next. Only in a program that was built with `--features keyring`",
    )
    .or("\"file\"")
    .variable(),
    key(
        "results.max_tokens",
        TOKENS,
        "how much of a result goes to the model at once; what is cut is kept",
    )
    .or("4000")
    .variable(),
    key(
        "results.keep_hours",
        count(1, 8_760, "hours"),
        "how long a result that was cut is kept",
    )
    .or("24")
    .variable(),
    key(
        "results.keep_mib",
        count(1, 102_400, "MiB"),
        "how much room kept results may take; the oldest go first",
    )
    .or("256")
    .variable(),
    key(
        "search.learn",
        Kind::Switch,
        "calls that succeed after a search lift their tool for like requests, failures lower it; \
         kept in the state folder, for each client and project. `false`: neither kept nor used",
    )
    .or("true")
    .variable(),
    key(
        "search.semantic",
        Kind::Choice(&["encoder", "off"]),
        "how requests are understood beside their words: by a sentence encoder that is part of \
         the program (some 15 MB while it is used, 4 ms a tool at `reindex`, up to 100,000 tools), \
         or not at all",
    )
    .or("\"encoder\"")
    .variable(),
    key(
        "reindex.parallel",
        count(1, 64, "servers"),
        "how many servers are started and asked at one time",
    )
    .or("4")
    .variable(),
    key(
        "http.listen",
        Kind::Listen,
        "where MCP is served over streamable HTTP, at `/mcp`: `127.0.0.1:7331`, `[::1]:7331`, \
         `localhost:7331` or a port of this machine alone. Any other address needs a token. Left \
         out: nowhere; `proxy serve --http ADDR` goes before it",
    )
    .variable(),
    key(
        "http.tokens",
        Kind::Tokens,
        "bearer tokens that let a client in, each by a name of your choice; at least 16 characters",
    ),
    key(
        "http.token_files",
        Kind::TokenFiles,
        "the same, each read from a file when the program starts",
    ),
    key(
        "http.oauth.issuer",
        Kind::Url,
        "an authorization server whose tokens (JWT) let clients in, besides `tokens`; its keys are \
         read from it, and read again when they change",
    ),
    key(
        "http.oauth.audience",
        Kind::Url,
        "our own public address, `https://tools.example.com/mcp`: a token must be for it",
    ),
    key(
        "http.oauth.scopes",
        Kind::List(&Kind::Text),
        "a token needs one of these; the first that it has names the `[clients.SCOPE]` whose rules \
         hold for its client. Left out: any token of the issuer for our address",
    ),
    key(
        "http.oauth.introspection_client_id",
        Kind::Template,
        "for tokens that are no JWT: the client by which the issuer is asked what one is worth (RFC \
         7662); an answer holds for a minute. Left out: such tokens are not taken",
    ),
    key(
        "http.oauth.introspection_client_secret",
        Kind::Template,
        "its secret, best as `${secret:NAME}`",
    ),
    key(
        "http.allowed_hosts",
        Kind::List(&Kind::Host),
        "names by which clients may call this machine, as their `Host` header has them, besides \
         `localhost` and the address itself",
    ),
    key(
        "http.allowed_origins",
        Kind::List(&Kind::Origin),
        "web pages that may call, as their `Origin` header has them, besides our own address",
    ),
    key(
        "http.tls_cert",
        Kind::File,
        "the certificate chain (PEM) for TLS; goes with `tls_key`. Left out: no TLS",
    ),
    key(
        "http.tls_key",
        Kind::File,
        "the private key (PEM) of that certificate",
    ),
    key(
        "http.sessions",
        Kind::Switch,
        "`false` gives no client a session: each request stands alone, and log levels and \
         cancellations do not last",
    )
    .or("true")
    .variable(),
    key(
        "http.metrics",
        Kind::Switch,
        "`true`: figures since the start of the process at `/metrics`, as Prometheus reads them",
    )
    .or("false")
    .variable(),
    key(
        "http.max_body_kib",
        count(1, 1_048_576, "KiB"),
        "how large one message may be",
    )
    .or("4096")
    .variable(),
    key(
        "http.max_header_kib",
        count(8, 1_024, "KiB"),
        "how large the head of one request may be",
    )
    .or("32")
    .variable(),
    key(
        "http.max_connections",
        count(1, 65_536, "connections"),
        "how many may be open at one time, half of them from one address other than this machine's. \
         For a further one that is closed which has waited longest for a request",
    )
    .or("512")
    .variable(),
    key(
        "http.max_sessions",
        count(1, 65_536, "sessions"),
        "how many there may be at one time, half of them of one token, or where none is asked for of \
         one address other than this machine's. For a further one the oldest is ended that was \
         not used after `initialize`; where there is none, it is refused",
    )
    .or("256")
    .variable(),
    key(
        "http.max_requests",
        count(1, 65_536, "requests"),
        "how many may be in flight at one time, half of them of one session, token or address \
         (as for sessions); a further one is refused. As many messages may be arriving; for a \
         further one the slowest is given up",
    )
    .or("256")
    .variable(),
    key(
        "http.session_idle_s",
        count(1, 604_800, "seconds"),
        "a session that nobody used for so long gives back its place, and its processes where `scope` \
         is `\"client\"`. If its client comes back it is taken up again",
    )
    .or("1800")
    .variable(),
    key(
        "http.receive_timeout_s",
        count(1, 3_600, "seconds"),
        "how long the head of a request may take to arrive, then its body; a connection without a \
         request is closed after the same time",
    )
    .or("30")
    .variable(),
    key(
        "http.stall_timeout_s",
        count(1, 3_600, "seconds"),
        "a client that takes nothing of its answer for so long is disconnected",
    )
    .or("30")
    .variable(),
    key(
        "clients.NAME.max_tokens",
        TOKENS,
        "how much of a result goes to this client at once: in place of `results.max_tokens`, and \
         the most whatever a server or tool says. Only a call can ask for more",
    ),
    key(
        "clients.NAME.allow",
        Kind::List(&Kind::Glob),
        "it sees only tools of servers or categories whose name fits one of these. Left out: all",
    ),
    key(
        "clients.NAME.deny",
        Kind::List(&Kind::Glob),
        "it sees no tools of servers or categories whose name fits one of these",
    ),
    key(
        "clients.NAME.resources",
        Kind::Choice(&["auto", "off"]),
        "`\"auto\"`: resources are announced where a server has them; some clients then give their \
         model tools of their own for them. `\"off\"`: they are neither announced nor listed",
    )
    .or("\"auto\""),
    key(
        "daemon.linger_s",
        count(0, 604_800, "seconds"),
        "how long the daemon stays after the last client has gone, with the servers that still \
         run; 0: for ever",
    )
    .or("600")
    .variable(),
    key(
        "servers.NAME.command",
        Kind::Command,
        "the program of a server that speaks over stdin and stdout. A bare word is looked up \
         on `PATH`, `~/` is the home folder, `./` is the folder of the file",
    ),
    key(
        "servers.NAME.args",
        Kind::List(&Kind::Template),
        "its arguments, one text each; no shell reads them",
    ),
    key(
        "servers.NAME.env",
        Kind::Variables,
        "variables it gets besides a minimal environment",
    ),
    key(
        "servers.NAME.inherit_env",
        Kind::List(&Kind::Inherited),
        "variables of our own environment that it gets as they are; `AWS_*` stands for all that \
         begin with `AWS_`, `*` for the whole environment",
    ),
    key(
        "servers.NAME.cwd",
        Kind::Folder,
        "the folder it runs in; `~/` is the home folder, a relative path starts at the folder \
         of the file",
    ),
    key(
        "servers.NAME.roots",
        Kind::List(&Kind::Folder),
        "the folders that it is told when it asks for the client's roots; without this key a server \
         with `scope = \"client\"` is told its own client's, and any other that there are none",
    ),
    key(
        "servers.NAME.sandbox.network",
        Kind::Switch,
        "a server with a table `sandbox` only reads files and writes nowhere but where this table says \
         so, by Landlock on Linux; `true`: it opens sockets, too",
    ),
    key(
        "servers.NAME.sandbox.write",
        Kind::List(&Kind::Folder),
        "folders and files that it writes in, `/tmp` among them only if it is named; they must be there",
    ),
    key(
        "servers.NAME.image",
        Kind::Template,
        "`command` runs in a container of this image, by `docker` or else `podman`; it gets `env` and \
         `inherit_env` and, of the folders of this machine, those in `sandbox.write`",
    ),
    key(
        "servers.NAME.url",
        Kind::Url,
        "the address of a server that speaks streamable HTTP (or the older HTTP+SSE), in place of `command`",
    ),
    key(
        "servers.NAME.headers",
        Kind::Headers,
        "headers sent with every request to the `url`",
    ),
    key(
        "servers.NAME.oauth.client_id",
        Kind::Template,
        "the client that was registered by hand; left out, `proxy login` registers one where it can",
    ),
    key(
        "servers.NAME.oauth.client_secret",
        Kind::Template,
        "its secret, best as `${secret:NAME}`; left out: a public client",
    ),
    key(
        "servers.NAME.oauth.private_key",
        Kind::Template,
        "in place of a secret: the key by which that client shows who it is (`private_key_jwt`), as \
         a PEM text in PKCS #8, best as `${file:PATH}`; of P-256, P-384, RSA or Ed25519",
    ),
    key(
        "servers.NAME.oauth.private_key_id",
        Kind::Text,
        "the name by which the authorization server knows that key (`kid`)",
    ),
    key(
        "servers.NAME.oauth.client_metadata_url",
        Kind::Url,
        "the address of a Client ID Metadata Document that describes this client, used where the \
         authorization server takes such",
    ),
    key(
        "servers.NAME.oauth.scopes",
        Kind::List(&Kind::Text),
        "scopes to ask for. Left out: those that the server asks for",
    ),
    key(
        "servers.NAME.oauth.callback_port",
        count(1, 65_535, "port numbers"),
        "the port of this machine to which the browser comes back. Left out: any that is free",
    ),
    key(
        "servers.NAME.oauth.callback_host",
        Kind::Choice(&["127.0.0.1", "localhost"]),
        "how that address names this machine: many authorization servers compare it as a text",
    )
    .or("\"127.0.0.1\""),
    key(
        "servers.NAME.oauth.resource",
        Kind::Text,
        "the audience of tokens; `off` where the authorization server refuses to be told. Left out: \
         what the server says, else its `url`",
    ),
    key(
        "servers.NAME.oauth.issuer",
        Kind::Url,
        "the one authorization server that is trusted, whatever the server names",
    ),
    key(
        "servers.NAME.oauth.grant",
        Kind::Choice(&[
            "authorization_code",
            "client_credentials",
            "jwt_bearer",
            "enterprise_managed",
        ]),
        "tokens without a login: `\"client_credentials\"` for the client's own secret or key, \
         `\"jwt_bearer\"` for what the machine is known by (workload identity), \
         `\"enterprise_managed\"` for what a company's identity provider says of its employee",
    )
    .or("\"authorization_code\""),
    key(
        "servers.NAME.oauth.assertion",
        Kind::Template,
        "for these two: the JWT of the machine, or the ID token of the employee, best as \
         `${file:PATH}`, which is read again for each token",
    ),
    key(
        "servers.NAME.oauth.idp_issuer",
        Kind::Url,
        "the identity provider that gave the ID token",
    ),
    key(
        "servers.NAME.oauth.idp_client_id",
        Kind::Template,
        "the client to which it gave it",
    ),
    key(
        "servers.NAME.oauth.idp_client_secret",
        Kind::Template,
        "the secret of that client, if it has one",
    ),
    key(
        "servers.NAME.oauth.pkce",
        Kind::Choice(&["required", "assumed"]),
        "`\"assumed\"`: an authorization server that does not say that it checks PKCE is used all \
         the same",
    )
    .or("\"required\""),
    key(
        "servers.NAME.oauth.endpoints",
        Kind::Choice(&["found", "assumed"]),
        "`\"assumed\"`: an authorization server of before 2025-06 that publishes no metadata is used \
         at `/authorize`, `/token` and `/register` of the server's own address",
    )
    .or("\"found\""),
    key(
        "servers.NAME.oauth.parameters",
        Kind::Variables,
        "further parameters of the address to which the browser is sent",
    ),
    key(
        "servers.NAME.enabled",
        Kind::Switch,
        "`false` leaves the server out and its table in place",
    )
    .or("true")
    .variable(),
    key(
        "servers.NAME.category",
        Kind::Category,
        "what the server is about; narrows a search. Left out: made from its tools",
    ),
    key(
        "servers.NAME.tags",
        Kind::List(&Kind::Tag),
        "words its tools are found by besides their own",
    ),
    key(
        "servers.NAME.notes",
        Kind::Text,
        "advice for the model, shown by `describe_tool` with each of its tools",
    ),
    key(
        "servers.NAME.timeout_s",
        SECONDS_OF_A_CALL,
        "how long one call may take, unless its tool or the call says otherwise",
    )
    .or("60")
    .variable(),
    key(
        "servers.NAME.timeout_max_s",
        SECONDS_OF_A_CALL,
        "how long a call may take that reports progress: each report starts `timeout_s` anew, \
         up to here; at least `timeout_s`. Left out: progress extends nothing",
    )
    .variable(),
    key(
        "servers.NAME.start_timeout_s",
        count(1, 3_600, "seconds"),
        "how long the server may take to start; a first `npx` or `uvx` downloads",
    )
    .or("50")
    .variable(),
    key(
        "servers.NAME.start",
        Kind::Choice(&["on-call", "eager"]),
        "when it is started: by the first call that wants it, or with the program",
    )
    .or("\"on-call\"")
    .variable(),
    key(
        "servers.NAME.scope",
        Kind::Choice(&["shared", "client"]),
        "`\"shared\"`: one process for all clients. `\"client\"`: one for each client session, which \
         works in that client's folder unless `cwd` names another, and ends with it",
    )
    .or("\"shared\"")
    .variable(),
    key(
        "servers.NAME.idle_timeout_s",
        count(0, 604_800, "seconds"),
        "a server that nobody called for so long is stopped until the next call; 0: never",
    )
    .or("300")
    .variable(),
    key(
        "servers.NAME.max_concurrent_calls",
        count(0, 10_000, "calls"),
        "how many calls it gets at one time; further ones wait, within their own limit. 0: any \
         number",
    )
    .or("0")
    .variable(),
    key(
        "servers.NAME.retry_safe_calls",
        Kind::Switch,
        "`true`: a call of a tool annotated read-only or idempotent is made once more when the \
         server dies under it",
    )
    .or("false")
    .variable(),
    key(
        "servers.NAME.max_tokens",
        TOKENS,
        "how much of a result of this server goes to the model at once. Left out: \
         `results.max_tokens`",
    )
    .variable(),
    key(
        "servers.NAME.pin",
        Kind::Choice(&["warn", "hold", "off"]),
        "the same as `pin` above, for this server. Left out: as that says",
    )
    .variable(),
    key(
        "servers.NAME.tools.allow",
        Kind::List(&Kind::Glob),
        "only tools whose own name fits one of these are let in. Left out: all",
    ),
    key(
        "servers.NAME.tools.deny",
        Kind::List(&Kind::Glob),
        "tools whose own name fits one of these stay out, allowed or not",
    ),
    key(
        "servers.NAME.overlay.TOOL.description",
        Kind::Text,
        "stands in place of the server's description",
    ),
    key(
        "servers.NAME.overlay.TOOL.tags",
        Kind::List(&Kind::Tag),
        "words the tool is found by besides its own",
    ),
    key(
        "servers.NAME.overlay.TOOL.category",
        Kind::Category,
        "stands in place of the server's category",
    ),
    key(
        "servers.NAME.overlay.TOOL.notes",
        Kind::Text,
        "advice for the model, shown by `describe_tool`",
    ),
    key(
        "servers.NAME.overlay.TOOL.example",
        Kind::Arguments,
        "arguments of a call that works, shown by `describe_tool`",
    ),
    key(
        "servers.NAME.overlay.TOOL.hidden",
        Kind::Switch,
        "`true` keeps the tool out of every search; it can be called by name",
    )
    .or("false"),
    key(
        "servers.NAME.overlay.TOOL.timeout_s",
        SECONDS_OF_A_CALL,
        "how long one call of the tool may take, unless the call says otherwise. Left out: as \
         its server says",
    ),
    key(
        "servers.NAME.overlay.TOOL.max_tokens",
        TOKENS,
        "how much of a result of the tool goes to the model at once. Left out: as its server says",
    ),
];
