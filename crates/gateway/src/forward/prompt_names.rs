//! The names of prompts of all servers, as clients see them.

use registry::{KnownServer, Subject};
use tool::{Digest, OfferItem, ServerName, fold, near};

use super::error::{ForwardError, shown};
use crate::find::held;

/// The longest name, in characters: 64 with `mcp__proxy__` before it, as Claude Code calls it.
const NAME_CHARS_MAX: usize = 52;

/// The digits of the digest after a name that was changed: enough that no two names are the same.
const DIGEST_DIGITS: usize = 6;

/// The number of similar names that the error for an unknown name lists.
const NEAR_MAX: usize = 3;

/// `server__prompt`, split at the first `__`: a server's name has none. A prompt's name that is
/// too long, or holds what a client cannot type, is shortened and cleaned, and marked by its digest.
pub(super) fn listed_name(server: &ServerName, prompt: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let name = format!("{server}__{prompt}");
    if name.chars().all(is_plain) && name.len() <= NAME_CHARS_MAX {
        return name;
    }
    let clean = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    let clean: String = clean.take(NAME_CHARS_MAX - 1 - DIGEST_DIGITS).collect();
    let digest = Digest::of_bytes(prompt.as_bytes()).short(DIGEST_DIGITS);
    format!("{clean}-{digest}")
}

/// The prompt that a name means: as it is listed, `server/prompt`, or the prompt's own name if only
/// one server has it.
pub(super) fn find<'g>(
    seen: &[&'g KnownServer],
    asked: &str,
) -> Result<(&'g KnownServer, &'g OfferItem), ForwardError> {
    let prompts = |server: &'g KnownServer| server.offer.prompts.iter().map(move |it| (server, it));
    let all = || seen.iter().copied().flat_map(prompts);
    let listed =
        |(server, prompt): &(&KnownServer, &OfferItem)| listed_name(&server.name, prompt.id());
    if let Some(found) = all().find(|it| listed(it) == asked) {
        return Ok(found);
    }
    if let Some((server, prompt)) = asked.split_once('/') {
        let is_it =
            |it: &(&KnownServer, &OfferItem)| it.0.name.as_str() == server && it.1.id() == prompt;
        if let Some(found) = all().find(is_it) {
            return Ok(found);
        }
    }
    let own: Vec<_> = all().filter(|(_, prompt)| prompt.id() == asked).collect();
    let folded = fold(asked);
    let alike = || all().filter(|it| fold(&listed(it)) == folded).collect();
    let found: Vec<_> = if own.is_empty() { alike() } else { own };
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(find_withheld(seen, asked).unwrap_or_else(|| {
            explain_unknown(asked, &all().map(|it| listed(&it)).collect::<Vec<_>>())
        })),
        several => {
            let names = several.iter().map(listed).collect::<Vec<_>>().join(", ");
            let why = format!(
                "Several prompts are named {}: say one of {names}",
                shown(asked)
            );
            Err(ForwardError::params(why))
        }
    }
}

/// The refusal of a prompt that waits for a person's review.
fn find_withheld(seen: &[&KnownServer], asked: &str) -> Option<ForwardError> {
    let mut withheld = seen
        .iter()
        .flat_map(|server| server.withheld.iter().map(move |it| (server, it)));
    withheld.find_map(|(server, (subject, by))| {
        let Subject::Prompt(prompt) = subject else {
            return None;
        };
        let names = [
            listed_name(&server.name, prompt),
            format!("{}/{prompt}", server.name),
            prompt.clone(),
        ];
        let called = || format!("prompt {}", shown(asked));
        let is_it = names.iter().any(|name| name == asked);
        is_it.then(|| held(called(), &server.name, *by).into())
    })
}

fn explain_unknown(asked: &str, names: &[String]) -> ForwardError {
    let near = near(asked, names.iter().map(String::as_str), NEAR_MAX).join(", ");
    let next = match (near.as_str(), names.len()) {
        ("", 0) => "No server offers any prompt".to_owned(),
        ("", _) => "prompts/list has their names".to_owned(),
        (near, _) => format!("Did you mean {near}?"),
    };
    ForwardError::params(format!("Unknown prompt: {}. {next}", shown(asked)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_can_take_a_listed_name() {
        let check = |server: &str, prompt: &str, expected: &str| {
            let listed = listed_name(&server.parse().unwrap(), prompt);
            assert_eq!(listed, expected);
            assert!(listed.len() <= NAME_CHARS_MAX, "{listed}");
        };
        check("git", "summarize", "git__summarize");
        check("git", "_odd.name-1", "git___odd.name-1");
        check("git", "code review", "git__code_review-7abada");
        check("git", "code/review", "git__code_review-6feff3");
        let long = "a-server-with-a-name-of-32-chars";
        check(
            long,
            "a_prompt_with_a_long_name",
            "a-server-with-a-name-of-32-chars__a_prompt_wi-acde6b",
        );
    }
}
