//! The measurements: percentiles, their aims, and code to print both.

use serde_json::{Value, json};

/// The percentiles of a set of measurements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) p10: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) count: usize,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "there is a measurement");
        values.sort_by(f64::total_cmp);
        let at = |percent: usize| values[(values.len() - 1) * percent / 100];
        Self {
            p10: at(10),
            p50: at(50),
            p90: at(90),
            p99: at(99),
            count: values.len(),
        }
    }
}

/// All figures of one run.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    rows: Vec<Value>,
    aims: Vec<Aim>,
    is_over_a_limit: bool,
}

/// An aim and its measured value.
#[derive(Debug)]
struct Aim {
    what: String,
    at_most: f64,
    measured: f64,
    unit: &'static str,
}

impl Figures {
    /// Prints one line and stores its numbers.
    pub(crate) fn row(&mut self, part: &str, what: &str, unit: &str, spreads: &[(&str, Spread)]) {
        let mut line = format!("{part:<7} {what:<46}");
        let mut numbers = json!({"part": part, "what": what, "unit": unit});
        for (name, it) in spreads {
            let shown = format!("{} [{} .. {}]", short(it.p50), short(it.p10), short(it.p90));
            line.push_str(&format!("  {name} {shown:<22}"));
            numbers[*name] = json!({
                "p10": it.p10, "p50": it.p50, "p90": it.p90, "p99": it.p99, "count": it.count,
            });
        }
        say(&format!("{line} {unit}"));
        self.rows.push(numbers);
    }

    /// Prints and stores a number that is measured once.
    pub(crate) fn number(&mut self, part: &str, what: &str, value: f64, unit: &str) {
        say(&format!("{part:<7} {what:<46}  {} {unit}", short(value)));
        let row = json!({"part": part, "what": what, "unit": unit, "value": value});
        self.rows.push(row);
    }

    pub(crate) fn aim(
        &mut self,
        what: impl Into<String>,
        at_most: f64,
        measured: f64,
        unit: &'static str,
    ) {
        self.aims.push(Aim {
            what: what.into(),
            at_most,
            measured,
            unit,
        });
    }

    /// Adds an aim that fails the run if the measured value is more than 5 % above it.
    pub(crate) fn limit(&mut self, what: String, limit: f64, measured: f64, unit: &'static str) {
        self.is_over_a_limit |= measured > limit * 1.05;
        self.aim(what, limit, measured, unit);
    }

    pub(crate) const fn is_over_a_limit(&self) -> bool {
        self.is_over_a_limit
    }

    pub(crate) fn print_aims(&self) {
        say(&format!(
            "\n{:<58} {:>10} {:>10}",
            "aim", "at most", "measured"
        ));
        for aim in &self.aims {
            let verdict = if aim.is_met() { "met" } else { "MISSED" };
            let (at_most, measured) = (short(aim.at_most), short(aim.measured));
            let unit = aim.unit;
            say(&format!(
                "{:<58} {:>10} {:>10}  {verdict}",
                aim.what,
                format!("{at_most} {unit}"),
                format!("{measured} {unit}")
            ));
        }
    }

    /// Prints each figure beside that of an earlier run, stored by `--json`.
    pub(crate) fn print_against(&self, before: &Value) {
        let empty = Vec::new();
        let before = before["figures"].as_array().unwrap_or(&empty);
        say(&format!(
            "\n{:<68} {:>10} {:>10} {:>8}",
            "median", "then", "now", "change"
        ));
        for row in &self.rows {
            let is_same = |it: &&Value| it["part"] == row["part"] && it["what"] == row["what"];
            let then = before.iter().find(is_same);
            for (name, now) in medians(row) {
                let then = then.and_then(|it| medians(it).find(|(of, _)| *of == name));
                let (then, change) = match then {
                    Some((_, then)) => {
                        let percent = (now / then - 1.0) * 100.0;
                        (short(then), format!("{percent:+.0} %"))
                    }
                    None => ("-".to_owned(), "-".to_owned()),
                };
                let text = |key: &str| row[key].as_str().unwrap_or_default();
                let what = format!("{} {} {name}, {}", text("part"), text("what"), text("unit"));
                say(&format!(
                    "{what:<68} {then:>10} {:>10} {change:>8}",
                    short(now)
                ));
            }
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let aims = self.aims.iter().map(|aim| {
            json!({"what": aim.what, "at_most": aim.at_most, "measured": aim.measured,
                "unit": aim.unit, "met": aim.is_met()})
        });
        json!({"figures": self.rows, "aims": aims.collect::<Vec<_>>()})
    }
}

impl Aim {
    fn is_met(&self) -> bool {
        self.measured <= self.at_most
    }
}

/// Returns the values of a row by the names of its spreads; a number that is measured once has no
/// name.
fn medians(row: &Value) -> impl Iterator<Item = (&str, f64)> {
    let members = row.as_object().into_iter().flatten();
    members.filter_map(|(name, value)| match name.as_str() {
        "value" => Some(("", value.as_f64()?)),
        name => Some((name, value["p50"].as_f64()?)),
    })
}

/// Formats a number with three significant digits.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[expect(clippy::print_stdout, reason = "a bench speaks on stdout")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
