//! A call that the rules for calls refused, as text for its model.

use std::fmt;

/// A refusal with everything its text needs.
#[derive(Debug)]
pub struct Refused {
    /// The target of the call: `server/tool`, a prompt, a resource.
    pub called: String,
    /// The rule that decided: `rule 2`, `policy = "careful"`.
    pub by: String,
    /// The reason, in the words of the configuration or ours.
    pub reason: Option<String>,
    /// Why it was not allowed.
    pub why: Why,
}

/// Why a call was not allowed.
#[derive(Debug)]
pub enum Why {
    /// The rule denies it.
    Denied,
    /// A person is to be asked, and cannot be, because of something that their client lacks.
    NobodyToAsk {
        /// The missing feature, in a sentence.
        lacks: String,
        /// The command that allows it; `None` if only an edit of the configuration does.
        allow: Option<String>,
    },
    /// A person approves only a call that they are shown whole.
    TooLong {
        /// The length of its name and arguments, in characters.
        chars: usize,
        /// The most characters that are shown.
        chars_max: usize,
    },
    /// The person said no, or did not answer.
    SaidNo,
    /// Changed since it was accepted, or never accepted: a person reviews it first.
    Held {
        /// The command for a person to type.
        review: String,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            called,
            by,
            reason,
            why,
        } = self;
        let reason = reason.iter().map(|reason| format!(" ({reason})"));
        let reason: String = reason.collect();
        match why {
            Why::Denied => write!(
                f,
                "{called} is denied by {by}{reason}. Do not try it in another way; a person can \
                 change the rules in the configuration"
            ),
            Why::NobodyToAsk { lacks, allow } => {
                write!(
                    f,
                    "{called} needs a person's permission by {by}{reason}, and nobody can be \
                     asked: {lacks}. The person can "
                )?;
                match allow {
                    Some(command) => write!(f, "type `{command}`"),
                    None => f.write_str("change the rules in the configuration"),
                }
            }
            Why::TooLong { chars, chars_max } => write!(
                f,
                "{called} needs a person's permission by {by}{reason}, and a person approves only \
                 what is shown whole: name and arguments have {chars} characters, at most \
                 {chars_max} can be shown. Do it in several smaller calls, or the person can \
                 change the rules in the configuration"
            ),
            Why::SaidNo => write!(
                f,
                "{called} needs a person's permission by {by}{reason}, and the person did not \
                 give it. Ask them what to do instead"
            ),
            Why::Held { review } => write!(
                f,
                "{called} is held back by {by}{reason}. The person can type `{review}`"
            ),
        }
    }
}
