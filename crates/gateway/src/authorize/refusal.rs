//! The text for a model whose call the rules refused.

use std::fmt;

use super::question::SHOWN_CHARS_MAX;
use crate::person_questions::LATE_ANSWER_LIFE;

/// A refusal with everything its text needs.
#[derive(Debug)]
pub struct CallRefusal {
    /// The target of the call: `server/tool`, a prompt, a resource.
    pub called: String,
    /// The rule that decided: `rule 2`, `policy = "careful"`.
    pub by: String,
    /// The reason, in the words of the configuration or ours.
    pub reason: Option<String>,
    /// The reason.
    pub why: RefusalReason,
}

/// The reason why a call was not allowed.
#[derive(Debug)]
pub enum RefusalReason {
    /// The rule denies it.
    Denied,
    /// A person must be asked, but their client lacks a feature for it.
    CannotAsk {
        /// The missing feature, in a sentence.
        lacks: String,
        /// The command that allows it; `None` if only an edit of the configuration does.
        allow: Option<String>,
    },
    /// A person was asked outside of the client, and has not answered yet.
    Pending,
    /// The call is too long to be shown to a person in full.
    TooLong {
        /// The length of its name and arguments, in characters.
        chars: usize,
    },
    /// The person declined, or did not answer.
    Declined,
    /// It changed since it was accepted, or was never accepted: it needs a review.
    Held {
        /// The command for a person to type.
        review: String,
    },
    /// The tool is for callers of another kind.
    Caller,
}

impl fmt::Display for CallRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { called, by, .. } = self;
        let reason = self.reason.iter().map(|reason| format!(" ({reason})"));
        let reason: String = reason.collect();
        let needs = format_args!("{called} needs a person's permission by {by}{reason}, and");
        match &self.why {
            RefusalReason::Denied => write!(
                f,
                "{called} is denied by {by}{reason}. Do not try it in another way; a person can \
                 change the rules in the configuration"
            ),
            RefusalReason::CannotAsk { lacks, allow } => {
                write!(
                    f,
                    "{needs} no person can be asked: {lacks}. The person can "
                )?;
                match allow {
                    Some(command) => write!(f, "type `{command}`"),
                    None => f.write_str("change the rules in the configuration"),
                }
            }
            RefusalReason::Pending => write!(
                f,
                "{needs} waits for it: it did not run. The person can answer with `proxy review \
                 --pending`, or on the page of `proxy web`, for {} minutes. Tell them, then call again \
                 with the same arguments",
                LATE_ANSWER_LIFE.as_secs() / 60
            ),
            RefusalReason::TooLong { chars } => write!(
                f,
                "{needs} a person approves only what is shown whole: name and arguments have {chars} \
                 characters, at most {SHOWN_CHARS_MAX} can be shown. Do it in several smaller calls, or \
                 the person can change the rules in the configuration"
            ),
            RefusalReason::Declined => write!(
                f,
                "{needs} the person did not give it. Ask them what to do instead"
            ),
            RefusalReason::Caller => write!(
                f,
                "{called} is only for {by}{reason}: its server or the caller's kind decides that, \
                 and no rule changes it. Use another tool"
            ),
            RefusalReason::Held { review } => write!(
                f,
                "{called} is held back by {by}{reason}. The person can type `{review}`"
            ),
        }
    }
}
