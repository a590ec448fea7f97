//! The plan of a run, from the command line.

use std::{str::FromStr, time::Duration};

use super::fault::Fault;

pub(super) const USAGE: &str = "\
Calls through one daemon for a while, with faults at random, and counts what came back.

usage: just soak [--seconds N | --minutes N | --hours N] [--calls N] [--a-second N]
                 [--seed N] [--fronts N] [--web N] [--servers N] [--at-once N]
                 [--no-faults | --only FAULT,... | --without FAULT,...] [--fault-every-ms N]

  --minutes N         how long calls are begun (10 minutes)
  --calls N           no more calls than these
  --a-second N        no more of them in a second (as many as go)
  --seed N            draws the same faults and calls again
  --fronts N          clients over stdio (4)
  --web N             clients over HTTP (2)
  --servers N         fake servers behind the daemon (6)
  --at-once N         calls that each client has under way (4)
  --no-faults         calls alone; then nothing but right answers will do
  --only, --without   kinds of faults
  --fault-every-ms N  how long from one fault to the next, about (2000)

  --nodes N           a cluster of N nodes in place of one daemon: daemons, NATS servers and links
                      fail; of the options above, those of time, calls, seed and faults apply
  --nats N            its NATS servers (3)
  --machines          each node and NATS server has a network namespace of its own (needs root and
                      `ip`), and partitions lose packets
  --crowd N           N nodes in one process: how soon they hear of a change, and how quiet they are

Exit code 1: a call was unanswered, answered twice or with another's answer, had an error that
nothing explains, or something was left over.";

/// The plan of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) length: Duration,
    pub(super) calls_max: u64,
    /// The number of calls that all clients together start per second; `None`: unlimited.
    pub(super) a_second: Option<u32>,
    pub(super) seed: u64,
    pub(super) fronts: usize,
    pub(super) webs: usize,
    pub(super) servers: usize,
    /// The number of concurrent calls of each client.
    pub(super) at_once: usize,
    /// The faults to cause; empty: none.
    pub(super) faults: Vec<Fault>,
    pub(super) fault_every: Duration,
    /// The nodes of a cluster, and its NATS servers; 0: there is no cluster.
    pub(super) nodes: usize,
    pub(super) nats: usize,
    /// Each node and each NATS server has a network namespace of its own.
    pub(super) has_machines: bool,
    /// The nodes of a cluster in one process; 0: there is none.
    pub(super) crowd: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            length: Duration::from_mins(10),
            calls_max: u64::MAX,
            a_second: None,
            seed: 1,
            fronts: 4,
            webs: 2,
            servers: 6,
            at_once: 4,
            faults: Fault::ALL.to_vec(),
            fault_every: Duration::from_secs(2),
            nodes: 0,
            nats: 3,
            has_machines: false,
            crowd: 0,
        }
    }
}

impl Plan {
    /// Parses the arguments; the error is a sentence for the user.
    pub(super) fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self::default();
        let mut args = args.into_iter();
        while let Some(flag) = args.next() {
            if flag == "--no-faults" {
                plan.faults.clear();
                continue;
            }
            if flag == "--machines" {
                plan.has_machines = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            plan.set(&flag, &value)?;
        }
        if plan.fronts == 0 {
            return Err("--fronts: one at least, since a front starts the daemon".to_owned());
        }
        if plan.servers == 0 || plan.at_once == 0 {
            return Err("--servers and --at-once: one at least".to_owned());
        }
        Ok(plan)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match flag {
            "--seconds" => self.length = Duration::from_secs(number(flag, value)?),
            "--minutes" => self.length = Duration::from_secs(60 * number::<u64>(flag, value)?),
            "--hours" => self.length = Duration::from_secs(3_600 * number::<u64>(flag, value)?),
            "--calls" => self.calls_max = number(flag, value)?,
            "--a-second" => self.a_second = Some(number::<u32>(flag, value)?.max(1)),
            "--nodes" => self.nodes = number(flag, value)?,
            "--crowd" => self.crowd = number(flag, value)?,
            "--nats" => self.nats = number::<usize>(flag, value)?.max(1),
            "--seed" => self.seed = number(flag, value)?,
            "--fronts" => self.fronts = number(flag, value)?,
            "--web" => self.webs = number(flag, value)?,
            "--servers" => self.servers = number(flag, value)?,
            "--at-once" => self.at_once = number(flag, value)?,
            "--fault-every-ms" => self.fault_every = Duration::from_millis(number(flag, value)?),
            "--only" => self.faults = faults(value)?,
            "--without" => {
                let without = faults(value)?;
                self.faults.retain(|fault| !without.contains(fault));
            }
            _ => return Err(format!("unknown flag {flag}; see --help")),
        }
        Ok(())
    }
}

fn number<T: FromStr>(flag: &str, value: &str) -> Result<T, String> {
    let number = value.parse();
    number.map_err(|_| format!("{flag} takes a number, not `{value}`"))
}

fn faults(names: &str) -> Result<Vec<Fault>, String> {
    let found = names.split(',').map(|name| {
        Fault::named(name).ok_or_else(|| {
            let known: Vec<&str> = Fault::ALL.into_iter().map(Fault::name).collect();
            format!("no fault `{name}`; there are {}", known.join(", "))
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Plan, String> {
        Plan::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_change_what_they_name() {
        assert_eq!(parse(""), Ok(Plan::default()));
        let plan =
            parse("--hours 2 --a-second 280 --seed 9 --without full-disk,kill-daemon --calls 50");
        let plan = plan.expect("all flags are known");
        assert_eq!(plan.length, Duration::from_hours(2));
        assert_eq!((plan.seed, plan.calls_max), (9, 50));
        assert_eq!(plan.a_second, Some(280));
        assert_eq!(plan.faults.len(), Fault::ALL.len() - 2);
        let faults = |line| parse(line).map(|plan| plan.faults);
        assert_eq!(faults("--no-faults"), Ok(Vec::new()));
        assert_eq!(faults("--only crash-call"), Ok(vec![Fault::CrashCall]));
    }

    #[test]
    fn mistakes_are_told() {
        for (line, why) in [
            ("--minutes", "needs a value"),
            ("--minutes ten", "takes a number"),
            ("--only fire", "kill-daemon, "),
            ("--what 1", "unknown flag"),
            ("--fronts 0", "one at least"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(why), "{error}");
        }
    }
}
