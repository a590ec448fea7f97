//! The totals of this process since it started. Their labels are bounded: known servers and tools, and
//! error codes; never a client's name, a URI, or text from a model.

use std::collections::BTreeMap;

use crate::{
    exposition::{Buckets, Exposition, MetricKind},
    outcome::{CallCount, Outcome},
    record::{CallRecord, Event, estimate_tokens},
};

/// The most servers, and the most tools of all servers, that are counted separately; further ones are
/// added up as one.
const SERVERS_MAX: usize = 1_000;
const TOOLS_MAX: usize = 1_000;

/// The longest name of a tool, in characters: its server may have chosen any.
const TOOL_CHARS_MAX: usize = 120;

/// The name of everything above these limits.
const OTHERS: &str = "others";

/// The outcome of a call that the rules refused.
const DENIED: Outcome = Outcome::of_code("denied");

/// The upper bounds of a call's time, in microseconds and in seconds.
const BOUNDS: [(u64, &str); 14] = [
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
    (120_000_000, "120"),
];

/// The totals. The writing thread counts them, so that no call waits for it.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// The number of calls by server, kind and outcome.
    calls: BTreeMap<(String, &'static str, &'static str), u64>,
    tools: BTreeMap<(String, String), u64>,
    servers: BTreeMap<String, ServerTotals>,
    /// The number of calls by the decision of the rules, and whether the call was refused.
    decisions: BTreeMap<(&'static str, bool), u64>,
    searches: u64,
    misses: u64,
    scripts: u64,
    sessions: u64,
    saved_definitions: u64,
    saved_scripts: u64,
    saved_cuts: u64,
    /// Records that were lost because too many arrived at one time.
    pub(crate) lost: u64,
}

/// A value that is read from a server's totals.
type Figure = fn(&ServerTotals) -> u64;

#[derive(Debug, Clone, Default)]
struct ServerTotals {
    times: [u64; BOUNDS.len() + 1],
    micros: u64,
    tokens_in: u64,
    tokens_out: u64,
    cuts: u64,
    redacted: u64,
}

impl Totals {
    pub(crate) fn count(&mut self, event: &Event) {
        match event {
            Event::Call(call) => self.count_call(call),
            Event::Search { hits, .. } => {
                self.searches += 1;
                self.misses += u64::from(*hits == 0);
            }
            Event::Script {
                bytes_read,
                bytes_sent,
                ..
            } => {
                self.scripts += 1;
                self.saved_scripts += estimate_tokens(bytes_read.saturating_sub(*bytes_sent));
            }
            Event::FirstUse { .. } | Event::Refusal(_) | Event::Head { .. } => {}
            Event::Session { tokens_saved, .. } => {
                self.sessions += 1;
                self.saved_definitions += tokens_saved;
            }
        }
    }

    /// Returns the calls of each server; the name is empty for calls of names that no server has.
    pub(crate) fn count_by_server(&self) -> BTreeMap<String, CallCount> {
        let mut counts: BTreeMap<String, CallCount> = BTreeMap::new();
        for ((server, _, outcome), calls) in &self.calls {
            let count = counts.entry(server.clone()).or_default();
            count.add(outcome, *calls);
        }
        counts
    }

    fn count_call(&mut self, call: &CallRecord) {
        let is_room = self.servers.len() < SERVERS_MAX || self.servers.contains_key(&*call.server);
        let server = if is_room { &*call.server } else { OTHERS };
        let key = (server.to_owned(), call.kind, call.outcome.as_str());
        *self.calls.entry(key).or_default() += 1;
        if call.kind == "tool" && !call.server.is_empty() {
            self.count_tool(server, &call.name);
        }
        if !call.decision.is_empty() {
            let key = (call.decision, call.outcome == DENIED);
            *self.decisions.entry(key).or_default() += 1;
        }
        let of_server = self.servers.entry(server.to_owned()).or_default();
        let bucket = BOUNDS.iter().position(|(most, _)| call.micros <= *most);
        of_server.times[bucket.unwrap_or(BOUNDS.len())] += 1;
        of_server.micros = of_server.micros.saturating_add(call.micros);
        of_server.tokens_in += estimate_tokens(call.bytes_in);
        of_server.tokens_out += estimate_tokens(call.bytes_sent);
        of_server.redacted += call.redacted;
        if call.is_cut {
            of_server.cuts += 1;
            self.saved_cuts += estimate_tokens(call.bytes.saturating_sub(call.bytes_sent));
        }
    }

