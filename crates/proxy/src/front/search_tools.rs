//! `search_tools`: the few tools that fit a request, a line each.

use registry::{Asked, Entry, Found, Generation, Hit, Kind, Query};
use serde_json::{Value, json, value::RawValue};

use super::{Front, Reply, ToolError, describe_tool, loose::Loose};

/// Hits when nobody says how many, and the most there can be (interface, section 4).
const RESULTS_DEFAULT: usize = 5;
const RESULTS_MAX: usize = 20;

/// The longest part of a query that is repeated in an answer, in characters.
const QUERY_CHARS_SHOWN: usize = 120;

impl Front {
    pub(super) async fn search_tools(
        &self,
        arguments: Option<&RawValue>,
    ) -> Result<Reply, ToolError> {
        let arguments = Loose::read(arguments);
        let generation = self.generation().await?;
        let query = query(&arguments);
        let found = self.look(&generation, &query);
        let wants_json = arguments
            .text(&["format"])
            .is_some_and(|format| format == "json");
        Ok(Reply::text(&if wants_json {
            self.search_json(&query, &found).to_string()
        } else {
            self.search_text(&generation, &query, &found)
        }))
    }

    /// Whether a search with these arguments finds anything.
    pub async fn has_hits(&self, arguments: &Value) -> Result<bool, ToolError> {
        let arguments = RawValue::from_string(arguments.to_string());
        let arguments = Loose::read(arguments.ok().as_deref());
        let generation = self.generation().await?;
        Ok(!self.look(&generation, &query(&arguments)).hits.is_empty())
    }

    /// Searches. While no server has told its tools, our own are no answer to what is asked.
    fn look(&self, generation: &Generation, query: &Query) -> Found {
        let mut found = generation.search(query);
        if found.kind != Kind::Exact && self.registry.catalog().tools() == 0 {
            found.hits.clear();
        }
        found
    }

    /// The text form (interface, section 4).
    pub fn search_text(&self, generation: &Generation, query: &Query, found: &Found) -> String {
        match (found.kind, found.hits.as_slice()) {
            (Kind::Exact, [hit]) => describe_tool::text(self, generation, &hit.entry),
            (_, []) => self.nothing(query, found),
            _ => self.list(query, found),
        }
    }

    /// The JSON form, for scripts.
    pub fn search_json(&self, query: &Query, found: &Found) -> Value {
        if found.hits.is_empty() {
            let suggestion = "Try different keywords or search without a category filter.";
            return json!({
                "found": 0,
                "message": self.nothing(query, found),
                "suggestion": suggestion,
            });
        }
        let tools: Vec<Value> = found.hits.iter().map(hit_json).collect();
        json!({"found": tools.len(), "total": found.total, "tools": tools})
    }

    fn list(&self, query: &Query, found: &Found) -> String {
        let mut lines = vec![heading(query, found)];
        let mut step = usize::MAX;
        for hit in &found.hits {
            if let Asked::Steps(steps) = &query.asked
                && hit.step != step
            {
                step = hit.step;
                let text = steps.get(step).map_or("", String::as_str);
                lines.push(format!("{}:", shown(text)));
            }
            lines.push(self.hit_line(&hit.entry));
        }
        let end = query.offset + found.hits.len();
        if found.kind == Kind::Browse && end < found.total {
            lines.push(format!("more: \"offset\":{end}"));
        }
        lines.join("\n")
    }

    /// `server/tool(arguments) - purpose [marks]`.
    pub fn hit_line(&self, entry: &Entry) -> String {
        let marks = self.marks(entry);
        format!(
            "{}{} - {}{marks}",
            entry.at,
            entry.signature(),
            entry.purpose()
        )
    }

    fn marks(&self, entry: &Entry) -> String {
        let marks = [
            (entry.is_destructive(), "destructive"),
            (self.fleet.is_down(&entry.at.server), "down"),
            (entry.stale, "stale"),
            (entry.changed, "changed"),
            (entry.is_deprecated(), "deprecated"),
        ];
        let set = marks.into_iter().filter(|(is_set, _)| *is_set);
        set.fold(String::new(), |text, (_, mark)| text + " [" + mark + "]")
    }

    /// Says that nothing fits, which words are to blame, and what there is instead.
    fn nothing(&self, query: &Query, found: &Found) -> String {
        if self.registry.catalog().tools() == 0 {
            return self.nothing_known();
        }
        let mut text = format!("No tool matches \"{}\"", shown(&asked(query)));
        if !found.unknown_words.is_empty() {
            let words: Vec<String> = found
                .unknown_words
                .iter()
                .map(|word| format!("\"{}\"", shown(word)))
                .collect();
            let verb = if words.len() == 1 { "matches" } else { "match" };
            text.push_str(&format!(": {} {verb} nothing", words.join(", ")));
        }
        if !found.nearest.is_empty() {
            let names: Vec<String> = found.nearest.iter().map(ToString::to_string).collect();
            text.push_str(&format!(". Nearest: {}", names.join(", ")));
        }
        text.push_str(". Try different keywords or search without a category filter.");
        if !found.categories.is_empty() {
            text.push_str(&format!(
                " Categories: {}.",
                counts(&found.categories, CATEGORIES_COUNTED_MAX)
            ));
        }
        let down = self.down();
        if !down.is_empty() {
            text.push_str(&format!(" Down: {}.", down.join(", ")));
        }
        text
    }

