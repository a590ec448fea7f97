//! A kept result, opened to be read in parts. No more of it is held in memory than is requested, except
//! while it is cut.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use crc32fast::Hasher;
use excerpt::{Rooms, TextPiece};
use serde::Deserialize;

use super::{
    error::HandleError,
    form::{FORMAT, ResultHead, ends},
};

/// The longest head, in bytes: that of a result with a million blocks.
const HEAD_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// The JSON before the text of a result with one text.
const ONE_TEXT: &str = r#"{"content":[{"type":"text","text":"#;

const READ_BYTES: usize = 64 * 1024;

/// A kept result, opened.
#[derive(Debug)]
pub struct KeptResult {
    /// The facts that are known without reading the texts.
    pub head: ResultHead,
    /// Its file.
    pub path: PathBuf,
    file: fs::File,
    /// The offset of the first text in the file.
    start: u64,
}

/// The one member that a head of any form has.
#[derive(Deserialize)]
struct Form {
    format: u32,
}

impl KeptResult {
    /// Opens a file and verifies its checksum. A file of another version counts as removed.
    pub(super) fn open(path: &Path) -> Result<Self, HandleError> {
        let damaged = |error: io::Error| HandleError::Damaged(error.to_string());
        let mut kept = Self::reopen(path).map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => HandleError::Gone,
            _ => damaged(error),
        })?;
        kept.verify().map_err(damaged)?;
        Ok(kept)
    }

    /// Opens a file and reads only its head: the file was verified a moment ago.
    pub fn reopen(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let mut line = Vec::new();
        let mut reader = BufReader::new(&file).take(HEAD_BYTES_MAX);
        reader.read_until(b'\n', &mut line)?;
        let Form { format } = serde_json::from_slice(&line)?;
        if format != FORMAT {
            let why = format!("its format is version {format}, not {FORMAT}");
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(Self {
            head: serde_json::from_slice(&line)?,
            path: path.to_owned(),
            file,
            start: line.len() as u64,
        })
    }

    fn verify(&mut self) -> io::Result<()> {
        let whole = self.head.text_bytes() + self.head.frame_bytes;
        let length = self.file.metadata()?.len();
        if length != self.start + whole as u64 {
            return Err(io::Error::other("its length has changed"));
        }
        let mut checksum = Hasher::new();
        self.file.seek(SeekFrom::Start(self.start))?;
        let mut block = vec![0; READ_BYTES];
        loop {
            match self.file.read(&mut block)? {
                0 => break,
                count => checksum.update(&block[..count]),
            }
        }
        if checksum.finalize() != self.head.checksum {
            return Err(io::Error::other("its content has changed"));
        }
        Ok(())
    }

    /// Finds the parts of a result that is not cut yet.
    pub(super) fn cut(&mut self) -> io::Result<()> {
        let Some((first, others)) = self.head.rooms else {
            return Ok(());
        };
        let places = 0..self.head.texts.len();
        let texts = places.map(|place| self.text(place));
        let texts = texts.collect::<io::Result<Vec<String>>>()?;
        let pieces = texts.iter().zip(&self.head.texts);
        let pieces = pieces.map(|(text, head)| TextPiece {
            text,
            kind: head.kind,
        });
        let pieces: Vec<TextPiece<'_>> = pieces.collect();
        self.head.parts = ends(&excerpt::split(&pieces, Rooms { first, others }));
        Ok(())
    }

    /// The bytes of a part; parts are counted from 1.
    pub fn part(&self, number: usize) -> Option<Range<usize>> {
        let place = number.checked_sub(1)?;
        let (end, _) = *self.head.parts.get(place)?;
        let start = place
            .checked_sub(1)
            .map_or(0, |before| self.head.parts[before].0);
        Some(start..end)
    }

    /// The number of parts.
    pub fn count_parts(&self) -> usize {
        self.head.parts.len()
    }

    /// The tokens of all parts.
    pub fn count_tokens(&self) -> usize {
        self.head.parts.iter().map(|(_, tokens)| tokens).sum()
    }

    /// A range of the texts, widened to whole characters.
    pub fn read(&mut self, range: Range<usize>) -> io::Result<String> {
        let all = self.head.text_bytes();
        let start = range.start.min(all).saturating_sub(3);
        let end = range.end.min(all).saturating_add(3).min(all);
        self.file.seek(SeekFrom::Start(self.start + start as u64))?;
        let mut bytes = vec![0; end.saturating_sub(start)];
        self.file.read_exact(&mut bytes)?;
        let is_inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
        let (mut from, mut to) = (range.start.min(all) - start, range.end.min(all) - start);
        while from > 0 && is_inside(from) {
            from -= 1;
        }
        while is_inside(to) {
            to += 1;
        }
        let cut = bytes.get(from..to).unwrap_or_default().to_vec();
        String::from_utf8(cut).map_err(io::Error::other)
    }

    /// A range of the texts, split at the beginning of each text within it.
    pub fn read_by_text(&mut self, range: Range<usize>) -> io::Result<Vec<String>> {
        let mut pieces = Vec::new();
        let mut start = 0;
        for text in self.head.texts.clone() {
            let end = start + text.bytes;
            let within = range.start.max(start)..range.end.min(end);
            if within.start < within.end {
                pieces.push(self.read(within)?);
            }
            start = end;
        }
        Ok(pieces)
    }

    /// One of the texts, whole.
    pub fn text(&mut self, place: usize) -> io::Result<String> {
        let before = self.head.texts[..place].iter().map(|text| text.bytes);
        let start: usize = before.sum();
        self.read(start..start + self.head.texts[place].bytes)
    }

    /// The texts one after the other, from a byte on.
    pub fn reader(&self, from: usize) -> io::Result<impl io::BufRead + use<'_>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.start + from as u64))?;
        let left = self.head.text_bytes().saturating_sub(from);
        Ok(BufReader::with_capacity(READ_BYTES, file.take(left as u64)))
    }

    /// Writes the whole result as JSON, unchanged except for the escapes in its texts.
    pub fn write_json(&mut self, to: &mut impl Write) -> io::Result<()> {
        let frame = self.frame()?;
        for (place, piece) in frame.iter().enumerate() {
            to.write_all(piece.as_bytes())?;
            let Some(head) = self.head.texts.get(place).copied() else {
                continue;
            };
            let text = self.text(place)?;
            if head.is_json {
                to.write_all(text.as_bytes())?;
            } else {
                serde_json::to_writer(&mut *to, &text)?;
            }
        }
        Ok(())
    }

    /// Returns true if the result is a single text and nothing else.
    pub fn is_one_text(&mut self) -> bool {
        let is_plain = self.head.texts.len() == 1 && !self.head.texts[0].is_json;
        let is_alone = |frame: Vec<String>| frame[0] == ONE_TEXT && !frame[1].starts_with("},{");
        is_plain && self.frame().is_ok_and(is_alone)
    }

    fn frame(&mut self) -> io::Result<Vec<String>> {
        let at = self.start + self.head.text_bytes() as u64;
        self.file.seek(SeekFrom::Start(at))?;
        let mut frame = Vec::new();
        (&self.file).read_to_end(&mut frame)?;
        Ok(serde_json::from_slice(&frame)?)
    }
}
