//! The refusal of a call by a quota.

use std::{fmt, time::Duration};

/// A quota that refused a call.
#[derive(Debug)]
pub struct UsedUpQuota {
    /// The tool that was asked for.
    pub(crate) tool: String,
    /// The quota, `100 calls a day`.
    pub(crate) quota: String,
    /// Its number in the configuration, counted from 1.
    pub(crate) number: usize,
    /// True if it limits repetitions of one call.
    pub(crate) is_repeat: bool,
    /// The time until the quota is whole again.
    pub(crate) resets: Duration,
}

impl fmt::Display for UsedUpQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, number, .. } = self;
        let quota = format!("{} (quota {number} of the configuration)", self.quota);
        let seconds = self.resets.as_secs();
        let resets = match seconds {
            0..120 => format!("{seconds} s"),
            120..7_200 => format!("{} min", seconds.div_ceil(60)),
            _ => format!("{} h", seconds.div_ceil(3_600)),
        };
        if self.is_repeat {
            return write!(
                f,
                "{tool}: the same call was made too often in this session, more than {quota}, so it was \
                 not made again; resets in {resets}. Change the arguments, use another tool, or ask the user"
            );
        }
        write!(
            f,
            "{tool}: the limit of {quota} is used up, and the call was not made; resets in {resets}. \
             Continue without it, or tell the user"
        )
    }
}
