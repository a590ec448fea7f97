//! The end of the log: the place of the next line, and the digest that it follows.

use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use super::{
    anchor::Anchor,
    line::{BEGINNING, append_chained, followed, number_in, split_line},
    segments::{list_segments, segment_number, segment_path},
};

/// The number of bytes that are read from the end of a segment to find its last line; longer than any
/// line.
const TAIL_BYTES: u64 = 64 * 1024;

/// The end of the log, as this process left it or found it.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) segment: PathBuf,
    pub(super) bytes: u64,
    /// The number of the first line of the log.
    pub(super) first: u64,
    /// The number of the last line of the log.
    pub(super) number: u64,
    pub(super) digest: String,
    /// The number of bytes at the end that are not a line: a process died while it wrote them.
    pub(super) torn_bytes: u64,
    has_line_end: bool,
    /// True if the log has all lines of the anchor.
    pub(super) is_anchored: bool,
}

impl Tail {
    /// Finds the current end of the log; `ours` is the end as this process left it. If the log lacks
    /// lines that the anchor counts, it is continued after the anchor's last line, so that the gap
    /// stays visible.
    pub(super) fn find(
        folder: &Path,
        ours: Option<Self>,
        anchor: Option<&Anchor>,
    ) -> io::Result<Self> {
        let segments = list_segments(folder)?;
        let Some(newest) = segments.last() else {
            return Ok(Self::without_log(folder, anchor));
        };
        let bytes = fs::metadata(newest)?.len();
        let is_ours = |tail: &Self| {
            tail.segment == *newest
                && tail.bytes == bytes
                && anchor.is_some_and(|it| it.last == tail.number && it.digest == tail.digest)
        };
        if let Some(tail) = ours.filter(is_ours) {
            return Ok(tail);
        }
        let mut tail = Self::read(newest, bytes)?;
        tail.first = segments
            .first()
            .and_then(|it| segment_number(it))
            .unwrap_or(1);
        let Some(anchor) = anchor else {
            return Ok(tail);
        };
        if tail.digest == BEGINNING && tail.number == anchor.last {
            // No line of this segment was finished: the line before it is the last line of the anchor.
            tail.digest.clone_from(&anchor.digest);
        }
        tail.is_anchored = tail.reaches(&segments, anchor)?;
        if !tail.is_anchored {
            tail.number = tail.number.max(anchor.last);
            tail.digest.clone_from(&anchor.digest);
        }
        Ok(tail)
    }

    fn without_log(folder: &Path, anchor: Option<&Anchor>) -> Self {
        let number = anchor.map_or(0, |anchor| anchor.last);
        Self {
            segment: segment_path(folder, number + 1),
            bytes: 0,
            first: number + 1,
            number,
            digest: anchor.map_or(BEGINNING, |it| &it.digest).to_owned(),
            torn_bytes: 0,
            has_line_end: true,
            is_anchored: true,
        }
    }

    fn read(segment: &Path, bytes: u64) -> io::Result<Self> {
        let begin = bytes.saturating_sub(TAIL_BYTES);
        let mut file = File::open(segment)?;
        file.seek(SeekFrom::Start(begin))?;
        let mut end = Vec::new();
        file.take(bytes - begin).read_to_end(&mut end)?;
        let mut lines = end.split_inclusive(|byte| *byte == b'\n');
        if begin > 0 {
            // The rest of a line that begins earlier.
            lines.next();
        }
        let (mut torn_bytes, mut number, mut digest) = (0, None, None);
        for line in lines.rev() {
            // A line may be complete except for its line end.
            let text = std::str::from_utf8(line.strip_suffix(b"\n").unwrap_or(line)).ok();
            match text.and_then(|text| Some((text, split_line(text)?.1))) {
                Some((text, found)) => {
                    digest.get_or_insert_with(|| found.to_owned());
                    number = number_in(text);
                }
                None if digest.is_none() => torn_bytes += line.len() as u64,
                None => {}
            }
            if number.is_some() {
                break;
            }
        }
        let first = segment_number(segment).unwrap_or(1);
        Ok(Self {
            segment: segment.to_owned(),
            bytes,
            first,
            number: number.unwrap_or(first.saturating_sub(1)),
            digest: digest.unwrap_or_else(|| BEGINNING.to_owned()),
            torn_bytes,
            has_line_end: end.last().is_none_or(|byte| *byte == b'\n'),
            is_anchored: true,
        })
    }

    /// Returns true if the log holds the anchor's last line, or a line that follows it.
    fn reaches(&self, segments: &[PathBuf], anchor: &Anchor) -> io::Result<bool> {
        if self.number <= anchor.last && self.digest == anchor.digest {
            return Ok(self.number == anchor.last);
        }
        if self.number < anchor.last {
            return Ok(false);
        }
        for segment in segments.iter().rev() {
            for line in BufReader::new(File::open(segment)?).split(b'\n') {
                let line = String::from_utf8(line?).unwrap_or_default();
                let Some((body, digest)) = split_line(&line) else {
                    continue;
                };
                if number_in(&line) == Some(anchor.last) {
                    return Ok(digest == anchor.digest);
                }
                if followed(&body).is_some_and(|(before, _)| before == anchor.digest) {
                    return Ok(true);
                }
            }
            if segment_number(segment).is_some_and(|first| first <= anchor.last) {
                break;
            }
        }
        Ok(false)
    }

    /// Returns the end of the log at the start of the next segment.
    pub(super) fn next_segment(self, folder: &Path) -> Self {
        Self {
            segment: segment_path(folder, self.number + 1),
            bytes: 0,
            ..self
        }
    }

    /// Returns true if a process died while it wrote the end of this segment.
    pub(super) fn is_unfinished(&self) -> bool {
        self.torn_bytes > 0 || !self.has_line_end
    }

    /// Returns the missing line end; empty if it is not missing.
    pub(super) fn finish_line(&mut self) -> &'static str {
        if self.has_line_end {
            return "";
        }
        self.has_line_end = true;
        self.torn_bytes += u64::from(self.torn_bytes > 0);
        "\n"
    }

    /// Appends a line to `text`; if `counts` is true, it gets the next number.
    pub(super) fn add(&mut self, text: &mut String, body: &str, counts: bool) {
        self.digest = append_chained(&self.digest, body, text);
        self.number += u64::from(counts);
    }
}
