//! The form of a kept result: a head of one line, the texts one behind the other, the frame.
//!
//! The texts lie as they are, so that a part of them is read without reading the rest. The frame
//! is the result around them, as JSON: what stands before, between and behind them.

use std::io::{self, Write};

use excerpt::{Cut, Kind, tokens::digest};
use serde::{Deserialize, Serialize};

use super::Caller;
use crate::now;

/// A file with another number is not read.
pub(super) const FORMAT: u32 = 1;

/// A result that is about to be kept.
#[derive(Debug)]
pub struct Draft {
    pub owner: Caller,
    /// As the client called it.
    pub tool: String,
    pub max_tokens: usize,
    pub texts: Vec<(TextHead, String)>,
    /// Around the texts: one more than there are.
    pub frame: Vec<String>,
    pub parts: Vec<Cut>,
}

/// What a text is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct TextHead {
    pub bytes: usize,
    pub kind: Kind,
    /// It is a piece of the result's own JSON, and no text within a string.
    pub is_json: bool,
}

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    pub(super) format: u32,
    /// The client; none for a person.
    pub(super) owner: Option<String>,
    pub tool: String,
    /// Unix seconds.
    pub kept_at: u64,
    pub max_tokens: usize,
    pub texts: Vec<TextHead>,
    /// Where each part ends in the texts, in bytes, and what it costs.
    pub parts: Vec<(usize, usize)>,
    pub(super) frame_bytes: usize,
    /// Of all that follows.
    pub(super) digest: u64,
}

impl Head {
    pub fn text_bytes(&self) -> usize {
        self.texts.iter().map(|text| text.bytes).sum()
    }

    pub(super) fn belongs_to(&self, caller: &Caller) -> bool {
        is_owner(self.owner.as_deref(), caller)
    }
}

pub(super) fn is_owner(owner: Option<&str>, caller: &Caller) -> bool {
    match caller {
        Caller::Person => true,
        Caller::Client(name) => owner == Some(name),
    }
}

/// A digest of bytes however they are handed in.
#[derive(Debug, Default)]
pub(super) struct Checksum {
    digest: u64,
    rest: Vec<u8>,
}

/// Bytes that go into a digest at once.
const BLOCK_BYTES: usize = 64 * 1024;

impl Checksum {
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        while self.rest.len() + bytes.len() >= BLOCK_BYTES {
            let (first, others) = bytes.split_at(BLOCK_BYTES - self.rest.len());
            self.rest.extend_from_slice(first);
            self.digest = digest(self.digest, &self.rest);
            self.rest.clear();
            bytes = others;
        }
        self.rest.extend_from_slice(bytes);
    }

    pub(super) fn end(self) -> u64 {
        digest(self.digest, &self.rest)
    }
}

pub(super) fn write(file: &mut impl Write, draft: &Draft) -> io::Result<()> {
    let frame = serde_json::to_vec(&draft.frame).expect("texts are always JSON");
    let mut checksum = Checksum::default();
    for (_, text) in &draft.texts {
        checksum.add(text.as_bytes());
    }
    checksum.add(&frame);
    let head = Head {
        format: FORMAT,
        owner: match &draft.owner {
            Caller::Person => None,
            Caller::Client(name) => Some(name.to_string()),
        },
        tool: draft.tool.clone(),
        kept_at: now(),
        max_tokens: draft.max_tokens,
        texts: draft.texts.iter().map(|(head, _)| *head).collect(),
        parts: draft
            .parts
            .iter()
            .map(|cut| (cut.end, cut.tokens))
            .collect(),
        frame_bytes: frame.len(),
        digest: checksum.end(),
    };
    serde_json::to_writer(&mut *file, &head)?;
    file.write_all(b"\n")?;
    for (_, text) in &draft.texts {
        file.write_all(text.as_bytes())?;
    }
    file.write_all(&frame)
}
