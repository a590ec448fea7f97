//! What was measured: spreads, the aims beside them, and the ways to print both.

use serde_json::{Value, json};

/// A set of measurements, by its percentiles.
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
        assert!(!values.is_empty(), "something was measured");
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
}

/// A promise, and what became of it.
#[derive(Debug)]
struct Aim {
    what: String,
    at_most: f64,
    measured: f64,
    unit: &'static str,
}

impl Figures {
    /// Prints one line and keeps its numbers.
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

    /// Prints and keeps a number that is measured once.
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

/// Three digits that matter.
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
