//! Servers that pages propose. A page names no program to run: a person reads the command in a terminal and
//! accepts it there (`proxy apply CODE`), or it expires.

use std::collections::VecDeque;

use files::clock::now_s;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::limits::{PROPOSAL_LIFETIME, PROPOSALS_MAX};

/// The letters of a code: none that looks like another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const CODE_LETTERS: usize = 8;

/// The proposals that nobody has taken, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Proposals(Mutex<VecDeque<(Proposal, Instant)>>);

/// A server that is a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    /// The code for `proxy apply`.
    pub code: String,
    /// The name of the server.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The time at which it was made, in seconds since 1970.
    pub at: u64,
    /// The time at which it expires.
    pub expires_at: u64,
}

impl Proposals {
    pub(crate) fn add(&self, name: String, command: Vec<String>) -> Proposal {
        let mut bytes = [0; CODE_LETTERS];
        getrandom::fill(&mut bytes).expect("the system has randomness");
        let letters = bytes.map(|it| char::from(LETTERS[usize::from(it) % LETTERS.len()]));
        let at = now_s();
        let proposal = Proposal {
            code: letters.iter().collect(),
            name,
            command,
            at,
            expires_at: at + PROPOSAL_LIFETIME.as_secs(),
        };
        let mut list = self.0.lock();
        list.push_back((proposal.clone(), Instant::now()));
        if list.len() > PROPOSALS_MAX {
            list.pop_front();
        }
        proposal
    }

    /// Takes a proposal out. `None` if there is none with this code, it was taken, or it expired.
    pub(crate) fn take(&self, code: &str) -> Option<Proposal> {
        let mut list = self.0.lock();
        list.retain(|(_, since)| since.elapsed() < PROPOSAL_LIFETIME);
        let at = list.iter().position(|(it, _)| it.code == code)?;
        list.remove(at).map(|(proposal, _)| proposal)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_proposal_is_taken_once_before_it_expires() {
        let proposals = Proposals::default();
        let add = || proposals.add("notes".to_owned(), vec!["sh".to_owned()]);
        let [first, second] = [add(), add()];
        assert_ne!(first.code, second.code);
        assert_eq!(proposals.take("nothing"), None);
        assert_eq!(proposals.take(&first.code), Some(first.clone()));
        assert_eq!(proposals.take(&first.code), None);
        advance(PROPOSAL_LIFETIME).await;
        assert_eq!(proposals.take(&second.code), None);
        let oldest = add();
        for _ in 0..PROPOSALS_MAX {
            add();
        }
        assert_eq!(proposals.take(&oldest.code), None);
    }
}
