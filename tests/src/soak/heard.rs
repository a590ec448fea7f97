//! Responses as a client receives them.

use std::time::Duration;

use serde_json::Value;

use super::tally::Fate;

/// The time after which a call counts as unanswered.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_mins(1);

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum Heard {
    /// A message with the id of the request.
    Answer(Value),
    Unanswered,
    /// The connection was lost or refused: no answer can come.
    Broken(String),
    /// We ended the client, or cancelled the request.
    Left,
    Anothers(String),
    /// A message that a correct server never sends.
    Odd(String),
}

impl Heard {
    /// Returns the fate of the call; `unanswered` depends on the transport.
    pub(super) fn fate(&self, unanswered: Fate) -> Fate {
        match self {
            Self::Answer(_) => Fate::Right,
            Self::Unanswered => unanswered,
            Self::Broken(_) => Fate::Broken,
            Self::Left => Fate::Left,
            Self::Anothers(_) => Fate::Anothers,
            Self::Odd(_) => Fate::Unexplained,
        }
    }

    pub(super) fn why(&self) -> &str {
        match self {
            Self::Answer(_) | Self::Left => "",
            Self::Unanswered => "no answer",
            Self::Broken(why) | Self::Anothers(why) | Self::Odd(why) => why,
        }
    }
}
