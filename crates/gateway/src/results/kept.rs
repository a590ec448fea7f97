//! A result that is kept, opened to be read in parts. Nothing here holds more of it in memory
//! than is asked for.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    HandleError,
    form::{Checksum, FORMAT, Head},
};

/// The longest head, in bytes: a result of a million blocks has one like this.
const HEAD_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// What stands before the text of a result that is hardly more.
const ONE_TEXT: &str = r#"{"content":[{"type":"text","text":"#;

const READ_BYTES: usize = 64 * 1024;

/// A whole result.
#[derive(Debug)]
pub struct Kept {
    pub head: Head,
    pub path: PathBuf,
    file: fs::File,
    /// Where the texts begin.
    start: u64,
}

impl Kept {
    /// Opens a file and proves it whole.
    pub(super) fn open(path: &Path) -> Result<Self, HandleError> {
        let damaged = |why: String| HandleError::Damaged { tool: None, why };
        let mut kept = Self::begin(path).map_err(|error| damaged(error.to_string()))?;
        kept.prove().map_err(|error| HandleError::Damaged {
            tool: Some(kept.head.tool.clone()),
            why: error.to_string(),
        })?;
        Ok(kept)
    }

    pub(super) fn read_head(path: &Path) -> io::Result<Head> {
        Self::begin(path).map(|kept| kept.head)
    }

    /// Opens again what was proven a moment ago.
    pub fn reopen(path: &Path) -> io::Result<Self> {
        Self::begin(path)
    }

    fn begin(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let mut line = Vec::new();
        let mut reader = BufReader::new(&file).take(HEAD_BYTES_MAX);
        reader.read_until(b'\n', &mut line)?;
        let head: Head = serde_json::from_slice(&line)?;
        if head.format != FORMAT {
            let why = format!("its form is {}, not {FORMAT}", head.format);
            return Err(io::Error::other(why));
        }
        Ok(Self {
            head,
            path: path.to_owned(),
            file,
            start: line.len() as u64,
        })
    }

    fn prove(&mut self) -> io::Result<()> {
        let whole = self.head.text_bytes() + self.head.frame_bytes;
        let length = self.file.metadata()?.len();
        if length != self.start + whole as u64 {
            return Err(io::Error::other("its length is not what it was"));
        }
        let mut checksum = Checksum::default();
        self.file.seek(SeekFrom::Start(self.start))?;
        let mut block = vec![0; READ_BYTES];
        loop {
            match self.file.read(&mut block)? {
                0 => break,
                count => checksum.add(&block[..count]),
            }
        }
        if checksum.end() != self.head.digest {
            return Err(io::Error::other("its content is not what it was"));
        }
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

    /// A range of the texts with a border at the beginning of each text within it.
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

    /// The texts one behind the other, from a byte on.
    pub fn reader(&self, from: usize) -> io::Result<impl io::BufRead + use<'_>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.start + from as u64))?;
        let left = self.head.text_bytes().saturating_sub(from);
        Ok(BufReader::with_capacity(READ_BYTES, file.take(left as u64)))
    }

    /// Writes the whole result as JSON, as it came but for how its texts are escaped.
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

    /// Whether there is nothing but one text.
    pub fn is_one_text(&mut self) -> bool {
        let is_plain = self.head.texts.len() == 1 && !self.head.texts[0].is_json;
        is_plain
            && self.frame().is_ok_and(|frame| frame[0] == ONE_TEXT)
            && self.frame().is_ok_and(|frame| !frame[1].starts_with("},{"))
    }

    fn frame(&mut self) -> io::Result<Vec<String>> {
        let at = self.start + self.head.text_bytes() as u64;
        self.file.seek(SeekFrom::Start(at))?;
        let mut frame = Vec::new();
        (&self.file).read_to_end(&mut frame)?;
        Ok(serde_json::from_slice(&frame)?)
    }
}
