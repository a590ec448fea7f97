//! Generated tools with realistic words, the same on every machine.

use serde_json::{Value, json};

/// The tools of one server.
#[derive(Debug, Clone)]
pub(crate) struct BenchCatalog {
    pub(crate) server: String,
    pub(crate) tools: Vec<Value>,
}

/// Generates `tools` tools, distributed over `servers` servers.
pub(crate) fn catalogs(servers: usize, tools: usize) -> Vec<BenchCatalog> {
    let mut chance = Chance(7);
    let of = |number: usize| {
        let topic = &TOPICS[number % TOPICS.len()];
        let count = tools / servers + usize::from(number < tools % servers);
        let server = format!("{}-{number}", topic.service);
        let tools = (0..count).map(|at| tool(topic, number, at, &mut chance));
        BenchCatalog {
            server,
            tools: tools.collect(),
        }
    };
    (0..servers).map(of).collect()
}

/// Generates queries for these tools: in the tool's words, in other words, with filler, and with a
/// word that is in no tool.
pub(crate) fn queries(count: usize) -> Vec<String> {
    let mut chance = Chance(11);
    let one = |_| {
        let topic = chance.pick(&TOPICS);
        let verb = chance.pick(&VERBS);
        let noun = chance.pick(topic.nouns);
        match chance.below(6) {
            0 => format!("{} {noun}", verb.0),
            1 => format!("{} {}", verb.1, topic.about),
            2 => format!("how do I {} a {noun} in {}", verb.0, topic.service),
            3 => format!("{} all {noun}s by {}", verb.1, chance.pick(&DETAILS).0),
            4 => format!("{noun} {} {}", chance.pick(&DETAILS).0, topic.service),
            _ => format!(
                "please {} the {noun} for the quarterly frobnication",
                verb.0
            ),
        }
    };
    (0..count).map(one).collect()
}

fn tool(topic: &Topic, server: usize, at: usize, chance: &mut Chance) -> Value {
    let verb = VERBS[at % VERBS.len()];
    let noun = topic.nouns[at / VERBS.len() % topic.nouns.len()];
    let round = at / (VERBS.len() * topic.nouns.len());
    let detail = chance.pick(&DETAILS);
    let suffix = if round == 0 {
        String::new()
    } else {
        format!("_by_{}_{round}", detail.0)
    };
    let (service, about) = (topic.service, topic.about);
    let mut properties = json!({
        format!("{noun}_id"): {"type": "string", "description": format!("Identifier of the {noun}")},
    });
    for _ in 0..2 + chance.below(5) {
        let (name, what) = chance.pick(&DETAILS);
        properties[*name] = json!({"type": "string", "description": what});
    }
    properties["limit"] = json!({"type": "integer", "minimum": 1, "maximum": 100, "default": 20,
        "description": "Most entries to return on one page"});
    properties["order"] = json!({"type": "string", "enum": ["newest", "oldest", "name"]});
    json!({
        "name": format!("{}_{noun}{suffix}", verb.0),
        "description": format!(
            "{} a {noun} of {service}, {about}. {} {} The caller needs access to the {} account \
             number {server}; answers are given as JSON with one entry a {noun}.",
            capital(verb.1), detail.1, verb.2, service,
        ),
        "inputSchema": {"type": "object", "properties": properties, "required": [format!("{noun}_id")]},
        "annotations": {"readOnlyHint": matches!(verb.0, "get" | "list" | "search" | "export")},
    })
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

#[derive(Debug)]
struct Topic {
    service: &'static str,
    about: &'static str,
    nouns: &'static [&'static str],
}

/// Verb, a synonym, and a sentence for the description.
const VERBS: [(&str, &str, &str); 14] = [
    ("create", "add", "Fails when one of that name exists."),
    (
        "get",
        "fetch",
        "Returns every field that the account may see.",
    ),
    (
        "list",
        "show",
        "Results come in pages; pass the cursor to read on.",
    ),
    (
        "update",
        "change",
        "Fields that are left out keep their value.",
    ),
    ("delete", "remove", "This cannot be undone."),
    (
        "search",
        "find",
        "Words are matched without regard to case.",
    ),
    ("move", "transfer", "The old place keeps a redirect."),
    ("copy", "duplicate", "Attachments are copied as well."),
    ("archive", "close", "It can be restored within thirty days."),
    ("restore", "reopen", "Only what was archived can come back."),
    ("export", "download", "Writes CSV or Markdown."),
    (
        "import",
        "upload",
        "Rows that cannot be read are reported at the end.",
    ),
    ("share", "publish", "Sends an invitation by email."),
    ("assign", "delegate", "The new owner is notified at once."),
];

