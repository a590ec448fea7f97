//! Callers: each makes one call after the other, for one client.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    call::{Call, Kind, Verdict},
    fault::Fault,
    heard::Heard,
    random::Random,
    shared::{Client, FrontSlot, Soak},
    tally::Fate,
    web::Connection,
};

/// The time that a refused client waits before it tries again.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
/// The time after which a client that abandons a call does so.
const LEAVES_AFTER: Duration = Duration::from_millis(20);

/// The connection of a caller.
#[derive(Debug)]
pub(super) enum Line<'a> {
    Front(&'a FrontSlot),
    Web(Connection),
}

impl<'a> Line<'a> {
    pub(super) fn of(client: &'a Client) -> Self {
        match client {
            Client::Front(slot) => Self::Front(slot),
            Client::Web(web) => Self::Web(Connection::new(web)),
        }
    }

    async fn ask(&mut self, call: &Call) -> Heard {
        match self {
            Self::Front(slot) => slot.get().ask("tools/call", call.params()).await,
            Self::Web(connection) => connection.ask("tools/call", call.params()).await,
        }
    }

    /// Begins a call and wants no answer.
    async fn leave(&mut self, call: &Call) -> Heard {
        match self {
            Self::Front(slot) => {
                let front = slot.get();
                front.ask_and_cancel("tools/call", call.params()).await
            }
            Self::Web(connection) => {
                let asking = connection.ask("tools/call", call.params());
                let heard = timeout(LEAVES_AFTER, asking).await;
                connection.close();
                heard.unwrap_or(Heard::Left)
            }
        }
    }

    fn unanswered(&self) -> Fate {
        match self {
            Self::Front(_) => Fate::UnansweredOverStdio,
            Self::Web(_) => Fate::UnansweredOverHttp,
        }
    }

    /// Returns true if this client can make the fault.
    fn can_make(&self, fault: Fault) -> bool {
        match fault {
            Fault::LeaveCall => matches!(self, Self::Web(_)),
            Fault::CancelCall => matches!(self, Self::Front(_)),
            _ => true,
        }
    }
}

/// Starts all callers of all clients, which stop when the soak ends or enough calls are made.
pub(super) fn all(soak: &Arc<Soak>) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for caller in 0..soak.clients.len() * soak.plan.at_once {
        let soak = Arc::clone(soak);
        callers.spawn(async move {
            let client = &soak.clients[caller % soak.clients.len()];
            let random = Random::of(soak.plan.seed, caller);
            call_until_over(&soak, Line::of(client), random).await;
        });
    }
    callers
}

async fn call_until_over(soak: &Soak, mut line: Line<'_>, mut random: Random) {
    while !soak.is_over.load(Ordering::SeqCst) && soak.tally.calls() < soak.plan.calls_max {
        soak.pace.turn().await;
        let number = soak.next_number.fetch_add(1, Ordering::SeqCst);
        let mut call = Call::draw(number, soak.plan.servers, &mut random);
        match take_order(soak, &line) {
            Some(fault @ (Fault::LeaveCall | Fault::CancelCall)) => {
                call.of_fault(fault);
                soak.tally.begin_call();
                let heard = line.leave(&call).await;
                settle(soak, &line, &call, &heard);
                continue;
            }
            Some(fault) => call.of_fault(fault),
            None => {}
        }
        let verdict = make(soak, &mut line, &call).await;
        if let Some(handle) = verdict.handle {
            let read = Call {
                number: soak.next_number.fetch_add(1, Ordering::SeqCst),
                kind: Kind::Read { handle, of: number },
                ..call
            };
            make(soak, &mut line, &read).await;
        } else if verdict.fate == Fate::Broken {
            sleep(ASK_AGAIN).await;
        }
    }
}

fn take_order(soak: &Soak, line: &Line<'_>) -> Option<Fault> {
    let mut orders = soak.orders();
    let at = orders.iter().position(|fault| line.can_make(*fault))?;
    orders.remove(at)
}

/// Makes a call, and counts what becomes of it.
pub(super) async fn make(soak: &Soak, line: &mut Line<'_>, call: &Call) -> Verdict {
    soak.tally.begin_call();
    let heard = line.ask(call).await;
    settle(soak, line, call, &heard)
}

fn settle(soak: &Soak, line: &Line<'_>, call: &Call, heard: &Heard) -> Verdict {
    let verdict = match heard {
        Heard::Answer(answer) => call.judge(answer),
        other => Verdict {
            fate: other.fate(line.unanswered()),
            why: format!("{call:?}: {}", other.why()),
            handle: None,
        },
    };
    // Without faults, only a right answer is accepted, and every other is shown.
    let is_common = matches!(verdict.fate, Fate::Right | Fate::Left)
        || !soak.plan.faults.is_empty() && matches!(verdict.fate, Fate::Told | Fate::Broken);
    if is_common {
        soak.tally.count(verdict.fate);
    } else {
        soak.tally.note(verdict.fate, &verdict.why);
    }
    verdict
}
