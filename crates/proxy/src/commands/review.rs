//! `proxy review`: definitions that changed since they were accepted, and the history of changes.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::bail;
use clap::{ArgAction, Args};
use clap_complete::ArgValueCompleter;
use gateway::{
    Gateway,
    api::{ApiReply, ApiRequest, DecidedDefinition, ReviewDecision, ReviewRow, ReviewsQuery},
};
use registry::{HistoryEntry, KnownNames, digest_of_definitions};
use serde_json::json;

use super::{
    api::{Api, Daemon, explain_reply, with_api},
    difference::show_difference,
    lock,
    pending::{answer_pending, list_pending},
    with_gateway,
};
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::{Exit, refuse},
    report,
    table::{render_rows, wrap},
};

/// The state of a definition that was refused.
const REFUSED: &str = "refused";

const NOTHING_NAMED_SO: &str = "nothing to review under this name; `proxy review` lists everything";

/// The most similar names that an error lists.
const NEAR_MAX: usize = 3;

const EXAMPLES: &str = "\
Examples:
  proxy review notes                        list them, and how to accept them
  proxy review notes --accept DIGEST        accept what has this digest
  proxy review notes add_note --refuse DIGEST
  proxy review notes --accept               on a terminal: show and ask
  proxy review notes --history              list the changes of every survey
  proxy review notes/add_note --history     those of one tool
  proxy review --history notes --diff 0 3   from before entry 1 to entry 3
  proxy review --pending --allow 3            let a waiting call run
  proxy review --lock                       write a lock file for your team
  proxy review --verify                     compare the servers with that file

Exit codes: 0 nothing to review, or decided, 1 something to review, or no such
            name, 2 wrong usage, or changed since it was printed
  --lock    0 written, 3 written without some servers
  --verify  0 everything is as it was locked, 10 there are only additions,
            11 something needs a person: a breaking change, or another wording,
            12 unknown: a server did not answer, or there is no lock file";

/// Show tools that changed since you accepted them; decide
///
/// A server is accepted with the tools, prompts, resources and instructions that it has when it is
/// added. Later changes and additions are listed, each with its difference, its digest, and signs
/// that it tries to steer a model. One with a sign is held: models get the accepted definition until
/// you decide. `pin = "hold"` hides all of them from models until they are accepted; refused
/// definitions are always hidden.
///
/// Accepting names the digest of the printed list, or of one definition in it, so a definition that
/// changed since is not accepted. A refused definition is accepted only by its name.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct ReviewArgs {
    /// Server, or one of its tools: `github/create_issue`
    #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    server: Option<String>,
    /// Only these: a tool's own name, `instructions`, `prompt NAME`, `resource URI`, `template URI`
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Accept the definitions printed with this digest; on a terminal it may be omitted
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, action = ArgAction::Append, value_parser = parse_digest, conflicts_with = "refuse")]
    accept: Option<Vec<String>>,
    /// Refuse the definitions printed with this digest, until they change
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, action = ArgAction::Append, value_parser = parse_digest)]
    refuse: Option<Vec<String>>,
    /// List the tools that each survey added, changed or removed, and new versions of servers
    #[arg(long, conflicts_with_all = ["names", "accept", "refuse"])]
    history: bool,
    /// List calls that wait for a permission, of clients that cannot ask for it; on a terminal: ask
    #[arg(long, conflicts_with_all = ["server", "names", "accept", "refuse", "history"])]
    pending: bool,
    /// With --pending: allow the call with this number
    #[arg(
        long,
        value_name = "NUMBER",
        requires = "pending",
        conflicts_with = "deny"
    )]
    allow: Option<u64>,
    /// With --allow: `once`, `this session` or `always`
    #[arg(
        long = "for",
        value_name = "TIME",
        requires = "allow",
        default_value = "once"
    )]
    allowed_for: String,
    /// With --pending: refuse the call with this number
    #[arg(long, value_name = "NUMBER", requires = "pending")]
    deny: Option<u64>,
    /// With --history: show the difference between two entries, by their numbers
    #[arg(long, num_args = 2, value_names = ["A", "B"], requires = "history")]
    diff: Vec<usize>,
    /// Write the accepted definitions of every server, without resources, into a file for your team, in the
    /// format of `reindex --export`
    #[arg(long, group = "team", conflicts_with_all = ["server", "names", "accept", "refuse", "history", "pending"])]
    lock: bool,
    /// Compare the definitions that every server lists now with the lock file, and store nothing. A change
    /// is breaking (an earlier call may fail or do something else), additive, or wording: texts that a
    /// model reads
    #[arg(long, group = "team", conflicts_with_all = ["server", "names", "accept", "refuse", "history", "pending"])]
    verify: bool,
    /// With --lock, --verify: the file [default: the configuration's name with `.lock`, in its folder]
    #[arg(long, value_name = "FILE", requires = "team")]
    file: Option<PathBuf>,
    /// With --verify: show the changed definitions line by line
    #[arg(long, requires = "verify")]
    lines: bool,
}

