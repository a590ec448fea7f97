//! The era in which a child is spoken to that speaks both: that of the client for whom it is started.
//! What it asks by requests of its own, it can ask no one after a beginning without a handshake.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use jsonrpc::Fields;
use mcp::Revision;
use parking_lot::Mutex;

use crate::{Launch, ServerSpec, Spoken, question::Asks};

/// What is known of the eras of one server.
#[derive(Debug, Default)]
pub(crate) struct Eras {
    /// The client for whom it is started next is of before, and can be asked.
    wants_handshake: AtomicBool,
    /// It took no handshake when it was asked with one.
    refuses_handshake: AtomicBool,
    /// What it speaks where no client wants another.
    natural: Mutex<Option<Spoken>>,
}

impl Eras {
    pub(crate) fn of(spec: &ServerSpec) -> Self {
        Self {
            natural: Mutex::new(spec.spoken.clone()),
            ..Self::default()
        }
    }

    /// Takes note of the caller for whom the server may be started. Whether a connection without a
    /// handshake is to make place for one with it.
    pub(crate) fn note_caller(&self, spec: &ServerSpec, caller: &Arc<dyn Asks>) -> bool {
        let is_child = matches!(spec.launch, Launch::Child { .. });
        let wants = is_child && !caller.takes_rounds() && can_be_asked(caller);
        self.wants_handshake.store(wants, Ordering::Relaxed);
        wants && !self.refuses_handshake.load(Ordering::Relaxed)
    }

    /// What to begin with.
    pub(crate) fn guess(&self) -> Option<Spoken> {
        let natural = self.natural.lock().clone();
        let natural_is_stateless = natural
            .as_ref()
            .is_some_and(|it| it.revision.is_stateless());
        let takes_handshake = !self.refuses_handshake.load(Ordering::Relaxed);
        if natural_is_stateless && takes_handshake && self.wants_handshake.load(Ordering::Relaxed) {
            return Some(Spoken {
                revision: Revision::LAST_WITH_HANDSHAKE,
                ..Spoken::default()
            });
        }
        natural
    }

    /// Takes in what came of a guess.
    pub(crate) fn settle(&self, guess: Option<&Spoken>, spoken: &Spoken) {
        let mut natural = self.natural.lock();
        let is_stateless = |it: &Spoken| it.revision.is_stateless();
        let was_forced = natural.as_ref().is_some_and(is_stateless)
            && guess.is_some_and(|guess| !is_stateless(guess));
        if was_forced && !is_stateless(spoken) {
            return;
        }
        if was_forced {
            self.refuses_handshake.store(true, Ordering::Relaxed);
        }
        *natural = Some(spoken.clone());
    }

    /// What it speaks where no client wants another.
    pub(crate) fn natural(&self) -> Option<Spoken> {
        self.natural.lock().clone()
    }
}

/// Whether the client announced anything that it can be asked.
fn can_be_asked(caller: &Arc<dyn Asks>) -> bool {
    let capabilities = caller.capabilities();
    let fields = Fields::of(capabilities.as_str());
    let has = |name| fields.as_ref().is_some_and(|it| it.filled(name).is_some());
    ["elicitation", "sampling", "roots"].into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(revision: Revision) -> Spoken {
        Spoken {
            revision,
            ..Spoken::default()
        }
    }

    fn known(revision: Revision) -> Eras {
        Eras {
            natural: Mutex::new(Some(spoken(revision))),
            wants_handshake: AtomicBool::new(true),
            ..Eras::default()
        }
    }

    #[test]
    fn a_handshake_is_tried_once_where_it_is_refused_and_forgets_nothing_where_it_is_taken() {
        let (old, new) = (Revision::LAST_WITH_HANDSHAKE, Revision::FIRST_STATELESS);
        let both = known(new.clone());
        let guess = both.guess();
        assert_eq!(guess, Some(spoken(old.clone())));
        both.settle(guess.as_ref(), &spoken(old.clone()));
        assert_eq!(both.natural(), Some(spoken(new.clone())));
        both.wants_handshake.store(false, Ordering::Relaxed);
        assert_eq!(both.guess(), Some(spoken(new.clone())));

        let modern = known(new.clone());
        modern.settle(modern.guess().as_ref(), &spoken(new.clone()));
        assert_eq!(modern.guess(), Some(spoken(new)));

        let unknown = Eras::default();
        unknown.settle(None, &spoken(old.clone()));
        assert_eq!(unknown.guess(), Some(spoken(old)));
    }
}