    fn nothing_known(&self) -> String {
        let asked = self.surveying();
        if !asked.is_empty() {
            return format!(
                "No tools are known yet: {} being asked right now. Search again in a few seconds.",
                asked.join(", ")
            );
        }
        let catalog = self.registry.catalog();
        let whys: Vec<String> = catalog
            .servers
            .iter()
            .filter_map(|server| Some(format!("{}: {}", server.name, server.stale.as_ref()?)))
            .collect();
        match whys.as_slice() {
            [] => "No tools are known: no server offers any. A person can add servers to the \
                   configuration and run `proxy reindex`."
                .to_owned(),
            whys => format!("No tools are known. {}.", whys.join(". ")),
        }
    }

    /// Servers that failed when they were last started or surveyed.
    fn down(&self) -> Vec<String> {
        let catalog = self.registry.catalog();
        let servers = catalog.servers.iter();
        let down = servers.filter(|it| it.stale.is_some() || self.fleet.is_down(&it.name));
        down.map(|server| server.name.to_string()).collect()
    }
}

fn query(arguments: &Loose) -> Query {
    const QUERY_KEYS: [&str; 3] = ["query", "q", "queries"];
    let asked = match arguments.get(&QUERY_KEYS) {
        Some(Value::Array(_)) => Asked::Steps(arguments.texts(&QUERY_KEYS).unwrap_or_default()),
        _ => Asked::Words(arguments.text(&QUERY_KEYS).unwrap_or_default()),
    };
    let asked = match asked {
        Asked::Steps(steps) if steps.len() < 2 => Asked::Words(steps.concat()),
        other => other,
    };
    let limit = arguments
        .number(&["max_results", "limit", "top_k"])
        .unwrap_or(RESULTS_DEFAULT);
    Query {
        asked,
        category: arguments.text(&["category"]),
        server: arguments.text(&["server"]),
        tags: arguments.texts(&["tags"]).unwrap_or_default(),
        limit: limit.clamp(1, RESULTS_MAX),
        offset: arguments.number(&["offset"]).unwrap_or(0),
    }
}

fn heading(query: &Query, found: &Found) -> String {
    let counted = format!("{} of {}", found.hits.len(), found.total);
    let is_cut = found.hits.len() < found.total;
    let by_server: Vec<(String, usize)> = found
        .by_server
        .iter()
        .map(|(server, count)| (server.to_string(), *count))
        .collect();
    let by_server = if is_cut {
        format!(" ({})", counts(&by_server, SERVERS_COUNTED_MAX))
    } else {
        String::new()
    };
    if !found.without_filter {
        return format!("{counted}{by_server}");
    }
    let filter = [query.category.as_deref(), query.server.as_deref()];
    let filter = filter
        .into_iter()
        .flatten()
        .next()
        .map_or_else(|| query.tags.join(", "), str::to_owned);
    format!(
        "nothing in \"{}\"; without that filter {counted}{by_server}",
        shown(&filter)
    )
}

/// Servers counted in the heading: it is paid for with every answer.
const SERVERS_COUNTED_MAX: usize = 3;

/// Categories counted where nothing fits and the model has to look elsewhere.
const CATEGORIES_COUNTED_MAX: usize = 8;

fn counts(counts: &[(String, usize)], max: usize) -> String {
    let mut parts: Vec<String> = counts
        .iter()
        .take(max)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if counts.len() > max {
        parts.push(format!("{} more", counts.len() - max));
    }
    parts.join(", ")
}

fn asked(query: &Query) -> String {
    match &query.asked {
        Asked::Words(text) => text.clone(),
        Asked::Steps(steps) => steps.join("; "),
    }
}

/// A text of the client on one line, shortened.
fn shown(text: &str) -> String {
    let flat: Vec<&str> = text.split_whitespace().collect();
    let flat = flat.join(" ");
    match flat.char_indices().nth(QUERY_CHARS_SHOWN) {
        Some((at, _)) => format!("{}…", &flat[..at]),
        None => flat,
    }
}

fn hit_json(hit: &Hit) -> Value {
    let entry = &hit.entry;
    let schema: Value = serde_json::from_str(&entry.tool.input_schema()).unwrap_or_default();
    json!({
        "name": entry.at.to_string(),
        "server": entry.at.server.as_str(),
        "description": entry.description(),
        "signature": format!("{}{}", entry.at, entry.signature()),
        "category": entry.category,
        "tags": entry.tags,
        "input_schema": schema,
        "relevance_score": hit.score,
    })
}