/// Reads a whole digest: a short one could name another definition.
fn parse_digest(text: &str) -> Result<String, String> {
    if text.len() != 64 || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
        return Err("a digest has 64 hexadecimal digits; write names before the option".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}

async fn review(api: &mut Api, global: &Global, asked: &ReviewArgs) -> anyhow::Result<Exit> {
    let asked = &asked.clone().split_name();
    let server = asked.server.clone().filter(|it| !it.is_empty());
    let request = ApiRequest::Reviews(ReviewsQuery { server });
    let reply = api.ask(request, Exit::Usage).await?;
    let ApiReply::Reviews(reviews) = reply else {
        return Err(explain_reply(&reply));
    };
    if let Some(trouble) = &reviews.trouble {
        report::say(&format!(
            "warning: {trouble}; nothing counts as accepted until it is reviewed"
        ));
    }
    let list = reviews.reviews.iter().filter(|it| asked.means(it));
    let list: Vec<&ReviewRow> = list.collect();
    if reviews.more > 0 {
        report::say(&format!(
            "{} more resources are listed after these are decided",
            reviews.more
        ));
    }
    match (&asked.accept, &asked.refuse) {
        (Some(digests), _) => decide(api, asked, &list, (digests, true)).await,
        (_, Some(digests)) => decide(api, asked, &list, (digests, false)).await,
        (None, None) => Ok(show(global, asked, &list)),
    }
}

impl ReviewArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        if self.lock {
            return lock::write(global, self.file.as_ref());
        }
        if self.verify {
            return lock::verify(global, self.file.as_ref(), self.lines);
        }
        if self.history {
            return with_gateway(global, async |gateway| {
                print_history(gateway, global, &self)
            });
        }
        if self.pending {
            return with_api(global, Daemon::Running, async |api| {
                match (self.allow, self.deny) {
                    (Some(id), _) => answer_pending(api, id, &self.allowed_for).await,
                    (None, Some(id)) => answer_pending(api, id, "no").await,
                    (None, None) => list_pending(api, global).await,
                }
            });
        }
        with_api(global, Daemon::Running, async |api| {
            review(api, global, &self).await
        })
    }

    /// `SERVER/TOOL` as its two parts.
    fn split_name(mut self) -> Self {
        if let Some((server, tool)) = self.server.as_deref().and_then(|it| it.split_once('/')) {
            let (server, tool) = (server.to_owned(), tool.to_owned());
            self.names.insert(0, tool);
            self.server = Some(server);
        }
        self
    }

    fn means(&self, review: &ReviewRow) -> bool {
        let names = [own_name(review), review.subject.as_str(), &review.name];
        let is_it = |name: &String| names.contains(&name.as_str());
        self.names.is_empty() || self.names.iter().any(is_it)
    }

    /// Returns the reviews that a decision covers: those that were refused before must be named.
    fn of<'r>(&self, list: &[&'r ReviewRow]) -> Vec<&'r ReviewRow> {
        let is_meant = |it: &&&ReviewRow| !self.names.is_empty() || it.state != REFUSED;
        list.iter().filter(is_meant).copied().collect()
    }

    /// Returns the command that decides on the definitions shown with this digest.
    fn command(&self, option: &str, digest: &str) -> String {
        let mut command = "proxy review".to_owned();
        for name in self.server.iter().chain(&self.names) {
            command.push(' ');
            command.push_str(&printable::quote_word(name));
        }
        format!("{command} {option} {digest}")
    }
}

fn show(global: &Global, asked: &ReviewArgs, list: &[&ReviewRow]) -> Exit {
    if global.json {
        report::print_json(&json!(list));
    } else if list.is_empty() {
        report::say(if asked.names.is_empty() {
            "nothing changed since it was accepted"
        } else {
            NOTHING_NAMED_SO
        });
    } else {
        print_list(list);
        let meant = asked.of(list);
        if !meant.is_empty() {
            let digest = digest_of(&meant);
            report::say(&format!(
                "accept: {}\nrefuse: {}",
                asked.command("--accept", &digest),
                asked.command("--refuse", &digest)
            ));
        }
    }
    Exit::of_hit(list.is_empty())
}

fn digest_of(list: &[&ReviewRow]) -> String {
    let rows = list.iter();
    let rows = rows.map(|it| [it.server.as_str(), it.subject.as_str(), it.digest.as_str()]);
    digest_of_definitions(rows)
}