const DETAILS: [(&str, &str); 16] = [
    ("owner", "Login of the person it belongs to."),
    (
        "label",
        "Only with this label, written as shown on the board.",
    ),
    (
        "date",
        "Day in the form 2024-05-31, in the time zone of the account.",
    ),
    ("status", "Open, waiting, done or rejected."),
    ("priority", "How urgent it is, from one to five."),
    (
        "folder",
        "Path of the folder, with slashes between its parts.",
    ),
    (
        "branch",
        "Name of the branch; the default branch if left out.",
    ),
    ("region", "Data centre region such as eu-west."),
    ("currency", "Three-letter code of the currency."),
    ("language", "Language of the text, as a two-letter code."),
    ("author", "Who wrote the first version."),
    ("team", "Team that may see it."),
    ("version", "Version to look at; the newest if left out."),
    ("email", "Address that the message goes to."),
    ("tag", "Tag to filter by; may be given more than once."),
    ("timeout", "Seconds after which the operation is given up."),
];

const TOPICS: [Topic; 20] = [
    topic(
        "github",
        "where source code is hosted",
        &[
            "issue",
            "pull_request",
            "repository",
            "branch",
            "release",
            "workflow",
            "commit",
        ],
    ),
    topic(
        "jira",
        "the planning board",
        &["ticket", "sprint", "epic", "board", "worklog", "comment"],
    ),
    topic(
        "slack",
        "the team's chat",
        &["message", "channel", "thread", "reaction", "reminder"],
    ),
    topic(
        "postgres",
        "a relational database",
        &["table", "row", "query", "index", "schema", "backup"],
    ),
    topic(
        "stripe",
        "payments and billing",
        &[
            "invoice",
            "payment",
            "refund",
            "customer",
            "subscription",
            "coupon",
        ],
    ),
    topic(
        "calendar",
        "meetings and appointments",
        &["event", "meeting", "invitation", "room", "holiday"],
    ),
    topic(
        "drive",
        "files in the cloud",
        &["file", "folder", "document", "spreadsheet", "permission"],
    ),
    topic(
        "mail",
        "electronic mail",
        &[
            "email",
            "draft",
            "attachment",
            "mailbox",
            "contact",
            "signature",
        ],
    ),
    topic(
        "browser",
        "web pages under remote control",
        &["page", "tab", "screenshot", "form", "cookie"],
    ),
    topic(
        "kubernetes",
        "containers on a cluster",
        &["pod", "deployment", "namespace", "secret", "node", "volume"],
    ),
    topic(
        "aws",
        "machines in the cloud",
        &[
            "bucket",
            "instance",
            "function",
            "queue",
            "alarm",
            "certificate",
        ],
    ),
    topic(
        "notion",
        "notes and wikis",
        &["page", "block", "workspace", "template", "property"],
    ),
    topic(
        "salesforce",
        "sales and leads",
        &["lead", "account", "opportunity", "campaign", "quote"],
    ),
    topic(
        "maps",
        "places and routes",
        &["place", "route", "distance", "address", "traffic_report"],
    ),
    topic(
        "weather",
        "forecasts and climate",
        &["forecast", "station", "warning", "observation"],
    ),
    topic(
        "music",
        "songs and playlists",
        &["song", "playlist", "album", "artist", "lyric"],
    ),
    topic(
        "shop",
        "an online shop",
        &["product", "order", "cart", "shipment", "review", "discount"],
    ),
    topic(
        "figma",
        "designs and drawings",
        &["frame", "component", "drawing", "style", "prototype"],
    ),
    topic(
        "sentry",
        "errors of running programs",
        &["error", "alert", "stack_trace", "project", "release"],
    ),
    topic(
        "hospital",
        "patients and their care",
        &[
            "patient",
            "prescription",
            "diagnosis",
            "ward",
            "laboratory_result",
        ],
    ),
];

const fn topic(
    service: &'static str,
    about: &'static str,
    nouns: &'static [&'static str],
) -> Topic {
    Topic {
        service,
        about,
        nouns,
    }
}

/// A pseudorandom generator with a fixed sequence (splitmix64).
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).expect("the count fits");
        usize::try_from(self.next() % count).expect("less than the count")
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
