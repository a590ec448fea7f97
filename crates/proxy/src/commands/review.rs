//! `proxy review`, `proxy history`: changes of definitions since they were accepted, with their times.

use std::path::PathBuf;

use gateway::Gateway;
use registry::{DecideError, HistoryEntry, Review, Shown, Subject};
use serde_json::{Value, json};
use setup::moving::difference;
use tool::ServerName;

use crate::{
    cli::{Global, History, ReviewTools},
    exit::Exit,
    report,
    table::{render_rows, wrap},
};

pub(super) fn review(
    gateway: &Gateway,
    global: &Global,
    asked: &ReviewTools,
) -> anyhow::Result<Exit> {
    let asked = &asked.clone().split_name();
    let server: Option<ServerName> = match asked.server.as_deref().map(str::parse).transpose() {
        Ok(server) => server,
        Err(error) => {
            report::say(&format!("error: {error}"));
            return Ok(Exit::Usage);
        }
    };
    if let Some(trouble) = gateway.catalog.registry.pin_trouble() {
        report::say(&format!(
            "warning: {trouble}; nothing counts as accepted until it is reviewed"
        ));
    }
    let reviews = gateway.catalog.registry.list_reviews(server.as_ref());
    let list: Vec<&Review> = reviews.list.iter().filter(|it| asked.means(it)).collect();
    if reviews.more > 0 {
        report::say(&format!(
            "{} more resources follow once these are decided",
            reviews.more
        ));
    }
    match (&asked.accept, &asked.refuse) {
        (Some(digests), _) => decide(gateway, asked, &list, (digests, true)),
        (_, Some(digests)) => decide(gateway, asked, &list, (digests, false)),
        (None, None) => Ok(show(global, asked, &list)),
    }
}

impl ReviewTools {
    /// `SERVER/TOOL` as its two parts.
    fn split_name(mut self) -> Self {
        if let Some((server, tool)) = self.server.as_deref().and_then(|it| it.split_once('/')) {
            let (server, tool) = (server.to_owned(), tool.to_owned());
            self.names.insert(0, tool);
            self.server = Some(server);
        }
        self
    }

    fn means(&self, review: &Review) -> bool {
        let shown = &review.shown;
        let is_it = |name: &String| match &shown.subject {
            Subject::Tool(tool) if tool == name => true,
            subject => subject.to_string() == *name || shown.name() == *name,
        };
        self.names.is_empty() || self.names.iter().any(is_it)
    }

    /// Returns the reviews that a decision covers: those that were refused before must be named.
    fn of<'r>(&self, list: &[&'r Review]) -> Vec<&'r Review> {
        let is_meant = |it: &&&Review| !self.names.is_empty() || !it.is_refused;
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

fn show(global: &Global, asked: &ReviewTools, list: &[&Review]) -> Exit {
    if global.json {
        let list: Vec<Value> = list.iter().map(|it| json_of(it)).collect();
        report::print_json(&Value::from(list));
    } else if list.is_empty() {
        report::say(if asked.names.is_empty() {
            "everything is as it was accepted"
        } else {
            "nothing waits under this name; `proxy review` lists what does"
        });
    } else {
        print_list(list);
        let meant = asked.of(list);
        if !meant.is_empty() {
            let digest = Shown::digest_of_list(meant.iter().map(|it| &it.shown));
            report::say(&format!(
                "accept: {}\nrefuse: {}",
                asked.command("--accept", &digest),
                asked.command("--refuse", &digest)
            ));
        }
    }
    if list.is_empty() {
        Exit::Success
    } else {
        Exit::Nothing
    }
}

fn print_list(list: &[&Review]) {
    let texts: Vec<String> = list.iter().map(|it| text_of(it)).collect();
    report::print_data(&texts.join("\n\n"));
}

fn decide(
    gateway: &Gateway,
    asked: &ReviewTools,
    list: &[&Review],
    (digests, is_accepted): (&[String], bool),
) -> anyhow::Result<Exit> {
    let (verb, past) = if is_accepted {
        ("accept", "accepted")
    } else {
        ("refuse", "refused")
    };
    let meant = asked.of(list);
    let chosen = if digests.is_empty() {
        if meant.is_empty() {
            report::say("nothing waits under this name; `proxy review` lists what does");
            return Ok(Exit::Nothing);
        }
        if !report::can_ask() {
            let next = asked.server.as_deref().unwrap_or_default();
            report::say(&format!(
                "error: `--{verb}` needs the digest of what was shown\nhint: `proxy review {next}` ends with the \
                 command"
            ));
            return Ok(Exit::Usage);
        }
        print_list(&meant);
        let answer = report::ask(&format!("{verb} {} as shown? [y]es, [n]o:", meant.len()));
        if !["y", "yes"].contains(&answer.as_str()) {
            report::say("nothing was changed");
            return Ok(Exit::Nothing);
        }
        meant.iter().map(|it| it.shown.clone()).collect()
    } else {
        match choose(list, &meant, digests) {
            Ok(chosen) => chosen,
            Err(why) => {
                report::say(&why);
                return Ok(Exit::Usage);
            }
        }
    };
    match gateway.catalog.registry.decide(&chosen, is_accepted) {
        Ok(()) => {
            let names: Vec<String> = chosen.iter().map(Shown::name).collect();
            let names = printable::one_line(&names.join(", "));
            report::say(&format!("{past}: {names}"));
            Ok(Exit::Success)
        }
        Err(DecideError::Registry(error)) => Err(error.into()),
        Err(DecideError::Changed(names)) => {
            report::say(&stale(&names.join(", ")));
            Ok(Exit::Usage)
        }
        Err(DecideError::Pins(trouble)) => {
            report::say(&format!(
                "error: nothing was decided: {trouble}\nhint: `proxy doctor` says what to do"
            ));
            Ok(Exit::Usage)
        }
    }
}

