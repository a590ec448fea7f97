//! The format of a kept result: a head of one line, the texts one after the other, the frame.
//!
//! The texts are stored unescaped, so that a part of them is read without reading the rest. The
//! frame is the result around them, as JSON: the pieces before, between and after them.

use files::clock::now_s;
use std::io::{self, Write};

use crc32fast::Hasher;
use excerpt::{Cut, Rooms, TextKind};
use serde::{Deserialize, Serialize};
use tool::ClientId;

/// The version of this format. A file with another version is not read: it is a day old at most, and
/// its tool can be called again.
pub(super) const FORMAT: u32 = 3;

/// A result to be kept. The fields of the same name in its head have the same meaning.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) owner: Option<ClientId>,
    pub(crate) max_tokens: usize,
    /// The texts that were cut, or could have been.
    pub(crate) texts: Vec<(TextHead, String)>,
    /// The JSON around the texts: one piece more than there are.
    pub(crate) frame: Vec<String>,
    pub(crate) parts: Parts,
    pub(crate) items: usize,
}

/// The parts of a result that is to be kept.
#[derive(Debug)]
pub(crate) enum Parts {
    /// The end of each.
    Cut(Vec<Cut>),
    /// The first reader cuts the texts, for parts of this room.
    Uncut(Rooms),
}

/// The facts of a text that are known without reading it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct TextHead {
    /// Its length.
    pub bytes: usize,
    /// The kind of the text, which decides where it is cut and how it is searched.
    pub kind: TextKind,
    /// It is a piece of the result's own JSON, and no text within a string.
    pub is_json: bool,
}

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultHead {
    pub(super) format: u32,
    /// The client that may read it; none for a person.
    pub(super) owner: Option<String>,
    /// When it was written, in Unix seconds.
    pub kept_at: u64,
    /// The budget of the first answer, which also limits each part, in tokens.
    pub max_tokens: usize,
    /// The texts in their order.
    pub texts: Vec<TextHead>,
    /// The end of each part in the texts, in bytes, and the cost of the part.
    pub parts: Vec<(usize, usize)>,
    /// If the texts are not cut yet: the room of the first part and of the others, in tokens.
    pub(super) rooms: Option<(usize, usize)>,
    /// The items of the whole.
    pub items: usize,
    pub(super) frame_bytes: usize,
    /// The checksum of everything after the head.
    pub(super) checksum: u32,
}

impl ResultHead {
    /// The bytes of all texts.
    pub fn text_bytes(&self) -> usize {
        self.texts.iter().map(|text| text.bytes).sum()
    }
}

/// Returns true if this client may read a result of this owner. A person at the command line may
/// read every result.
pub(super) fn may_read(client: Option<&ClientId>, owner: Option<&str>) -> bool {
    client.is_none_or(|client| owner == Some(&*client.name))
}

/// The end of each part in the texts, in bytes, and the cost of the part.
pub(super) type PartEnds = Vec<(usize, usize)>;

/// Returns the parts as a head has them.
pub(super) fn ends(parts: &[Cut]) -> PartEnds {
    parts.iter().map(|cut| (cut.end, cut.tokens)).collect()
}

pub(super) fn write(file: &mut impl Write, draft: &Draft) -> io::Result<()> {
    let frame = serde_json::to_vec(&draft.frame).expect("texts are always JSON");
    let mut checksum = Hasher::new();
    for (_, text) in &draft.texts {
        checksum.update(text.as_bytes());
    }
    checksum.update(&frame);
    let (parts, rooms) = match &draft.parts {
        Parts::Cut(parts) => (ends(parts), None),
        Parts::Uncut(rooms) => (Vec::new(), Some((rooms.first, rooms.others))),
    };
    let head = ResultHead {
        format: FORMAT,
        owner: draft.owner.as_ref().map(|it| it.name.to_string()),
        kept_at: now_s(),
        max_tokens: draft.max_tokens,
        texts: draft.texts.iter().map(|(head, _)| *head).collect(),
        parts,
        rooms,
        items: draft.items,
        frame_bytes: frame.len(),
        checksum: checksum.finalize(),
    };
    // The file has no buffer.
    let mut line = serde_json::to_vec(&head)?;
    line.push(b'\n');
    file.write_all(&line)?;
    for (_, text) in &draft.texts {
        file.write_all(text.as_bytes())?;
    }
    file.write_all(&frame)
}
