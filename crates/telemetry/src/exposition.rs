//! Metrics in the text format of Prometheus, version 0.0.4.

use std::fmt::{self, Write as _};

/// The `Content-Type` of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows until the program ends.
    Counter,
    /// A current value, which may grow and shrink.
    Gauge,
}

/// A text to which families of samples are appended.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// A histogram whose bounds are the same for the whole family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buckets<'a> {
    /// The upper bounds in seconds, as they are written.
    pub(crate) bounds: &'a [&'a str],
    /// The count of each bucket, without those below it, and one more for the values above the last
    /// bound.
    pub(crate) counts: &'a [u64],
    /// The sum of all values, in seconds.
    pub(crate) sum: f64,
}

impl Exposition {
    /// Appends one metric without labels.
    pub fn single(&mut self, name: &str, kind: MetricKind, help: &str, value: impl fmt::Display) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// Begins a family whose samples follow. Its name ends with the unit, and that of a counter with
    /// `_total`.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: MetricKind, help: &str) -> Family<'a> {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        self.begin(name, help, kind)
    }

    pub(crate) fn histograms<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.begin(name, help, "histogram")
    }

    /// Returns the whole text.
    pub fn into_text(self) -> String {
        self.0
    }

    fn begin<'a>(&'a mut self, name: &'a str, help: &str, kind: &str) -> Family<'a> {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        self.add(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Family { text: self, name }
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
            .expect("writing to a string cannot fail");
    }
}

/// A metric name and its samples.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut Exposition,
    name: &'a str,
}

impl Family<'_> {
    /// Appends a sample. All samples of a family have the same label names, with different values.
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

/// Appends a label value. It may hold any text; quotes and line ends are escaped.
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
    use super::{Buckets, Exposition, MetricKind};

    #[test]
    fn a_label_ends_neither_its_sample_nor_its_line() {
        let mut text = Exposition::default();
        let mut family = text.family("calls_total", MetricKind::Counter, "a\\b\nc");
        family.sample(&[("server", "a\"b\\c\nd"), ("kind", "é")], 7);
        text.single("up", MetricKind::Gauge, "It is.", 1);
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
