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
    call::{CallCheck, CallKind, SoakCall},
    fault::Fault,
    heard::Heard,
    random::Random,
    shared::{FrontSlot, Soak, SoakClient},
    tally::Fate,
    web::WebConnection,
};

/// The time that a refused client waits before it tries again.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
/// The time after which a client abandons a call.
const LEAVES_AFTER: Duration = Duration::from_millis(20);

/// The connection of a caller.
#[derive(Debug)]
pub(super) enum CallerLine<'a> {
    Front(&'a FrontSlot),
    WebLoad(WebConnection),
}

impl<'a> CallerLine<'a> {
    pub(super) fn of(client: &'a SoakClient) -> Self {
        match client {
            SoakClient::Front(slot) => Self::Front(slot),
            SoakClient::WebLoad(web) => Self::WebLoad(WebConnection::new(web)),
        }
    }

    async fn ask(&mut self, call: &SoakCall) -> Heard {
        match self {
            Self::Front(slot) => slot.get().ask("tools/call", call.params()).await,
            Self::WebLoad(connection) => connection.ask("tools/call", call.params()).await,
        }
    }

    /// Makes a call and abandons it.
    async fn leave(&mut self, call: &SoakCall) -> Heard {
        match self {
            Self::Front(slot) => {
                let front = slot.get();
                front.ask_and_cancel("tools/call", call.params()).await
            }
            Self::WebLoad(connection) => {
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
            Self::WebLoad(_) => Fate::UnansweredOverHttp,
        }
    }

    /// Returns true if this client can cause the fault.
    fn can_make(&self, fault: Fault) -> bool {
        match fault {
            Fault::LeaveCall => matches!(self, Self::WebLoad(_)),
            Fault::CancelCall => matches!(self, Self::Front(_)),
            _ => true,
        }
    }
}

/// Starts all callers of all clients; they stop when the soak ends or enough calls are made.
pub(super) fn all(soak: &Arc<Soak>) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for caller in 0..soak.clients.len() * soak.plan.at_once {
        let soak = Arc::clone(soak);
        callers.spawn(async move {
            let client = &soak.clients[caller % soak.clients.len()];
            let random = Random::of(soak.plan.seed, caller);
            call_until_over(&soak, CallerLine::of(client), random).await;
        });
    }
    callers
}

async fn call_until_over(soak: &Soak, mut line: CallerLine<'_>, mut random: Random) {
    while !soak.is_over.load(Ordering::SeqCst) && soak.tally.calls() < soak.plan.calls_max {
        soak.pace.turn().await;
        let number = soak.next_number.fetch_add(1, Ordering::SeqCst);
        let mut call = SoakCall::draw(number, soak.plan.servers, &mut random);
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
            let read = SoakCall {
                number: soak.next_number.fetch_add(1, Ordering::SeqCst),
                kind: CallKind::Read { handle, of: number },
                ..call
            };
            make(soak, &mut line, &read).await;
        } else if verdict.fate == Fate::Broken {
            sleep(ASK_AGAIN).await;
        }
    }
}

fn take_order(soak: &Soak, line: &CallerLine<'_>) -> Option<Fault> {
    let mut orders = soak.orders();
    let at = orders.iter().position(|fault| line.can_make(*fault))?;
    orders.remove(at)
}

/// Makes a call and counts its fate.
pub(super) async fn make(soak: &Soak, line: &mut CallerLine<'_>, call: &SoakCall) -> CallCheck {
    soak.tally.begin_call();
    let heard = line.ask(call).await;
    settle(soak, line, call, &heard)
}

fn settle(soak: &Soak, line: &CallerLine<'_>, call: &SoakCall, heard: &Heard) -> CallCheck {
    let verdict = match heard {
        Heard::Answer(answer) => call.judge(answer),
        other => CallCheck {
            fate: other.fate(line.unanswered()),
            why: format!("{call:?}: {}", other.why()),
            handle: None,
        },
    };
    // Without faults only a right answer is accepted; every other one is printed.
    let is_common = matches!(verdict.fate, Fate::Right | Fate::Left)
        || !soak.plan.faults.is_empty() && matches!(verdict.fate, Fate::Told | Fate::Broken);
    if is_common {
        soak.tally.count(verdict.fate);
    } else {
        soak.tally.note(verdict.fate, &verdict.why);
    }
    verdict
}
