//! Minutes or hours of calls through one daemon, with everything going wrong that can: no call
//! is without its answer, none is answered twice or with another's, and nothing is left over.
//!
//! Clients over stdio and HTTP call fake servers with numbers that must come back
//! (`call`), a storm of faults goes on beside (`storm`), and each fate is counted
//! (`tally`). At the end every client must be served by every server, and when all have gone
//! nothing of the house may run.

mod call;
mod caller;
mod estate;
mod fault;
mod front;
mod plan;
mod random;
mod storm;
mod tally;
mod watch;
mod web;

use std::{
    collections::VecDeque,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::{
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};

use self::{
    call::Call,
    caller::Line,
    estate::Estate,
    fault::Fault,
    front::Front,
    plan::{Plan, USAGE},
    tally::{Fate, Tally},
    watch::Watch,
    web::Web,
};

/// A call without an answer for so long has none.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);
/// Longer than a server rests that crashed again and again.
const SERVED_WITHIN: Duration = Duration::from_mins(3);
/// How often the daemon is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often the person who waits hears how it goes.
const TELL_EVERY: Duration = Duration::from_mins(1);
/// How long a client that was refused waits before it asks again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// What came of a question.
#[derive(Debug)]
enum Heard {
    /// A message with the id of the question.
    Answer(Value),
    Unanswered,
    /// The way was lost, or refused: an answer cannot come.
    Broken(String),
    /// We ended the client, or take the question back.
    Left,
    Anothers(String),
    /// What a good server never says.
    Odd(String),
}

impl Heard {
    /// What it means for a call; `unanswered` depends on the way.
    fn fate(&self, unanswered: Fate) -> Fate {
        match self {
            Self::Answer(_) => Fate::Right,
            Self::Unanswered => unanswered,
            Self::Broken(_) => Fate::Broken,
            Self::Left => Fate::Left,
            Self::Anothers(_) => Fate::Anothers,
            Self::Odd(_) => Fate::Unexplained,
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Answer(_) | Self::Left => "",
            Self::Unanswered => "no answer",
            Self::Broken(why) | Self::Anothers(why) | Self::Odd(why) => why,
        }
    }
}

/// A client, and whoever stands in its place now.
#[derive(Debug)]
enum Client {
    Front(FrontSlot),
    Web(Arc<Web>),
}

impl Client {
    fn front(&self) -> Option<&FrontSlot> {
        match self {
            Self::Front(slot) => Some(slot),
            Self::Web(_) => None,
        }
    }
}

#[derive(Debug)]
struct FrontSlot(Mutex<Arc<Front>>);

impl FrontSlot {
    fn get(&self) -> Arc<Front> {
        Arc::clone(&self.0.lock())
    }

    fn replace(&self, fresh: Arc<Front>) -> Arc<Front> {
        let mut front = self.0.lock();
        std::mem::replace(&mut front, fresh)
    }
}

/// Everything that callers and faults share.
#[derive(Debug)]
struct Soak {
    plan: Plan,
    estate: Estate,
    tally: Arc<Tally>,
    watch: Watch,
    clients: Vec<Client>,
    /// Faults that callers are to make.
    orders: Mutex<VecDeque<Fault>>,
    next_number: AtomicU64,
    is_over: AtomicBool,
}

/// The whole program.
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
    let runtime = runtime.expect("the system gives us threads");
    match runtime.block_on(run(plan)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => refuse(&why),
    }
}

/// Whether all went well; the error is that it could not begin.
async fn run(plan: Plan) -> Result<bool, String> {
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

/// The plan without what this user may not do.
fn possible(mut plan: Plan) -> Plan {
    let may_mount = rustix::process::geteuid().is_root();
    if !may_mount && plan.faults.contains(&Fault::FullDisk) {
        mutter("full-disk is left out: only root may mount a file system to fill");
        plan.faults.retain(|fault| *fault != Fault::FullDisk);
    }
    plan
}

impl Soak {
    async fn begin(plan: Plan) -> Result<Self, String> {
        let wants_disk = plan.faults.contains(&Fault::FullDisk);
        let estate = Estate::build(&plan, wants_disk).await?;
        let tally = Arc::new(Tally::default());
        let mut clients = Vec::new();
        for _ in 0..plan.fronts {
            let front = Front::start(estate.house.command(["serve"]), &tally).await;
            clients.push(Client::Front(FrontSlot(Mutex::new(front))));
        }
        for _ in 0..plan.webs {
            clients.push(Client::Web(Web::new(estate.address, &tally)));
        }
        Ok(Self {
            plan,
            estate,
            tally,
            watch: Watch::default(),
            clients,
            orders: Mutex::default(),
            next_number: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    /// Until the time is up, all calls are made, or somebody has enough.
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
                mutter(&format!(
                    "{:.0?}: {} calls, {} faults",
                    began.elapsed(),
                    self.tally.calls(),
                    self.tally.faults()
                ));
            }
        }
    }

    /// Every client has an answer of every server; those that get none are stuck.
    async fn serve_all(self: &Arc<Self>) {
        let mut clients = JoinSet::new();
        for at in 0..self.clients.len() {
            let soak = Arc::clone(self);
            clients.spawn(async move {
                let served = timeout(SERVED_WITHIN, soak.serve(at)).await;
                if served.is_err() {
                    let way = match &soak.clients[at] {
                        Client::Front(_) => "stdio",
                        Client::Web(_) => "HTTP",
                    };
                    let why = format!("client {at} over {way} is not served by every server");
                    soak.tally.note(Fate::Stuck, &why);
                }
            });
        }
        all_done(&mut clients).await;
    }

    async fn serve(self: &Arc<Self>, client: usize) {
        let mut line = Line::of(&self.clients[client]);
        for server in 0..self.plan.servers {
            loop {
                let call = Call {
                    number: self.next_number.fetch_add(1, Ordering::SeqCst),
                    server,
                    kind: call::Kind::Echo(0),
                };
                if caller::make(self, &mut line, &call).await.fate == Fate::Right {
                    break;
                }
                sleep(ASK_AGAIN).await;
            }
        }
    }

    /// Everybody leaves, and whatever still runs is left over.
    async fn end(&self) {
        for slot in self.clients.iter().filter_map(Client::front) {
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

    /// A front whose input ends must end.
    async fn close(&self, front: &Front) {
        if !front.close().await {
            self.tally
                .note(Fate::Stuck, "a front did not end with its input");
        }
    }

    fn orders(&self) -> MutexGuard<'_, VecDeque<Fault>> {
        self.orders.lock()
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
