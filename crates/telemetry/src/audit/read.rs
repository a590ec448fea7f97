//! Reading the audit log, and verifying that it is unchanged.

use std::{fs::File, io, io::BufRead as _, io::BufReader, path::Path};

use files::Lock;
use serde_json::Value;

use super::{
    anchor::{Anchor, anchor_path},
    line::{BEGINNING, digest_of, followed, number_in, split_line},
    segments::{LOCK, list_segments, segment_number, segment_path},
};
use crate::{outcome::is_error, stats::COMMAND_LINE};
use files::clock::show_time;

/// The lines that are read.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only calls at or after this time, in unix milliseconds.
    pub since_ms: Option<u64>,
    /// Only calls before this time.
    pub until_ms: Option<u64>,
    /// Only calls of the session with this number.
    pub session: Option<u64>,
    /// Only calls of the client with this name; empty, or [`crate::COMMAND_LINE`]: of a person there.
    pub client: Option<String>,
    /// Only calls that this token or subject authorized: `token NAME`, `oauth SUBJECT`, or the name
    /// alone.
    pub caller: Option<String>,
    /// Only calls of this server.
    pub server: Option<String>,
    /// Only calls of this tool or prompt, by its name on the server, or of this resource.
    pub tool: Option<String>,
    /// Only calls that took at least so many milliseconds.
    pub slow_ms: Option<u64>,
    /// Only calls that are errors, and refused credentials.
    pub failures: bool,
    /// Only calls that the rule with this number decided.
    pub rule: Option<u64>,
    /// Only calls with this outcome.
    pub outcome: Option<String>,
    /// Only calls whose result was redacted.
    pub redacted: bool,
    /// Only lines with a smaller number.
    pub before: Option<u64>,
}

impl Filter {
    fn lets_through(&self, line: &Value) -> bool {
        let client = self.client.as_deref();
        let client = client.map(|it| if it == COMMAND_LINE { "" } else { it });
        // Times in this format sort like text.
        let (since, until) = (self.since_ms.map(show_time), self.until_ms.map(show_time));
        let is_at = |fits: &dyn Fn(&str) -> bool| line["at"].as_str().is_some_and(fits);
        let number = |key: &str| line[key].as_u64();
        since.is_none_or(|since| is_at(&|at| at >= since.as_str()))
            && until.is_none_or(|until| is_at(&|at| at < until.as_str()))
            && (self.before).is_none_or(|before| number("n").is_some_and(|n| n < before))
            && (self.session).is_none_or(|session| number("session") == Some(session))
            && is_named(&line["client"], client)
            && self.fits_caller(line["caller"].as_str().unwrap_or_default())
            && is_named(&line["server"], self.server.as_deref())
            && self.fits_tool(line)
            && (self.rule).is_none_or(|rule| number("rule") == Some(rule))
            && is_named(&line["outcome"], self.outcome.as_deref())
            && (!self.redacted || number("redacted").is_some())
            && (self.slow_ms).is_none_or(|least| number("ms").is_some_and(|ms| ms >= least))
            && (!self.failures || line["outcome"].as_str().is_some_and(is_error))
    }

    /// The statistics count prompts together, and resources.
    fn fits_tool(&self, line: &Value) -> bool {
        let Some(wanted) = self.tool.as_deref() else {
            return true;
        };
        ["tool", "prompt", "resource"].iter().any(|kind| {
            let name = line[*kind].as_str();
            name.is_some_and(|it| it.eq_ignore_ascii_case(wanted) || wanted == format!("({kind}s)"))
        })
    }

    fn fits_caller(&self, caller: &str) -> bool {
        let name = caller.split_once(' ').map_or(caller, |(_, name)| name);
        self.caller
            .as_deref()
            .is_none_or(|wanted| !caller.is_empty() && [caller, name].contains(&wanted))
    }
}

/// Returns true if nothing is wanted, or a text that differs at most in upper and lower case.
fn is_named(value: &Value, wanted: Option<&str>) -> bool {
    let is = |wanted| {
        let name = value.as_str();
        name.is_some_and(|it| it.eq_ignore_ascii_case(wanted))
    };
    wanted.is_none_or(is)
}

