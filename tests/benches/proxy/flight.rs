//! (c) Many concurrent calls.

use std::{path::Path, time::Instant};

use crate::{
    figures::{Figures, Spread},
    house::{CALLED, House, direct},
    peer::{Peer, PeerCall},
};

const IN_FLIGHT: u32 = 32;
const ROUNDS: u32 = 20;

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    let house = House::with_tools(proxy, 10, 1_000);
    let (mut server, mut client) = (direct(), house.serve());
    for (what, tool, calls) in [("100 B", "text_100", 2_000), ("10 KB", "text_10000", 1_000)] {
        let straight = PeerCall::direct(tool);
        let around = PeerCall::through(&format!("{CALLED}/{tool}"), "");
        rate(&mut server, &straight, calls);
        rate(&mut client, &around, calls);
        let (mut near, mut far, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            near.push(rate(&mut server, &straight, calls));
            far.push(rate(&mut client, &around, calls));
            ratio.push(near[near.len() - 1] / far[far.len() - 1]);
        }
        let spreads = [
            ("direct", Spread::of(near)),
            ("through", Spread::of(far)),
            ("times slower", Spread::of(ratio)),
        ];
        let what = format!("{IN_FLIGHT} calls in flight, {what}");
        figures.row("flight", &what, "calls/s", &spreads);
    }
    server.end();
    client.end();
}

/// Returns the calls per second if the next one is sent as soon as one is answered.
pub(crate) fn rate(peer: &mut Peer, call: &PeerCall, calls: u32) -> f64 {
    let began = Instant::now();
    for _ in 0..IN_FLIGHT {
        peer.send(call);
    }
    for answered in 0..calls {
        peer.read();
        if answered + IN_FLIGHT < calls {
            peer.send(call);
        }
    }
    f64::from(calls) / began.elapsed().as_secs_f64()
}
