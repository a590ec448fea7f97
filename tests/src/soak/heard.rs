//! Answers as a client hears them.

use std::time::Duration;

use serde_json::Value;

use super::tally::Fate;

/// A call without an answer for so long has none.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_mins(1);

/// The outcome of a question.
#[derive(Debug)]
pub(super) enum Heard {
    /// A message with the id of the question.
    Answer(Value),
    Unanswered,
    /// The way was lost, or refused: an answer cannot come.
    Broken(String),
    /// We ended the client, or take the question back.
    Left,
    Anothers(String),
    /// What a good server never says.
    Odd(String),
}

impl Heard {
    /// What it means for a call; `unanswered` depends on the way.
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
