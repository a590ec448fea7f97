//! The state of a running soak: its clients, and everything else that callers and faults share.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until};

use super::{
    estate::Estate,
    fault::Fault,
    front::Front,
    plan::Plan,
    tally::{Fate, Tally},
    watch::Watch,
    web::WebLoad,
};

/// A client, or its replacement.
#[derive(Debug)]
pub(super) enum SoakClient {
    Front(FrontSlot),
    WebLoad(Arc<WebLoad>),
}

impl SoakClient {
    pub(super) fn front(&self) -> Option<&FrontSlot> {
        match self {
            Self::Front(slot) => Some(slot),
            Self::WebLoad(_) => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct FrontSlot(pub(super) Mutex<Arc<Front>>);

impl FrontSlot {
    pub(super) fn get(&self) -> Arc<Front> {
        Arc::clone(&self.0.lock())
    }

    pub(super) fn replace(&self, fresh: Arc<Front>) -> Arc<Front> {
        let mut front = self.0.lock();
        std::mem::replace(&mut front, fresh)
    }
}

/// Limits the calls of all callers together to a number per second. A delayed caller catches up.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    a_second: Option<u32>,
    turns: AtomicU64,
}

impl Pace {
    fn new(a_second: Option<u32>) -> Self {
        Self {
            began: Instant::now(),
            a_second,
            turns: AtomicU64::new(0),
        }
    }

    pub(super) async fn turn(&self) {
        if let Some(a_second) = self.a_second {
            let turn = self.turns.fetch_add(1, Ordering::Relaxed);
            let due = Duration::from_micros(turn * 1_000_000 / u64::from(a_second));
            sleep_until(self.began + due).await;
        }
    }
}

/// Everything that callers and faults share.
#[derive(Debug)]
pub(super) struct Soak {
    pub(super) plan: Plan,
    pub(super) estate: Estate,
    pub(super) tally: Arc<Tally>,
    pub(super) watch: Watch,
    pub(super) clients: Vec<SoakClient>,
    /// Faults that callers are to cause.
    pub(super) orders: Mutex<VecDeque<Fault>>,
    pub(super) next_number: AtomicU64,
    /// Schedules the start of each call.
    pub(super) pace: Pace,
    pub(super) is_over: AtomicBool,
}

impl Soak {
    pub(super) async fn begin(plan: Plan) -> Result<Self, String> {
        let wants_disk = plan.faults.contains(&Fault::FullDisk);
        let estate = Estate::build(&plan, wants_disk).await?;
        let tally = Arc::new(Tally::default());
        let mut clients = Vec::new();
        for _ in 0..plan.fronts {
            let front = Front::start(estate.house.command(["serve"]), &tally).await;
            clients.push(SoakClient::Front(FrontSlot(Mutex::new(front))));
        }
        for _ in 0..plan.webs {
            clients.push(SoakClient::WebLoad(WebLoad::new(
                estate.port.address(),
                &tally,
            )));
        }
        Ok(Self {
            pace: Pace::new(plan.a_second),
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

    /// Closes a client; it must exit when its input ends.
    pub(super) async fn close(&self, front: &Front) {
        if !front.close().await {
            self.tally
                .note(Fate::Stuck, "a front did not end with its input");
        }
    }

    pub(super) fn orders(&self) -> MutexGuard<'_, VecDeque<Fault>> {
        self.orders.lock()
    }
}