fn print_list(list: &[&ReviewRow]) {
    let texts: Vec<String> = list.iter().map(|it| text_of(it)).collect();
    report::print_data(&texts.join("\n\n"));
}

async fn decide(
    api: &mut Api,
    asked: &ReviewArgs,
    list: &[&ReviewRow],
    (digests, accept): (&[String], bool),
) -> anyhow::Result<Exit> {
    let verb = if accept { "accept" } else { "refuse" };
    let meant = asked.of(list);
    let chosen = if digests.is_empty() {
        if meant.is_empty() {
            return Err(Exit::Nothing.with(NOTHING_NAMED_SO));
        }
        if !report::can_ask() {
            let next = asked.server.as_deref().unwrap_or_default();
            return Err(refuse(format!(
                "`--{verb}` needs the digest of the printed definitions\nhint: `proxy review {next}` prints the command"
            )));
        }
        print_list(&meant);
        let count = meant.len();
        if !report::confirm(&format!("{verb} these {count} definitions? [y]es, [n]o:")) {
            return Err(Exit::Nothing.with("nothing was changed"));
        }
        meant
    } else {
        choose(list, &meant, digests).map_err(refuse)?
    };
    let definitions = chosen.iter().map(|it| DecidedDefinition {
        name: it.name.clone(),
        digest: it.digest.clone(),
    });
    let decision = ReviewDecision {
        definitions: definitions.collect(),
        accept,
    };
    let reply = api.ask(ApiRequest::Decide(decision), Exit::Usage).await?;
    let ApiReply::Done(message) = reply else {
        return Err(explain_reply(&reply));
    };
    report::say(&printable::one_line(&message));
    Ok(Exit::Success)
}

/// The reviews that the digests name: the whole list, or definitions in it.
fn choose<'r>(
    list: &[&'r ReviewRow],
    meant: &[&'r ReviewRow],
    digests: &[String],
) -> Result<Vec<&'r ReviewRow>, String> {
    let whole = digest_of(meant);
    let mut chosen: Vec<&ReviewRow> = Vec::new();
    for digest in digests {
        let is_named = |it: &&&ReviewRow| *digest == whole || it.digest == *digest;
        let named: Vec<&ReviewRow> = meant.iter().filter(is_named).copied().collect();
        if named.is_empty() {
            let mut refused = list.iter().filter(|it| it.state == REFUSED);
            return Err(match refused.find(|it| it.digest == *digest) {
                Some(it) => format!(
                    "{} was refused; to decide again, name it\nhint: proxy review {} {}",
                    it.name,
                    it.server,
                    printable::quote_word(own_name(it))
                ),
                None => format!(
                    "nothing was decided: the definition with the digest {digest} changed or was decided \
                     since it was printed\nhint: `proxy review` prints the present definitions"
                ),
            });
        }
        for it in named {
            if !chosen.contains(&it) {
                chosen.push(it);
            }
        }
    }
    Ok(chosen)
}

/// The name of a tool on its server; of anything else its subject.
fn own_name(review: &ReviewRow) -> &str {
    let tool = review.subject.strip_prefix("tool ");
    tool.unwrap_or(&review.subject)
}

fn text_of(review: &ReviewRow) -> String {
    // Names are the servers' texts.
    let name = printable::one_line(&review.name);
    let mut lines = vec![format!("{name}: {}", review.state)];
    lines.push(format!("  digest {}", review.digest));
    if review.held && review.state != REFUSED {
        lines.push("  held: models do not get it until it is accepted".to_owned());
    }
    let signs = review.signs.iter();
    lines.extend(signs.map(|sign| wrap(&format!("  ! {sign}"), 2)));
    let before = review.before.as_deref();
    lines.push(show_difference(&name, before, &review.now));
    lines.join("\n")
}

fn print_history(gateway: &Gateway, global: &Global, asked: &ReviewArgs) -> anyhow::Result<Exit> {
    let registry = &gateway.catalog.registry;
    let mut entries = registry.list_history(None);
    let last = entries.len();
    if let Some(name) = asked.server.as_deref() {
        check_name(&registry.known_names(), &entries, name)?;
        let (server, tool) = split_tool(name);
        entries.retain(|it| it.server == server);
        if let Some(tool) = tool {
            entries.retain_mut(|it| it.keep_tool(tool));
        }
    }
    if let [from, to] = asked.diff.as_slice() {
        return print_between(&entries, *from, *to, last);
    }
    if global.json {
        let numbered = entries.iter().map(|it| {
            let version = it.version.as_ref();
            let version = version.map(|(before, now)| json!({"before": before, "now": now}));
            json!({"number": it.number, "at": it.at, "server": it.server, "added": it.added,
                "changed": it.changed, "removed": it.removed, "version": version})
        });
        report::print_json(&numbered.collect());
        return Ok(Exit::Success);
    }
    if entries.is_empty() {
        report::say("no survey in the stored history changed anything");
        return Ok(Exit::Success);
    }
    let rows = entries.iter().map(|it| {
        [
            it.number.to_string(),
            files::clock::show_time(it.at * 1_000),
            it.server.clone(),
            names_of(it),
        ]
    });
    report::print_data(&render_rows(rows.collect()));
    Ok(Exit::Success)
}

