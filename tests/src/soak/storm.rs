//! Faults, one after the other, drawn from the seed.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::sleep};

use super::{
    fault::Fault,
    front::Front,
    random::Random,
    shared::{Soak, SoakClient},
    watch,
};
use crate::processes::{self, Process};

/// The duration of a fault that pauses or breaks something; other faults happen meanwhile.
const SPELL: Duration = Duration::from_millis(700);
/// The duration of a full disk: enough for some log lines.
const FULL_SPELL: Duration = Duration::from_secs(4);
/// The maximum number of queued faults that are calls; further ones are skipped.
const ORDERS_MAX: usize = 8;

/// Causes faults until it is dropped; [`calm`] repairs the last ones.
pub(super) async fn rage(soak: &Arc<Soak>) {
    let mut random = Random::new(soak.plan.seed);
    let mut spells = JoinSet::new();
    loop {
        let about = usize::try_from(soak.plan.fault_every.as_millis()).unwrap_or(usize::MAX);
        let pause = about / 2 + random.below(about);
        sleep(Duration::from_millis(pause as u64)).await;
        let Some(fault) = random.pick(&soak.plan.faults).copied() else {
            return std::future::pending().await;
        };
        let is_spell = begin_spell(soak, fault, &mut random, &mut spells);
        if is_spell || strike(soak, fault, &mut random).await {
            soak.tally.count_fault(fault);
        }
        while spells.try_join_next().is_some() {}
    }
}

/// Resumes everything that was paused, and restores disk and configuration.
pub(super) fn calm(soak: &Soak) {
    for process in soak.estate.house.processes() {
        processes::resume(process.pid);
    }
    soak.estate.clear_disk();
    soak.estate.mend_config();
}

/// Starts a fault that lasts for a while. Returns false if the fault is not of that kind or has no
/// target.
fn begin_spell(
    soak: &Arc<Soak>,
    fault: Fault,
    random: &mut Random,
    spells: &mut JoinSet<()>,
) -> bool {
    let (soak, estate) = (Arc::clone(soak), &soak.estate);
    match fault {
        Fault::PauseDaemon | Fault::PauseServer => {
            let victim = match fault {
                Fault::PauseDaemon => soak.watch.daemon(estate),
                _ => server(&soak, random).map(|server| server.pid),
            };
            let Some(victim) = victim else { return false };
            processes::pause(victim);
            spells.spawn(async move {
                sleep(SPELL).await;
                processes::resume(victim);
            });
        }
        Fault::EditConfig | Fault::BreakConfig => {
            match fault {
                Fault::EditConfig => estate.edit_config(random.below(2)),
                _ => estate.break_config(),
            }
            spells.spawn(async move {
                sleep(SPELL).await;
                soak.estate.mend_config();
            });
        }
        Fault::FullDisk => {
            estate.fill_disk();
            spells.spawn(async move {
                sleep(FULL_SPELL).await;
                soak.estate.clear_disk();
            });
        }
        _ => return false,
    }
    true
}

/// Causes a fault that happens immediately. Returns true if there was a target.
async fn strike(soak: &Arc<Soak>, fault: Fault, random: &mut Random) -> bool {
    match fault {
        Fault::KillDaemon => to_daemon(soak, processes::kill),
        Fault::KillDaemonAndGuard => to_daemon(soak, |daemon| {
            for helper in watch::helpers(&soak.estate, daemon) {
                processes::kill(helper);
            }
            processes::kill(daemon);
        }),
        Fault::TerminateDaemon => to_daemon(soak, processes::terminate),
        Fault::HangUpDaemon => to_daemon(soak, processes::hang_up),
        Fault::KillServer => to_server(soak, random, processes::kill),
        Fault::TerminateServer => to_server(soak, random, processes::terminate),
        Fault::KillFront => replace_front(soak, random, false).await,
        Fault::CloseFront => replace_front(soak, random, true).await,
        _ => order(soak, fault),
    }
}

fn to_daemon(soak: &Soak, act: impl FnOnce(u32)) -> bool {
    let daemon = soak.watch.daemon(&soak.estate);
    daemon.map(act).is_some()
}

fn to_server(soak: &Soak, random: &mut Random, act: impl FnOnce(u32)) -> bool {
    let server = server(soak, random);
    server.map(|server| act(server.pid)).is_some()
}

/// Returns a random process of a server, which may be the server's shell or a child.
fn server(soak: &Soak, random: &mut Random) -> Option<Process> {
    let program = soak.estate.programs.fake_server.display().to_string();
    let mut servers = soak.estate.house.processes();
    servers.retain(|process| process.command_line.contains(&program));
    random.pick(&servers).cloned()
}

/// Replaces a client with a new one; its calls in progress are lost.
async fn replace_front(soak: &Arc<Soak>, random: &mut Random, is_closed: bool) -> bool {
    let slots: Vec<_> = soak.clients.iter().filter_map(SoakClient::front).collect();
    let Some(slot) = random.pick(&slots) else {
        return false;
    };
    let fresh = Front::start(soak.estate.house.command(["serve"]), &soak.tally).await;
    let old = slot.replace(fresh);
    if is_closed {
        soak.close(&old).await;
    } else {
        old.kill().await;
    }
    true
}

fn order(soak: &Soak, fault: Fault) -> bool {
    let mut orders = soak.orders();
    let has_room = orders.len() < ORDERS_MAX;
    if has_room {
        orders.push_back(fault);
    }
    has_room
}
