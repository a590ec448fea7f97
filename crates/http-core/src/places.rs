//! Places for clients: a fixed number in total, of which one client gets half at most.
//!
//! A connection that waits for a header, a body or a second request gives up its place if a later
//! client needs one, the longest wait first. So no client can block others by waiting.

use std::{net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Clients whose places are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceOwner {
    /// By the name of the token that let it in.
    Token(Arc<str>),
    /// A client of another machine.
    Address(IpAddr),
    /// Any client on this machine, or behind a proxy on it: they cannot be distinguished, and share all.
    Here,
}

impl PlaceOwner {
    /// Returns the owner at this address.
    pub fn at(address: IpAddr) -> Self {
        let address = address.to_canonical();
        if address.is_loopback() {
            Self::Here
        } else {
            Self::Address(address)
        }
    }
}

/// A fixed number of places.
#[derive(Debug)]
pub struct Places {
    max: usize,
    taken: Mutex<PlaceTable>,
}

#[derive(Debug, Default)]
struct PlaceTable {
    next: u64,
    holders: Vec<Holder>,
}

#[derive(Debug)]
struct Holder {
    number: u64,
    who: PlaceOwner,
    state: HolderState,
    since: Instant,
    left: CancellationToken,
}

/// The state of a place. In this order, holders give up their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HolderState {
    /// The holder has sent nothing yet.
    New,
    /// The holder was served, and waits again.
    Idle,
    /// The holder is being served, and keeps its place.
    Busy,
}

/// A place, which is released when this is dropped.
#[derive(Debug)]
pub struct HeldPlace {
    places: Arc<Places>,
    /// Its number, which no other place had before.
    pub number: u64,
    left: CancellationToken,
}

/// A new place, and the number of the place that was taken away for it.
#[derive(Debug)]
pub struct Entered {
    /// The new place.
    pub place: HeldPlace,
    /// The place whose holder had to leave.
    pub evicted: Option<u64>,
}

/// There is no free place, and no holder that merely waits.
#[derive(Debug)]
pub struct Full;

impl Places {
    /// Makes so many places.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            taken: Mutex::default(),
        })
    }

    /// Returns the number of places.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Returns true if there is no place for the next client.
    pub fn is_full(&self) -> bool {
        let taken = self.taken.lock();
        taken.holders.len() >= self.max && taken.waiting(|_| true).is_none()
    }

    /// Gives this client a place, if need be that of the client that has waited for longest.
    pub fn enter(self: &Arc<Self>, who: PlaceOwner, state: HolderState) -> Result<Entered, Full> {
        let mut taken = self.taken.lock();
        let is_own = |holder: &Holder| holder.who == who;
        let own = taken.holders.iter().filter(|it| is_own(it)).count();
        let share = match who {
            PlaceOwner::Here => self.max,
            PlaceOwner::Token(_) | PlaceOwner::Address(_) => self.max.div_ceil(2),
        };
        let mut evicted = None;
        if own >= share {
            evicted = Some(taken.evict(is_own)?);
        } else if taken.holders.len() >= self.max {
            evicted = Some(taken.evict(|_| true)?);
        }
        let (number, left) = (taken.next, CancellationToken::new());
        taken.next += 1;
        taken.holders.push(Holder {
            number,
            who,
            state,
            since: Instant::now(),
            left: left.clone(),
        });
        let place = HeldPlace {
            places: Arc::clone(self),
            number,
            left,
        };
        Ok(Entered { place, evicted })
    }
}

impl PlaceTable {
    /// Returns the index of the holder to evict, of those that match.
    fn waiting(&self, of: impl Fn(&Holder) -> bool) -> Option<usize> {
        let waits =
            |(_, holder): &(usize, &Holder)| holder.state != HolderState::Busy && of(holder);
        let waiting = self.holders.iter().enumerate().filter(waits);
        let first = waiting.min_by_key(|(_, holder)| (holder.state, holder.since));
        first.map(|(at, _)| at)
    }