    fn count_tool(&mut self, server: &str, tool: &str) {
        let tool = printable::one_line_of(tool, TOOL_CHARS_MAX);
        let key = (server.to_owned(), tool);
        let is_room = self.tools.len() < TOOLS_MAX || self.tools.contains_key(&key);
        let others = || (OTHERS.to_owned(), OTHERS.to_owned());
        let key = if is_room { key } else { others() };
        *self.tools.entry(key).or_default() += 1;
    }

    /// Appends all totals to the text.
    pub fn write(&self, text: &mut Exposition) {
        self.write_calls(text);
        self.write_servers(text);
        let singles = [
            (
                "proxy_searches_total",
                "Searches of clients.",
                self.searches,
            ),
            (
                "proxy_searches_without_hits_total",
                "Searches that found nothing.",
                self.misses,
            ),
            ("proxy_scripts_total", "Scripts that ran.", self.scripts),
            (
                "proxy_sessions_total",
                "Clients that connected.",
                self.sessions,
            ),
            (
                "proxy_records_lost_total",
                "Calls, searches and sessions that were not counted because too many came at once.",
                self.lost,
            ),
        ];
        for (name, help, value) in singles {
            text.single(name, MetricKind::Counter, help, value);
        }
        let help = "Estimated tokens that were not sent to models: definitions of tools, omitted parts of \
                    results, and data that scripts read and did not return.";
        let mut saved = text.family("proxy_tokens_saved_total", MetricKind::Counter, help);
        saved.sample(&[("by", "definitions")], self.saved_definitions);
        saved.sample(&[("by", "cuts")], self.saved_cuts);
        saved.sample(&[("by", "scripts")], self.saved_scripts);
    }

    fn write_calls(&self, text: &mut Exposition) {
        let help = "Calls of tools, prompts and resources since the start by outcome: `ok`, \
                    `tool_error`, or the code of an error; each but `ok` is an error. The server is \
                    empty if the name was not found.";
        let mut family = text.family("proxy_calls_total", MetricKind::Counter, help);
        for ((server, kind, outcome), count) in &self.calls {
            let labels: [(_, &str); 3] = [("server", server), ("kind", kind), ("outcome", outcome)];
            family.sample(&labels, count);
        }
        let help = "Calls by tool; those after the first 1000 tools are counted as `others`.";
        let mut family = text.family("proxy_tool_calls_total", MetricKind::Counter, help);
        for ((server, tool), count) in &self.tools {
            family.sample(&[("server", server), ("tool", tool)], count);
        }
        let help = "Calls by the decision of the rules, and whether they were refused.";
        let mut family = text.family("proxy_policy_decisions_total", MetricKind::Counter, help);
        for ((decision, is_refused), count) in &self.decisions {
            let refused = if *is_refused { "true" } else { "false" };
            family.sample(&[("decision", decision), ("refused", refused)], count);
        }
    }

    fn write_servers(&self, text: &mut Exposition) {
        let help =
            "Time from a call to its response, including the wait for a server and for a person.";
        let mut family = text.histograms("proxy_call_duration_seconds", help);
        let bounds = BOUNDS.map(|(_, seconds)| seconds);
        for (server, of) in &self.servers {
            let buckets = Buckets {
                bounds: &bounds,
                counts: &of.times,
                sum: seconds(of.micros),
            };
            family.histogram(("server", server), buckets);
        }
        let figures: [(&str, &str, Figure); 4] = [
            (
                "proxy_argument_tokens_total",
                "Estimated tokens of the arguments of calls.",
                |of| of.tokens_in,
            ),
            (
                "proxy_result_tokens_total",
                "Estimated tokens of the responses to clients.",
                |of| of.tokens_out,
            ),
            (
                "proxy_results_cut_total",
                "Results that were cut and kept.",
                |of| of.cuts,
            ),
            (
                "proxy_redacted_total",
                "Texts in results that were redacted.",
                |of| of.redacted,
            ),
        ];
        for (name, help, figure) in figures {
            let mut family = text.family(name, MetricKind::Counter, help);
            for (server, of) in &self.servers {
                family.sample(&[("server", server)], figure(of));
            }
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a sum of times need not be exact to a microsecond after 285 years"
)]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests;
