//! Minutes or hours of calls through one daemon under every kind of fault: every call gets exactly
//! one response with its own result, and no process is left over.
//!
//! Clients over stdio and HTTP call fake servers with numbers that must come back (`call`), a
//! series of faults runs concurrently (`storm`), and the fate of each call is counted (`tally`). At
//! the end every client must be served by every server, and after all clients have left no process
//! of the house may run.

mod call;
mod caller;
mod crowd;
mod estate;
mod fault;
mod front;
mod heard;
mod namespaces;
mod nodes;
mod plan;
mod random;
mod relay;
mod shared;
mod storm;
mod tally;
mod watch;
mod web;

use std::{
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};

use crate::{house::Programs, nats::NatsProgram};

use self::{
    call::SoakCall,
    caller::{ASK_AGAIN, CallerLine},
    fault::Fault,
    nodes::NodesPlan,
    plan::{Plan, USAGE},
    shared::{Soak, SoakClient},
    tally::Fate,
};

/// Longer than the pause of a server that crashed repeatedly.
const SERVED_WITHIN: Duration = Duration::from_mins(3);
/// The interval at which the daemon is checked.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The interval at which progress is printed.
const TELL_EVERY: Duration = Duration::from_mins(1);
/// Runs the soak with the arguments of the command line.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        tell(USAGE);
        return ExitCode::SUCCESS;
    }
    let plan = match Plan::parse(args) {
        Ok(plan) => plan,
        Err(why) => return refuse(&why),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("threads can be started");
    match runtime.block_on(run(plan)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => refuse(&why),
    }
}

/// Returns true if there was no failure; the error is the reason why the run could not start.
async fn run(plan: Plan) -> Result<bool, String> {
    if plan.crowd > 0 {
        let programs = estate::programs()?;
        let told = crowd::run(&programs, &find_nats(&programs)?, plan.crowd).await?;
        tell(&format!("{told}all well"));
        return Ok(true);
    }
    if plan.nodes > 0 {
        return run_nodes(&plan).await;
    }
    let soak = Arc::new(Soak::begin(possible(plan)).await?);
    soak.serve_all().await;
    soak.watch.begin();
    let began = Instant::now();
    soak.call_and_rage().await;
    storm::calm(&soak);
    let elapsed = began.elapsed();
    soak.serve_all().await;
    soak.watch.look(&soak.estate);
    soak.end().await;
    let is_clean = soak.tally.is_clean(!soak.plan.faults.is_empty());
    tell(&format!(
        "seed {}, {:.0?}, {} fronts, {} over HTTP, {} servers\n{}{}{}",
        soak.plan.seed,
        elapsed,
        soak.plan.fronts,
        soak.plan.webs,
        soak.plan.servers,
        soak.tally,
        soak.watch,
        if is_clean { "all well" } else { "NOT WELL" },
    ));
    Ok(is_clean)
}

/// Installs NATS below the target folder in which our programs lie.
fn find_nats(programs: &Programs) -> Result<NatsProgram, String> {
    let target = programs.proxy.ancestors().nth(2);
    let target = target.ok_or("the programs lie in no target folder")?;
    Ok(NatsProgram::ready(target))
}

async fn run_nodes(plan: &Plan) -> Result<bool, String> {
    let programs = estate::programs()?;
    let program = find_nats(&programs)?;
    let plan = NodesPlan {
        nodes: plan.nodes,
        nats: plan.nats,
        length: plan.length,
        calls_max: plan.calls_max,
        seed: plan.seed,
        fault_every: (!plan.faults.is_empty()).then_some(plan.fault_every * 3),
        clients: plan.fronts,
        has_machines: plan.has_machines,
    };
    let seed = plan.seed;
    let outcome = nodes::run(&programs, &program, plan).await?;
    let verdict = if outcome.is_good {
        "all well"
    } else {
        "NOT WELL"
    };
    tell(&format!("seed {seed}\n{}{verdict}", outcome.text));
    Ok(outcome.is_good)
}