    fn evict(&mut self, of: impl Fn(&Holder) -> bool) -> Result<u64, Full> {
        let at = self.waiting(of).ok_or(Full)?;
        let holder = self.holders.remove(at);
        holder.left.cancel();
        Ok(holder.number)
    }
}

impl HeldPlace {
    /// Records the state of the holder from now on.
    pub fn set(&self, state: HolderState) {
        let mut taken = self.places.taken.lock();
        let mut holders = taken.holders.iter_mut();
        if let Some(holder) = holders.find(|it| it.number == self.number) {
            holder.state = state;
            holder.since = Instant::now();
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        let taken = self.places.taken.lock();
        let holder = taken.holders.iter().find(|it| it.number == self.number);
        holder.is_some_and(|holder| holder.state == HolderState::Busy)
    }

    /// Runs this until the place is taken away; then returns `None`.
    pub async fn unless_needed<F: Future>(&self, work: F) -> Option<F::Output> {
        self.left.run_until_cancelled(work).await
    }
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.holders.retain(|it| it.number != self.number);
    }
}

/// A connection is being served until this is dropped.
#[derive(Debug)]
pub struct Serving {
    place: Arc<HeldPlace>,
    /// The state afterwards.
    then: HolderState,
}

impl Serving {
    pub(crate) fn of(place: &Arc<HeldPlace>) -> Self {
        place.set(HolderState::Busy);
        Self {
            place: Arc::clone(place),
            then: HolderState::New,
        }
    }

    /// Records that the request was admitted.
    pub fn admit(&mut self) {
        self.then = HolderState::Idle;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.place.set(self.then);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(last: u8) -> PlaceOwner {
        PlaceOwner::at(IpAddr::from([192, 0, 2, last]))
    }

    fn numbers(places: &[Result<Entered, Full>]) -> Vec<Option<u64>> {
        let number = |entered: &Result<Entered, Full>| Some(entered.as_ref().ok()?.place.number);
        places.iter().map(number).collect()
    }

    #[test]
    fn one_client_takes_half_and_this_machine_all() {
        let places = Places::new(4);
        let enter = |who| places.enter(who, HolderState::Busy);
        let far_places = [enter(far(1)), enter(far(1)), enter(far(1)), enter(far(2))];
        assert_eq!(numbers(&far_places), [Some(0), Some(1), None, Some(2)]);
        let tokens = ["a", "b"].map(|name| enter(PlaceOwner::Token(name.into())));
        assert_eq!(numbers(&tokens), [Some(3), None]);
        assert!(places.is_full());
        drop((far_places, tokens));
        let here = PlaceOwner::at("::ffff:127.0.0.1".parse().unwrap());
        let all: Vec<_> = (0..5).map(|_| enter(here.clone())).collect();
        assert_eq!(all.iter().filter(|it| it.is_ok()).count(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_first_and_who_is_served_stays() {
        let places = Places::new(3);
        let enter = async || {
            tokio::time::advance(std::time::Duration::from_millis(1)).await;
            places.enter(PlaceOwner::Here, HolderState::New)
        };
        let [first, second, third] = [enter().await, enter().await, enter().await];
        let [first, second, third] = [first, second, third].map(|it| Arc::new(it.unwrap().place));
        let mut served = Serving::of(&first);
        served.admit();
        let serving = Serving::of(&second);
        drop(served);
        // The third has shown nothing; the first was served, and waits.
        for expected in [third.number, first.number] {
            let next = enter().await.unwrap();
            assert_eq!(next.evicted, Some(expected));
            next.place.set(HolderState::Busy);
            std::mem::forget(next);
        }
        assert!(
            third
                .unless_needed(std::future::pending::<()>())
                .await
                .is_none()
        );
        assert!(enter().await.is_err() && places.is_full());
        drop(serving);
        assert_eq!(enter().await.unwrap().evicted, Some(second.number));
    }
}