/// Calls `take` with every line that matches the filter, the oldest first. Skips lines that are not
/// JSON.
pub fn read(folder: &Path, filter: &Filter, mut take: impl FnMut(Value)) -> io::Result<()> {
    for segment in list_segments(folder)? {
        for line in BufReader::new(File::open(segment)?).split(b'\n') {
            let line: Option<Value> = serde_json::from_slice(&line?).ok();
            let line = line.filter(|line| is_record(line) && filter.lets_through(line));
            line.into_iter().for_each(&mut take);
        }
    }
    Ok(())
}

/// Calls `take` with every line that matches the filter, the newest first, until it returns false.
/// Reads one segment at a time, so a caller that stops early reads little.
pub fn read_newest(
    folder: &Path,
    filter: &Filter,
    mut take: impl FnMut(Value) -> bool,
) -> io::Result<()> {
    let since = filter.since_ms.map(show_time);
    let is_before = |first: u64| filter.before.is_none_or(|before| first < before);
    for segment in list_segments(folder)?.iter().rev() {
        if !segment_number(segment).is_some_and(is_before) {
            continue;
        }
        let text = std::fs::read(segment)?;
        for line in text.rsplit(|byte| *byte == b'\n') {
            let line: Option<Value> = serde_json::from_slice(line).ok();
            let Some(line) = line.filter(is_record) else {
                continue;
            };
            let is_older =
                |since: &String| line["at"].as_str().is_some_and(|at| at < since.as_str());
            if since.as_ref().is_some_and(is_older) {
                return Ok(());
            }
            if filter.lets_through(&line) && !take(line) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Returns true for the line of a call, or of calls that were lost.
fn is_record(line: &Value) -> bool {
    line["n"].is_u64() && line["log_of"].is_null()
}

/// The result for a log that is unchanged.
#[derive(Debug, PartialEq, Eq)]
pub struct Verified {
    /// The number of lines.
    pub lines: u64,
    /// The number of the first line; the lines before it were removed to make room.
    pub first: u64,
    /// The number of the last line.
    pub last: u64,
    /// The digest of the last line. Stored elsewhere, it later proves that the whole log was not
    /// replaced.
    pub digest: String,
    /// The number of writes that a process did not finish, because it was killed or the disk was full.
    pub unfinished: u64,
    /// The number of the first line that the anchor counted. Lines before it could have been removed
    /// from the end of the log at that time without being detected.
    pub anchored_since: u64,
}

/// The first place where a log was changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    /// The name of the file.
    pub file: String,
    /// The line in it, counted from 1.
    pub line: u64,
    /// A description of the error.
    pub why: String,
}

/// Reads the whole log, checks every line against the digest of the line before, and compares the log
/// with its anchor.
pub fn verify(folder: &Path) -> io::Result<Result<Verified, Broken>> {
    // With the lock, no segment is removed and no line appended meanwhile. A read-only log is verified
    // without it.
    let turn = folder.is_dir().then(|| Lock::take(&folder.join(LOCK)));
    let mut chain = Chain {
        anchor: Anchor::read(folder)?,
        ..Chain::default()
    };
    for segment in list_segments(folder)? {
        chain.begin(&segment);
        let mut reader = BufReader::new(File::open(&segment)?);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes)? > 0 {
            if let Err(broken) = chain.follow(&bytes) {
                return Ok(Err(broken));
            }
            bytes.clear();
        }
    }
    drop(turn);
    Ok(chain.end(folder))
}

/// The state of reading the log.
#[derive(Default)]
struct Chain {
    anchor: Option<Anchor>,
    /// The file that is being read.
    file: String,
    line: u64,
    digest: Option<String>,
    first: Option<u64>,
    number: Option<u64>,
    lines: u64,
    /// The bytes that were read since the last complete line.
    torn: Option<Torn>,
    unfinished: u64,
}

/// Bytes that are not a line of the log. They are the rest of an unfinished write if the next line says
/// so, or if they are at the end of the log.
struct Torn {
    bytes: u64,
    broken: Broken,
}

impl Chain {
    fn begin(&mut self, segment: &Path) {
        let name = segment.file_name().unwrap_or_default();
        self.file = name.to_string_lossy().into_owned();
        self.line = 0;
    }

    fn follow(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.line += 1;
        if self.line == 1
            && let Some(torn) = self.torn.take()
        {
            return Err(torn.broken);
        }
        match read_line(bytes) {
            Ok((line, body, digest)) => self.follow_line(line, &body, digest),
            Err(why) => {
                let broken = self.broken(why);
                let torn = self.torn.get_or_insert(Torn { bytes: 0, broken });
                torn.bytes += bytes.len() as u64;
                Ok(())
            }
        }
    }

    fn follow_line(&mut self, line: &str, body: &str, digest: &str) -> Result<(), Broken> {
        let followed = followed(body);
        if let Some(torn) = self.torn.take() {
            if followed.is_none_or(|(_, bytes)| bytes != torn.bytes) {
                return Err(torn.broken);
            }
            self.unfinished += 1;
        }
        let is_head = followed.is_some();
        let before = match (&self.digest, followed) {
            (None, Some((before, _))) => before.to_owned(),
            (None, None) if self.line == 1 => {
                return Err(self.broken(
                    "it does not name the line of the previous file that it follows, so it was changed",
                ));
            }
            (None, None) => return Err(self.broken("the beginning is missing")),
            (Some(digest), Some((before, _))) if before != digest => {
                return Err(self.broken("lines before it are missing"));
            }
            (Some(digest), _) => digest.clone(),
        };
        if digest_of(&before, body) != digest {
            return Err(self.broken(
                "it or the line before it was changed, or a line between them was removed",
            ));
        }
        self.digest = Some(digest.to_owned());
        if is_head {
            return Ok(());
        }
        let number = number_in(line).ok_or_else(|| self.broken("it has no number"))?;
        if self.number.is_some_and(|before| number != before + 1) {
            return Err(self.broken("lines before it are missing"));
        }
        self.first.get_or_insert(number);
        self.number = Some(number);
        self.lines += 1;
        self.compare(number, digest)
    }

    /// Compares a line with the anchor.
    fn compare(&self, number: u64, digest: &str) -> Result<(), Broken> {
        let Some(anchor) = &self.anchor else {
            return Ok(());
        };
        if self.first == Some(number) && number > anchor.first {
            let (first, last) = (anchor.first, number - 1);
            return Err(self.broken(format!("lines {first} to {last} before it are missing")));
        }
        if number == anchor.last && digest != anchor.digest {
            return Err(self.broken("it is not the line that was written: the log was replaced"));
        }
        Ok(())
    }

    fn end(mut self, folder: &Path) -> Result<Verified, Broken> {
        let last = self.number.unwrap_or(0);
        if let Some(anchor) = self.anchor.take_if(|anchor| last < anchor.last) {
            if let Some(torn) = self.torn {
                return Err(torn.broken);
            }
            let first = anchor.first.max(last + 1);
            if self.file.is_empty() {
                self.begin(&segment_path(folder, first));
            }
            self.line += 1;
            return Err(self.broken(format!(
                "the log ends before it: lines {first} to {} are missing",
                anchor.last
            )));
        }
        if self.anchor.is_none() && self.lines > 0 {
            self.line += 1;
            let anchor = anchor_path(folder);
            let anchor = anchor.file_name().unwrap_or_default().to_string_lossy();
            return Err(self.broken(format!(
                "the log ends before it, and without `{anchor}` beside the folder it is unknown \
                 if more was written; the next call creates a new one, which counts from then on"
            )));
        }
        Ok(Verified {
            lines: self.lines,
            first: self.first.unwrap_or(0),
            last,
            digest: self.digest.unwrap_or_else(|| BEGINNING.to_owned()),
            unfinished: self.unfinished + u64::from(self.torn.is_some()),
            anchored_since: self.anchor.map_or(0, |anchor| anchor.since),
        })
    }

    fn broken(&self, why: impl Into<String>) -> Broken {
        Broken {
            file: self.file.clone(),
            line: self.line,
            why: why.into(),
        }
    }
}

/// Splits a line into its text, body and digest. The error says why it is not a line of the log.
fn read_line(bytes: &[u8]) -> Result<(&str, String, &str), &'static str> {
    let line = bytes.strip_suffix(b"\n").ok_or("it is incomplete")?;
    let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8")?;
    let (body, digest) = split_line(line).ok_or("it has no digest")?;
    Ok((line, body, digest))
}
