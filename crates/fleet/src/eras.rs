//! The two eras of the protocol, before and after the handshake was dropped, and in which of them
//! each process of a server is spoken to.

use std::sync::Arc;

use jsonrpc::mcp::Revision;
use parking_lot::Mutex;

use crate::{ServerSpec, Spoken, question::Asks};

/// The way in which the connection to a process is opened. Clients of different eras have different
/// processes of a server that speaks both: servers on common SDKs offer what depends on the
/// handshake, or on its absence, to connections of that kind alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Era {
    /// In the newest revision that the server speaks, with or without a handshake.
    #[default]
    Newest,
    /// With a handshake, although the server speaks a revision without.
    Handshake,
}

/// The known eras of one server. All of its processes share this state.
#[derive(Debug, Default)]
pub(crate) struct Eras(Mutex<KnownRevisions>);

#[derive(Debug, Default)]
struct KnownRevisions {
    /// The revision that the server speaks in [`Era::Newest`].
    newest: Option<Spoken>,
    /// A start with this guess failed: the server may speak something else by now.
    is_doubtful: bool,
    handshake: Handshake,
}

/// The support of a handshake by a server that speaks a revision without one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Handshake {
    #[default]
    Untried,
    Taken,
    Refused,
}

impl Eras {
    /// Creates the state of a server that replaces `before`, if there was one.
    pub(crate) fn of(spec: &ServerSpec, before: Option<&Self>) -> Self {
        let newest = before.and_then(Self::newest);
        Self(Mutex::new(KnownRevisions {
            newest: newest.or_else(|| spec.spoken.clone()),
            ..KnownRevisions::default()
        }))
    }

    /// Returns the era of the process that serves this client.
    pub(crate) fn of_client(&self, client: &Arc<dyn Asks>) -> Era {
        let known = self.0.lock();
        let newest = known.newest.as_ref();
        let has_both = newest.is_some_and(|it| it.revision.is_stateless())
            && known.handshake != Handshake::Refused;
        if has_both && !client.takes_rounds() {
            Era::Handshake
        } else {
            Era::Newest
        }
    }

    /// Returns the revision to begin with; none if the server is to be asked.
    pub(crate) fn guess(&self, era: Era) -> Option<Spoken> {
        let known = self.0.lock();
        match era {
            Era::Newest => known.newest.clone().filter(|_| !known.is_doubtful),
            Era::Handshake => {
                let transport = known.newest.as_ref().map(|it| it.transport);
                Some(Spoken {
                    revision: Revision::LAST_WITH_HANDSHAKE,
                    transport: transport.unwrap_or_default(),
                })
            }
        }
    }

    pub(crate) fn note_start(&self, era: Era, spoken: &Spoken) {
        let mut known = self.0.lock();
        match era {
            Era::Newest => {
                known.newest = Some(spoken.clone());
                known.is_doubtful = false;
            }
            Era::Handshake => known.handshake = Handshake::Taken,
        }
    }

    /// Records a failed start in the newest revision: the next start detects the server's revision, and a
    /// handshake may have been refused for the same reason.
    pub(crate) fn note_failed_start(&self) {
        let mut known = self.0.lock();
        known.is_doubtful = true;
        if known.handshake == Handshake::Refused {
            known.handshake = Handshake::Untried;
        }
    }

    /// Records that the server refused a handshake. Returns false if this is not believed: a server that
    /// has accepted one before failed for another reason.
    pub(crate) fn note_refusal(&self) -> bool {
        let mut known = self.0.lock();
        if known.handshake == Handshake::Taken {
            return false;
        }
        known.handshake = Handshake::Refused;
        true
    }

    /// The revision that the server speaks in [`Era::Newest`], if it is known.
    pub(crate) fn newest(&self) -> Option<Spoken> {
        self.0.lock().newest.clone()
    }

    /// The revision of a process of this era, as far as is known.
    pub(crate) fn revision(&self, era: Era) -> Option<Revision> {
        match era {
            Era::Newest => self.newest().map(|it| it.revision),
            Era::Handshake => Some(Revision::LAST_WITH_HANDSHAKE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::fake::client;

    fn spoken(revision: Revision) -> Spoken {
        Spoken {
            revision,
            ..Spoken::default()
        }
    }

    const OLD: Revision = Revision::LAST_WITH_HANDSHAKE;
    const NEW: Revision = Revision::FIRST_STATELESS;

    fn started(revision: Revision) -> Eras {
        let eras = Eras::default();
        eras.note_start(Era::Newest, &spoken(revision));
        eras
    }

    #[test]
    fn clients_with_a_handshake_have_their_own_process_where_the_server_speaks_both_eras() {
        let [with_handshake, without] = [false, true].map(client);
        let both = started(NEW);
        assert_eq!(both.of_client(&with_handshake), Era::Handshake);
        assert_eq!(both.of_client(&without), Era::Newest);
        assert_eq!(both.guess(Era::Handshake), Some(spoken(OLD)));
        assert_eq!(both.guess(Era::Newest), Some(spoken(NEW)));
        for one in [started(OLD), Eras::default()] {
            assert_eq!(one.of_client(&with_handshake), Era::Newest);
            assert_eq!(one.of_client(&without), Era::Newest);
        }
    }

    #[test]
    fn a_refused_handshake_is_remembered_until_the_server_fails_in_its_newest_revision_too() {
        let client = client(false);
        let eras = started(NEW);
        assert!(eras.note_refusal());
        assert_eq!(eras.of_client(&client), Era::Newest);
        eras.note_failed_start();
        assert_eq!(eras.of_client(&client), Era::Handshake);
        eras.note_start(Era::Handshake, &spoken(OLD));
        assert!(!eras.note_refusal());
        assert_eq!(eras.of_client(&client), Era::Handshake);
        assert_eq!(eras.newest(), Some(spoken(NEW)));
    }

    #[test]
    fn a_server_that_failed_to_start_is_asked_what_it_speaks() {
        let eras = started(NEW);
        eras.note_failed_start();
        assert_eq!(eras.guess(Era::Newest), None);
        eras.note_start(Era::Newest, &spoken(OLD));
        assert_eq!(eras.guess(Era::Newest), Some(spoken(OLD)));
    }
}
