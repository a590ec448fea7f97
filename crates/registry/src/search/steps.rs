//! Splits a request that names several steps into one text per step.

use crate::limits::{PARTS_MAX, QUERY_CHARS_MAX};
use crate::words::vocabulary::{VOCABULARY, is_general_verb, is_request_word};
use crate::words::{self, bare};

/// Returns the steps of a request in their order, or nothing for a request for one thing.
///
/// A step begins with a verb that follows a comma, the end of a sentence, `and` or a word such as `then`,
/// if both sides say enough to be searched separately. Everything else stays with the step before it:
/// lists of nouns, clauses that only shape the answer ("and tell me how large they are") and sentences
/// that only set the scene.
pub(super) fn split_steps(text: &str) -> Vec<String> {
    let text = printable::first_chars(text, QUERY_CHARS_MAX);
    let tokens = text.split_inclusive(char::is_whitespace);
    let tokens: Vec<&str> = tokens.filter(|token| !token.trim().is_empty()).collect();
    let words: Vec<String> = tokens.iter().map(|token| bare(token)).collect();
    let mut begins = vec![0];
    let mut acts = begins_with_verb(&words);
    for at in 1..tokens.len() {
        let is_joint = words[at] == "and" || is_sequence(&words[at]) || ends_clause(tokens[at - 1]);
        if !is_joint || !begins_with_verb(&words[at..]) || is_listed(&tokens[at..]) {
            continue;
        }
        let mut leads = words[at..].iter().take_while(|word| is_lead(word));
        let follows = leads.any(|word| is_sequence(word));
        let step = &tokens[begins[begins.len() - 1]..at];
        if (acts || follows) && says_enough(step) && says_enough(&tokens[at..]) {
            begins.push(at);
        }
        acts = true;
    }
    begins.truncate(PARTS_MAX);
    if begins.len() < 2 {
        return Vec::new();
    }
    let ends = begins.iter().skip(1).copied().chain([tokens.len()]);
    let steps = begins.iter().zip(ends);
    let text = |(begin, end): (&usize, usize)| {
        let step = tokens[*begin..end].concat();
        step.trim_matches([' ', '\t', '\r', '\n', ',']).to_owned()
    };
    steps.map(text).collect()
}

/// Returns a request without a last clause that only says what its result is for: `read the readings, I
/// want to plot them`. Only after an instruction: the last clause of a story is the request.
pub(super) fn cut_purpose(text: &str) -> &str {
    let asked = printable::first_chars(text, QUERY_CHARS_MAX);
    let tokens: Vec<&str> = asked.split_inclusive(char::is_whitespace).collect();
    let words: Vec<String> = tokens.iter().map(|token| bare(token)).collect();
    if !begins_with_verb(&words) {
        return text;
    }
    let is_purpose = |at: &usize| {
        let mut words = words[*at..]
            .iter()
            .skip_while(|it| PURPOSE_LEADS.contains(&it.as_str()));
        let is_mine = words.next().is_some_and(|it| it == "i" || it == "we");
        is_mine
            && words
                .next()
                .is_some_and(|it| INTENTIONS.contains(&it.as_str()))
    };
    let mut ends = (1..tokens.len()).filter(|at| ends_clause(tokens[*at - 1]));
    match ends.find(is_purpose) {
        Some(at) if says_enough(&tokens[..at]) => {
            let length: usize = tokens[..at].iter().map(|token| token.len()).sum();
            text[..length].trim_end_matches([' ', ',', ';'])
        }
        _ => text,
    }
}

/// Words before the speaker in a clause of purpose: `so that I can`.
const PURPOSE_LEADS: [&str; 5] = ["because", "so", "since", "that", "then"];

/// Verbs after the speaker in a clause of purpose.
const INTENTIONS: [&str; 9] = [
    "can", "have", "intend", "must", "need", "plan", "want", "will", "would",
];

