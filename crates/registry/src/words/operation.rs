//! The operations that a request names and a tool has: create, read, update, delete, send, reserve.

use std::borrow::Cow;

use tool::Tool;

use crate::limits::QUERY_CHARS_MAX;
use crate::words::vocabulary::{VOCABULARY, is_request_word};
use crate::words::{self, bare};

/// A set of operations, one bit each; without a bit, any operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Operations(u8);

impl Operations {
    /// Returns the operation that a request begins with. A verb that can also be a noun counts only before
    /// its object: `change the history`, but not `change history`.
    pub(crate) fn of_request(text: &str) -> Self {
        let pieces = printable::first_chars(text, QUERY_CHARS_MAX).split_whitespace();
        let mut words = pieces.map(|piece| bare(piece).replace(['\'', '\u{2019}'], ""));
        let is_skipped = |word: &String| is_request_word(word) || VOCABULARY.leads.contains(word);
        let Some(verb) = words.find(|it| !is_skipped(it)) else {
            return Self::default();
        };
        let object = words.next();
        let has_object = object.is_some_and(|it| VOCABULARY.object_starts.contains(&it));
        let is_noun = VOCABULARY.noun_verbs.contains(&verb) && !has_object;
        if is_noun || VOCABULARY.any_operation.contains(&verb) {
            return Self::default();
        }
        let operations = VOCABULARY.operations.get(&verb).copied();
        Self(operations.unwrap_or_default())
    }

    /// Returns the operations of a tool, by the verbs of its name, its purpose and the values of its
    /// parameters, and by its example requests. A word of its name that can also be a noun counts only if
    /// there is no other verb: `list_messages` sends none.
    pub(crate) fn of_tool(tool: &Tool, purpose: &str, requests: &[Cow<'static, str>]) -> Self {
        let is_noun = |it: &words::Word| {
            let singular = it.exact.trim_end_matches('s');
            VOCABULARY.noun_verbs.contains(singular)
        };
        let mut name = words::split(tool.name());
        name.retain(|it| !it.is_joined);
        let mut operations = Self::of_words(name.iter().filter(|it| !is_noun(it)));
        if operations.0 == 0 {
            let is_any = |it: &words::Word| VOCABULARY.any_operation.contains(&it.exact);
            if name.iter().any(is_any) {
                return Self::default();
            }
            operations = Self::of_words(name.iter());
        }
        let purpose = words::split(purpose);
        operations.add(Self::of_words(purpose.iter().filter(|it| !is_noun(it))));
        for parameter in tool::parameters(&tool.input_schema()) {
            let values = parameter.enum_values.iter().flat_map(|it| words::split(it));
            operations.add(Self::of_words(values.collect::<Vec<_>>().iter()));
        }
        for request in requests {
            operations.add(Self::of_request(request));
        }
        operations
    }

    /// Returns true if one of these may be one of the others.
    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 == 0 || other.0 == 0 || self.0 & other.0 != 0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn of_words<'a>(words: impl Iterator<Item = &'a words::Word>) -> Self {
        let rows = words.filter_map(|it| {
            let rows = &VOCABULARY.operations;
            rows.get(&it.exact).or_else(|| rows.get(&it.stem))
        });
        Self(rows.fold(0, |all, row| all | row))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool::{Tool, ToolRef};

    use super::*;
    use crate::Entry;

    fn of_tool(name: &str, description: &str, requests: &[&'static str]) -> Operations {
        let json =
            json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
        let at = ToolRef::new("any".parse().unwrap(), name);
        let entry = Entry {
            requests: requests.iter().map(|it| (*it).into()).collect(),
            ..Entry::plain(at, Tool::parse(&json.to_string()).unwrap())
        };
        entry.operations()
    }

    #[test]
    fn a_request_names_its_operation_first() {
        let check = |text: &str, like: &str| {
            let expected = Operations::of_request(like);
            assert_eq!(Operations::of_request(text), expected, "{text}");
        };
        for text in [
            "please remove it",
            "I'd like to erase the old entry",
            "Wipe the disk",
        ] {
            check(text, "delete");
        }
        check("order the pizza", "reserve a seat");
        for text in [
            "order history",
            "books about trees",
            "order/list.ts is broken",
            "get it",
            "hm",
        ] {
            check(text, "");
        }
    }

    #[test]
    fn a_tool_does_what_its_name_its_purpose_and_its_requests_say() {
        let delete = Operations::of_request("delete");
        let check = |is_it: bool, name: &str, description: &str, requests: &[&'static str]| {
            let tool = of_tool(name, description, requests);
            assert_eq!(delete.meets(tool), is_it, "{name}: {description}");
        };
        check(true, "remove_song", "", &[]);
        check(false, "list_songs", "Lists songs", &[]);
        check(false, "list_messages", "Lists them", &[]);
        let send = Operations::of_request("send");
        assert!(!send.meets(of_tool("list_messages", "Lists them", &[])));
        assert!(send.meets(of_tool("post_message", "", &[])));
        check(true, "edit_songs", "Updates or deletes songs", &[]);
        check(true, "edit_songs", "Changes songs", &["erase the last one"]);
        check(true, "manage_songs", "Changes songs", &[]);
        check(true, "songs", "All about songs", &[]);
    }
}
