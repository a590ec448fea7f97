//! Figures as Prometheus reads them: its text format, version 0.0.4.

use std::fmt::{self, Write as _};

/// The `Content-Type` of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What may become of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It grows, until the program ends.
    Counter,
    /// It is what it is now.
    Gauge,
}

/// A text that grows by families of samples.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// Counts by bounds that are the same for all of a family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buckets<'a> {
    /// Upper bounds in seconds, as they are written.
    pub(crate) bounds: &'a [&'a str],
    /// By bound, each without those before it; one more for what is beyond the last.
    pub(crate) counts: &'a [u64],
    /// Of all that was counted, in seconds.
    pub(crate) sum: f64,
}

impl Exposition {
    /// One figure without labels.
    pub fn single(&mut self, name: &str, kind: Kind, help: &str, value: impl fmt::Display) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// A family whose samples follow; its name says the unit, of a counter `_total` as well.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &str) -> Family<'a> {
        self.head(
            name,
            help,
            match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            },
        );
        Family { text: self, name }
    }

    pub(crate) fn histograms<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.head(name, help, "histogram");
        Family { text: self, name }
    }

    /// The whole text.
    pub fn into_text(self) -> String {
        self.0
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        self.add(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            self.add(format_args!("{before}{label}=\""));
            escape(text, &mut self.0);
            self.0.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.add(format_args!("{end} {value}\n"));
    }

    fn add(&mut self, text: fmt::Arguments<'_>) {
        self.0
            .write_fmt(text)
            .expect("a text takes all that is written to it");
    }
}

/// One name, and its samples.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut Exposition,
    name: &'a str,
}

impl Family<'_> {
    /// A sample; each has the labels of the others, with other texts.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.text.sample(self.name, labels, value);
    }

    pub(crate) fn histogram(&mut self, label: (&str, &str), buckets: Buckets<'_>) {
        let name = format!("{}_bucket", self.name);
        let mut count = 0;
        let bounds = buckets.bounds.iter().chain(&["+Inf"]);
        for (bound, more) in bounds.zip(buckets.counts) {
            count += more;
            self.text.sample(&name, &[label, ("le", bound)], count);
        }
        let sum = format!("{}_sum", self.name);
        self.text.sample(&sum, &[label], buckets.sum);
        let all = format!("{}_count", self.name);
        self.text.sample(&all, &[label], count);
    }
}

/// A label may hold any text; a quote or a line's end in it must not end the sample.
fn escape(text: &str, into: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => into.push_str(r"\\"),
            '"' => into.push_str("\\\""),
            '\n' => into.push_str(r"\n"),
            c => into.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Buckets, Exposition, Kind};

    #[test]
    fn a_label_ends_neither_its_sample_nor_its_line() {
        let mut text = Exposition::default();
        let mut family = text.family("calls_total", Kind::Counter, "a\\b\nc");
        family.sample(&[("server", "a\"b\\c\nd"), ("kind", "é")], 7);
        text.single("up", Kind::Gauge, "It is.", 1);
        assert_eq!(
            text.into_text(),
            "# HELP calls_total a\\\\b\\nc\n# TYPE calls_total counter\n\
             calls_total{server=\"a\\\"b\\\\c\\nd\",kind=\"é\"} 7\n\
             # HELP up It is.\n# TYPE up gauge\nup 1\n"
        );
    }

    #[test]
    fn buckets_hold_those_before_them() {
        let mut text = Exposition::default();
        let mut family = text.histograms("time_seconds", "How long.");
        let buckets = Buckets {
            bounds: &["0.1", "1"],
            counts: &[2, 0, 3],
            sum: 7.25,
        };
        family.histogram(("server", "a"), buckets);
        assert_eq!(
            text.into_text(),
            "# HELP time_seconds How long.\n# TYPE time_seconds histogram\n\
             time_seconds_bucket{server=\"a\",le=\"0.1\"} 2\n\
             time_seconds_bucket{server=\"a\",le=\"1\"} 2\n\
             time_seconds_bucket{server=\"a\",le=\"+Inf\"} 5\n\
             time_seconds_sum{server=\"a\"} 7.25\ntime_seconds_count{server=\"a\"} 5\n"
        );
    }
}