/// The reviews that the digests name: the whole list, or definitions in it.
fn choose(list: &[&Review], meant: &[&Review], digests: &[String]) -> Result<Vec<Shown>, String> {
    let whole = Shown::digest_of_list(meant.iter().map(|it| &it.shown));
    let mut chosen: Vec<Shown> = Vec::new();
    for digest in digests {
        let is_named = |it: &&&Review| *digest == whole || it.shown.digest == *digest;
        let named: Vec<&Review> = meant.iter().filter(is_named).copied().collect();
        if named.is_empty() {
            let mut refused = list.iter().filter(|it| it.is_refused);
            return Err(match refused.find(|it| it.shown.digest == *digest) {
                Some(it) => format!(
                    "error: {} was refused; to decide again, name it\nhint: proxy review {} {}",
                    it.shown.name(),
                    it.shown.server,
                    printable::quote_word(&own_name(&it.shown.subject))
                ),
                None => stale(&format!("what was shown with the digest {digest}")),
            });
        }
        for it in named {
            if !chosen.contains(&it.shown) {
                chosen.push(it.shown.clone());
            }
        }
    }
    Ok(chosen)
}

fn stale(what: &str) -> String {
    format!(
        "error: nothing was decided: {what} has changed since, or was decided\nhint: `proxy review` shows \
         it as it is now"
    )
}

fn own_name(subject: &Subject) -> String {
    match subject {
        Subject::Tool(tool) => tool.clone(),
        other => other.to_string(),
    }
}

fn json_of(review: &Review) -> Value {
    let Shown {
        server,
        subject,
        digest,
    } = &review.shown;
    let kind = subject.to_string();
    let kind = kind.split(' ').next();
    json!({
        "name": review.shown.name(),
        "server": server.as_str(),
        "kind": kind,
        "tool": matches!(subject, Subject::Tool(_)).then(|| review.shown.name()),
        "digest": digest,
        "state": state_of(review),
        "before": review.before,
        "now": review.now,
        "signs": review.signs,
    })
}

fn state_of(review: &Review) -> &'static str {
    match (review.is_refused, review.is_changed) {
        (true, _) => "refused",
        (false, true) => "changed",
        (false, false) => "new",
    }
}

fn text_of(review: &Review) -> String {
    // Names are the servers' texts.
    let name = printable::one_line(&review.shown.name());
    let mut lines = vec![format!("{name}: {}", state_of(review))];
    lines.push(format!("  digest {}", review.shown.digest));
    let signs = review.signs.iter();
    lines.extend(signs.map(|sign| wrap(&format!("  ! {sign}"), 2)));
    let before = review.before.as_deref();
    lines.push(show_difference(&name, before, &review.now));
    lines.join("\n")
}

/// Shows the difference line by line, with hidden characters escaped.
fn show_difference(name: &str, before: Option<&str>, now: &str) -> String {
    let lines = |json: &str| {
        let value: Option<Value> = serde_json::from_str(json).ok();
        let pretty = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
        printable::seen_json(&pretty.unwrap_or_else(|| json.to_owned())).into_owned() + "\n"
    };
    let before = before.map(lines);
    let text = difference(PathBuf::from(name), before.as_deref(), &lines(now)).text;
    text.trim_end().to_owned()
}

pub(super) fn print_history(gateway: &Gateway, global: &Global, asked: &History) -> Exit {
    let entries = gateway
        .catalog
        .registry
        .list_history(asked.server.as_deref());
    if let [from, to] = asked.diff.as_slice() {
        let last = gateway.catalog.registry.list_history(None).len();
        return print_between(&entries, *from, *to, last);
    }
    if global.json {
        let numbered = entries.iter().map(|it| {
            json!({"number": it.number, "at": it.at, "server": it.server, "added": it.added,
                "changed": it.changed, "removed": it.removed})
        });
        report::print_json(&Value::from(numbered.collect::<Vec<_>>()));
        return Exit::Success;
    }
    if entries.is_empty() {
        report::say("no survey changed anything, as far back as is kept");
        return Exit::Success;
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
    Exit::Success
}

fn names_of(entry: &HistoryEntry) -> String {
    let lists = [
        ("added", &entry.added),
        ("changed", &entry.changed),
        ("removed", &entry.removed),
    ];
    let lists = lists.iter().filter(|(_, names)| !names.is_empty());
    let lists = lists.map(|(what, names)| format!("{what} {}", names.join(", ")));
    lists.collect::<Vec<_>>().join("; ")
}

/// Prints the changes from the state after one entry to that after another; 0 is before all of them.
/// `last` is the number of the newest entry of all servers.
fn print_between(entries: &[HistoryEntry], from: usize, to: usize, last: usize) -> Exit {
    if from >= to || to > last {
        report::say(&format!(
            "error: no such entries\nhint: `proxy history` numbers them, 1 to {last}; the first of the two is the older, 0 before all"
        ));
        return Exit::Usage;
    }
    let between = entries
        .iter()
        .filter(|it| it.number > from && it.number <= to);
    let between: Vec<_> = between.collect();
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
            texts.push(show_difference(
                &format!("{server}/{tool}"),
                Some(before),
                now,
            ));
        }
    }
    report::print_data(&texts.join("\n"));
    Exit::Success
}