/// Removes the faults that this user has no permission to cause.
fn possible(mut plan: Plan) -> Plan {
    let may_mount = rustix::process::geteuid().is_root();
    if !may_mount && plan.faults.contains(&Fault::FullDisk) {
        mutter("full-disk is left out: only root may mount a file system to fill");
        plan.faults.retain(|fault| *fault != Fault::FullDisk);
    }
    plan
}

impl Soak {
    /// Runs until the time is up, all calls are made, or the user interrupts it.
    async fn call_and_rage(self: &Arc<Self>) {
        let mut callers = caller::all(self);
        tokio::select! {
            () = sleep(self.plan.length) => {}
            () = all_done(&mut callers) => {}
            () = storm::rage(self) => {}
            () = self.watch_and_tell() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        storm::calm(self);
        self.is_over.store(true, Ordering::SeqCst);
        all_done(&mut callers).await;
    }

    async fn watch_and_tell(&self) {
        let mut looks = interval(LOOK_EVERY);
        let (began, mut told) = (Instant::now(), Instant::now());
        loop {
            looks.tick().await;
            self.watch.look(&self.estate);
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                let (daemon, mib) = self.watch.memory();
                mutter(&format!(
                    "{:.0?}: {} calls, {} faults, daemon {} {mib} MiB",
                    began.elapsed(),
                    self.tally.calls(),
                    self.tally.faults(),
                    daemon.unwrap_or_default()
                ));
            }
        }
    }

    /// Checks that every client gets an answer from every server; a client without one is stuck.
    async fn serve_all(self: &Arc<Self>) {
        let mut clients = JoinSet::new();
        for at in 0..self.clients.len() {
            let soak = Arc::clone(self);
            clients.spawn(async move {
                let served = timeout(SERVED_WITHIN, soak.serve(at)).await;
                if served.is_err() {
                    let way = match &soak.clients[at] {
                        SoakClient::Front(_) => "stdio",
                        SoakClient::WebLoad(_) => "HTTP",
                    };
                    let why = format!("client {at} over {way} is not served by every server");
                    soak.tally.note(Fate::Stuck, &why);
                }
            });
        }
        all_done(&mut clients).await;
    }

    async fn serve(self: &Arc<Self>, client: usize) {
        let mut line = CallerLine::of(&self.clients[client]);
        for server in 0..self.plan.servers {
            loop {
                let call = SoakCall {
                    number: self.next_number.fetch_add(1, Ordering::SeqCst),
                    server,
                    kind: call::CallKind::Echo(0),
                };
                if caller::make(self, &mut line, &call).await.fate == Fate::Right {
                    break;
                }
                sleep(ASK_AGAIN).await;
            }
        }
    }

    /// Ends all clients; processes that still run are left over.
    async fn end(&self) {
        for slot in self.clients.iter().filter_map(SoakClient::front) {
            self.close(&slot.get()).await;
        }
        let stopped = self.estate.house.cli(["daemon", "stop"]).await;
        if stopped.code != Some(0) {
            self.tally
                .note(Fate::Stuck, &format!("daemon stop: {stopped:?}"));
        }
        if let Err(left) = self.estate.house.all_gone().await {
            for process in left {
                self.tally.note(Fate::LeftOver, &process.command_line);
            }
        }
        for helper in self.watch.helpers_left(&self.estate) {
            self.tally.note(Fate::LeftOver, &format!("helper {helper}"));
        }
    }
}

async fn all_done(tasks: &mut JoinSet<()>) {
    while let Some(done) = tasks.join_next().await {
        done.expect("no task of the soak panics");
    }
}

fn refuse(why: &str) -> ExitCode {
    mutter(&format!("error: {why}"));
    ExitCode::from(2)
}

#[expect(clippy::print_stdout, reason = "the table is for who runs the soak")]
fn tell(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "how it goes is for who waits")]
fn mutter(text: &str) {
    eprintln!("soak: {text}");
}