fn names_of(entry: &HistoryEntry) -> String {
    let lists = [
        ("added", &entry.added),
        ("changed", &entry.changed),
        ("removed", &entry.removed),
    ];
    let lists = lists.iter().filter(|(_, names)| !names.is_empty());
    let lists = lists.map(|(what, names)| format!("{what} {}", names.join(", ")));
    let version = entry.version.as_ref().map(|(before, now)| {
        let shown = |version: &str| match printable::one_line(version) {
            version if version.is_empty() => "(none)".to_owned(),
            version => version,
        };
        format!("version {} -> {}", shown(before), shown(now))
    });
    lists.chain(version).collect::<Vec<_>>().join("; ")
}

fn split_tool(name: &str) -> (&str, Option<&str>) {
    let parts = name.split_once('/');
    parts.map_or((name, None), |(server, tool)| (server, Some(tool)))
}

/// Checks that a server or tool is known, or was when a survey found a change. The error names
/// similar ones.
fn check_name(known: &KnownNames, entries: &[HistoryEntry], name: &str) -> anyhow::Result<()> {
    let (server, tool) = split_tool(name);
    let find = |wanted: &str, before: &str, names: BTreeSet<&str>, list: String| {
        if names.contains(wanted) {
            return Ok(());
        }
        let near = tool::near(wanted, names, NEAR_MAX).into_iter();
        let near: Vec<String> = near.map(|it| format!("{before}{it}")).collect();
        let hint = match near.as_slice() {
            [] => format!("`{list}` lists them"),
            near => format!("did you mean {}?", near.join(", ")),
        };
        let kind = if before.is_empty() { "server" } else { "tool" };
        let wanted = printable::one_line(wanted);
        bail!("no {kind} `{before}{wanted}`\nhint: {hint}")
    };
    let servers = known.tools.iter().map(|(server, _)| server.as_str());
    let servers = servers.chain(entries.iter().map(|it| it.server.as_str()));
    find(server, "", servers.collect(), "proxy servers".to_owned())?;
    let Some(tool) = tool else { return Ok(()) };
    let listed = known.tools.iter().filter(|(it, _)| it.as_str() == server);
    let listed = listed.flat_map(|(_, tools)| tools.iter().flatten());
    let of_server = entries.iter().filter(|it| it.server == server);
    let past = of_server.flat_map(|it| it.added.iter().chain(&it.changed).chain(&it.removed));
    let tools = listed.chain(past).map(String::as_str);
    let before = format!("{server}/");
    let list = format!("proxy search '*' --server {server}");
    find(tool, &before, tools.collect(), list)
}

/// Prints the changes from the state after one entry to that after another; 0 is before all of them.
/// `last` is the number of the newest entry of all servers.
fn print_between(
    entries: &[HistoryEntry],
    from: usize,
    to: usize,
    last: usize,
) -> anyhow::Result<Exit> {
    if from >= to || to > last {
        return Err(refuse(format!(
            "no such entries\nhint: `proxy review --history` numbers them from 1 to {last}; give the older one first, 0 is before all"
        )));
    }
    let is_between = |it: &&HistoryEntry| it.number > from && it.number <= to;
    let between: Vec<_> = entries.iter().filter(is_between).collect();
    let mut texts = Vec::new();
    let mut names: Vec<(&String, &String)> = Vec::new();
    for entry in &between {
        texts.push(format!("{}: {}", entry.server, names_of(entry)));
        for tool in entry.definitions.keys() {
            if !names.contains(&(&entry.server, tool)) {
                names.push((&entry.server, tool));
            }
        }
    }
    for (server, tool) in names {
        let of_server = between.iter().filter(|it| it.server == *server);
        let mut states = of_server.filter_map(|it| it.definitions.get(tool));
        let first = states.clone().next();
        let last = states.next_back();
        if let Some(((before, _), (_, now))) = first.zip(last) {
            let name = format!("{server}/{tool}");
            texts.push(show_difference(&name, Some(before), now));
        }
    }
    report::print_data(&texts.join("\n"));
    Ok(Exit::Success)
}
