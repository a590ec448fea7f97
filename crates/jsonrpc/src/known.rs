//! The strings that decide how a result is treated. They are noted while a message is scanned, so that a
//! long result is not searched once for each.

/// A string whose presence decides how a result is treated: mostly the name of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownString {
    /// `input_required`, the type of a result that asks for input.
    InputRequired,
    /// `isError`.
    IsError,
    /// `structuredContent`.
    StructuredContent,
    /// `taskId`.
    TaskId,
    /// `uri`.
    Uri,
}

impl KnownString {
    /// Returns the string as JSON.
    pub(crate) fn quoted(self) -> &'static str {
        match self {
            Self::InputRequired => r#""input_required""#,
            Self::IsError => r#""isError""#,
            Self::StructuredContent => r#""structuredContent""#,
            Self::TaskId => r#""taskId""#,
            Self::Uri => r#""uri""#,
        }
    }

    /// Reads the bytes between the quotes. A string that contains an escape is none of them.
    fn read(bytes: &[u8]) -> Option<Self> {
        Some(match bytes {
            b"input_required" => Self::InputRequired,
            b"isError" => Self::IsError,
            b"structuredContent" => Self::StructuredContent,
            b"taskId" => Self::TaskId,
            b"uri" => Self::Uri,
            _ => return None,
        })
    }
}

/// The known strings in a JSON text, at any depth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KnownStrings(u8);

impl KnownStrings {
    pub(crate) fn note(&mut self, bytes: &[u8]) {
        if let Some(known) = KnownString::read(bytes) {
            self.0 |= 1 << known as u8;
        }
    }

    pub(crate) fn contains(self, known: KnownString) -> bool {
        self.0 & 1 << known as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::KnownString::{self, InputRequired, IsError, StructuredContent, TaskId, Uri};
    use crate::{Json, Message};

    const ALL: [KnownString; 5] = [InputRequired, IsError, StructuredContent, TaskId, Uri];

    #[track_caller]
    fn check(line: &'static str, expected: &[KnownString]) {
        let line = Bytes::from_static(line.as_bytes());
        let message = Message::parse(&line).expect("a message");
        let result = message.result.expect("a result");
        let scanned = Json::part_of_message(&line, result, &message);
        let searched = Json::part_of(&line, result);
        assert_eq!(scanned, searched);
        for known in ALL {
            let is_there = expected.contains(&known);
            assert_eq!(scanned.may_contain(known), is_there, "{known:?}, scanned");
            assert_eq!(searched.may_contain(known), is_there, "{known:?}, searched");
        }
    }

    #[test]
    fn a_string_is_known_at_any_depth_and_only_as_a_whole() {
        check(r#"{"result":{"isError":true}}"#, &[IsError]);
        check(
            r#"{"result":{"a":[[{"uri" : 1}],"taskId"],"structuredContent":{},"resultType":"input_required"}}"#,
            &[InputRequired, StructuredContent, TaskId, Uri],
        );
        check(
            r#"{"result":{"content":[{"type":"text","text":"\"uri\", isError, taskId"}]}}"#,
            &[],
        );
        check(r#"{"result":{"uris":"isErrors","":"is\u0045rror"}}"#, &[]);
    }

    #[test]
    fn a_string_beside_the_result_counts_too() {
        let line = Bytes::from_static(br#"{"uri":1,"result":{}}"#);
        let message = Message::parse(&line).expect("a message");
        let result = message.result.expect("a result");
        assert!(Json::part_of_message(&line, result, &message).may_contain(Uri));
        assert!(!Json::part_of(&line, result).may_contain(Uri));
    }
}
