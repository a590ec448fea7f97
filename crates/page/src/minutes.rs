//! The calls of the last hour, by minute.

use std::collections::BTreeMap;

use files::clock::{now_ms, now_s};
use gateway::Gateway;

use telemetry::CallCount;

use crate::limits::MINUTES_MAX;

/// The calls of the last hour.
#[derive(Debug, Default)]
pub(crate) struct Minutes {
    counted: CallCount,
    by_minute: BTreeMap<u64, CallCount>,
}

impl Minutes {
    /// Reads the calls of the last hour from the audit log; none if there is no log. Blocks.
    pub(crate) fn read(gateway: &Gateway) -> Self {
        gateway.flush_records();
        let mut minutes = Self {
            counted: gateway.recorder.count_calls(),
            ..Self::default()
        };
        let folder = gateway.settings().state_dir.join("audit");
        let filter = telemetry::Filter {
            since_ms: Some(now_ms().saturating_sub(MINUTES_MAX * 60_000)),
            ..telemetry::Filter::default()
        };
        // A log that cannot be read counts as empty: the calls from now on are shown.
        let _ = telemetry::read_newest(&folder, &filter, |line| {
            let at = line["at"].as_str().and_then(files::clock::read_time);
            if let Some(at) = at {
                let row = minutes.by_minute.entry(at / 60_000).or_default();
                row.add_line(&line);
            }
            true
        });
        minutes
    }

    /// Adds the calls since the last count to this minute.
    pub(crate) fn count(&mut self, counted: CallCount) -> BTreeMap<String, CallCount> {
        let new = counted.since(self.counted);
        self.counted = counted;
        let now = now_s() / 60;
        if new.calls > 0 {
            *self.by_minute.entry(now).or_default() += new;
        }
        self.by_minute
            .retain(|minute, _| minute + MINUTES_MAX > now);
        let rows = self.by_minute.iter();
        rows.map(|(minute, row)| (minute.to_string(), *row))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hour_is_counted_by_minutes() {
        let mut minutes = Minutes::default();
        minutes.by_minute.insert(7, CallCount::default());
        let counted = |calls, errors| CallCount { calls, errors };
        let expected = counted(3, 1);
        let rows = minutes.count(expected);
        assert_eq!(rows.values().copied().collect::<Vec<_>>(), [expected]);
        let rows = minutes.count(counted(5, 1));
        let sum: u64 = rows.values().map(|it| it.calls).sum();
        assert_eq!(sum, 5);
    }
}