fn ends_clause(token: &str) -> bool {
    let token = token.trim_end_matches(' ');
    token.ends_with([',', '.', '!', '?', ';', '\n'])
}

/// Returns true if a text names something besides a general verb.
fn says_enough(tokens: &[&str]) -> bool {
    // A path or an address is an argument.
    let spoken = tokens
        .iter()
        .filter(|token| !token.contains(['/', '\\', '@']));
    let words = spoken.flat_map(|token| words::split(token));
    let mut telling = words.filter(|word| !word.is_joined && !is_empty_word(&word.exact));
    let first = telling.next();
    first.is_some_and(|first| !is_general_verb(&first.exact) || telling.next().is_some())
}

/// One of several verbs with one object: `insert, update, or delete records`.
fn is_listed(tokens: &[&str]) -> bool {
    let next = tokens.get(1).map(|token| bare(token));
    tokens[0].trim_end().ends_with(',') || next.is_some_and(|word| word == "or" || word == "and")
}

/// Returns true if a verb stands first, after words of courtesy and order. A verb that can also be a
/// noun counts only before its object: `email the team`.
fn begins_with_verb(words: &[String]) -> bool {
    let rest: Vec<&String> = words.iter().skip_while(|word| is_lead(word)).collect();
    let Some((first, rest)) = rest.split_first() else {
        return false;
    };
    let has_object = rest
        .first()
        .is_some_and(|word| VOCABULARY.object_starts.contains(*word));
    VOCABULARY.verbs.contains(*first) || VOCABULARY.noun_verbs.contains(*first) && has_object
}

fn is_lead(word: &str) -> bool {
    is_sequence(word) || VOCABULARY.leads.contains(word)
}

fn is_sequence(word: &str) -> bool {
    VOCABULARY.sequence.contains(word)
}

/// Returns true for a word that says nothing about a tool, or refers to something named before.
fn is_empty_word(word: &str) -> bool {
    is_request_word(word) || is_lead(word) || VOCABULARY.object_starts.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split_steps(text), expected, "{text}");
    }

    #[test]
    fn a_request_for_several_things_is_cut_where_the_next_begins() {
        check(
            "Fetch the page, summarise it and mail it to the team",
            &["Fetch the page", "summarise it", "and mail it to the team"],
        );
        check(
            "Please read sales.csv, plot it by month, and then upload the chart to drive",
            &[
                "Please read sales.csv",
                "plot it by month",
                "and then upload the chart to drive",
            ],
        );
        check(
            "Find the newest release. Post its notes to the channel.",
            &["Find the newest release.", "Post its notes to the channel."],
        );
        check(
            "1. Find the newest release\n2. Post its notes\n",
            &["1. Find the newest release\n2.", "Post its notes"],
        );
        check(
            "Show me the weather and then send it to Ana",
            &["Show me the weather", "and then send it to Ana"],
        );
    }

    #[test]
    fn a_clause_about_the_purpose_of_an_instruction_is_left_out() {
        let check = |text: &str, expected: &str| assert_eq!(cut_purpose(text), expected, "{text}");
        check(
            "Export the guest list, so that we can print it",
            "Export the guest list",
        );
        check("list my songs; I need to sort them", "list my songs");
        for text in [
            "My parcel came twice, I want the money back",
            "Send Ana the song, I like it",
            "Do it, I want to see the forecast",
            "list the songs that I want to hear",
            "",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn a_request_for_one_thing_is_left_whole() {
        for text in [
            "create issue",
            "find and replace text in a file",
            "insert, update, or delete records in the database",
            "list files and folders",
            "list a folder's contents and tell me how large each item is",
            "open several documents at once and return all of their contents together",
            "search messages, email addresses and file names",
            "I'm planning a trip to Rome next week. Can you check the weather there?",
            "compare two branches and show how they differ",
            "book the train to Rome on next Monday",
            "research Mars and save it to /tmp/mars.md",
            "",
            ", and then",
        ] {
            check(text, &[]);
        }
    }
}
