//! The audit log as people read it, and the proof that it is as it was written.

use std::{fs::File, io, io::BufRead as _, io::BufReader, path::Path};

use serde_json::Value;

use super::{
    line::{BEGINNING, digest_of, number_in, parted},
    segments::list_segments,
};
use crate::clock::show_time;

/// Which lines are read.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Not before, in unix milliseconds.
    pub since_ms: Option<u64>,
    /// Of the client of this name.
    pub client: Option<String>,
    /// Of this server.
    pub server: Option<String>,
    /// Of this tool, by its own name.
    pub tool: Option<String>,
}

impl Filter {
    fn lets_through(&self, line: &Value) -> bool {
        let is = |key: &str, wanted: &Option<String>| {
            let wanted = wanted.as_deref();
            wanted.is_none_or(|wanted| {
                line[key]
                    .as_str()
                    .is_some_and(|it| it.eq_ignore_ascii_case(wanted))
            })
        };
        // Times in this form are in the order of their text.
        let since = self.since_ms.map(show_time);
        let is_late =
            since.is_none_or(|since| line["at"].as_str().is_some_and(|at| at >= since.as_str()));
        is_late
            && is("client", &self.client)
            && is("server", &self.server)
            && is("tool", &self.tool)
    }
}

/// Hands over every line that the filter lets through, the oldest first. A line that is no JSON is
/// passed over.
pub fn read(folder: &Path, filter: &Filter, mut take: impl FnMut(Value)) -> io::Result<()> {
    for segment in list_segments(folder)? {
        for line in BufReader::new(File::open(segment)?).lines() {
            let line: Option<Value> = serde_json::from_str(&line?).ok();
            let line = line.filter(|line| line["n"].is_u64() && filter.lets_through(line));
            line.into_iter().for_each(&mut take);
        }
    }
    Ok(())
}

/// A log that is as it was written, as far as it goes.
#[derive(Debug, PartialEq, Eq)]
pub struct Verified {
    /// How many lines there are.
    pub lines: u64,
    /// The number of the first; those before made room.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// The digest of the last: whoever keeps it elsewhere can tell later that none behind it was
    /// taken away.
    pub digest: String,
}

/// The first place where a log is not what was written.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    /// The name of the file.
    pub file: String,
    /// The line in it, counted from 1.
    pub line: u64,
    /// What is wrong there.
    pub why: &'static str,
}

/// Reads the whole log and proves every line by the one before.
pub fn verify(folder: &Path) -> io::Result<Result<Verified, Broken>> {
    let mut chain = Chain::default();
    for segment in list_segments(folder)? {
        let file = segment
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut reader = BufReader::new(File::open(&segment)?);
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            if reader.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            if let Err(why) = chain.follow(&bytes, line == 1) {
                return Ok(Err(Broken { file, line, why }));
            }
        }
    }
    Ok(Ok(Verified {
        lines: chain.lines,
        first: chain.first.unwrap_or(0),
        last: chain.number.unwrap_or(0),
        digest: chain.digest.unwrap_or_else(|| BEGINNING.to_owned()),
    }))
}

#[derive(Default)]
struct Chain {
    digest: Option<String>,
    first: Option<u64>,
    number: Option<u64>,
    lines: u64,
}

impl Chain {
    fn follow(&mut self, line: &[u8], is_head: bool) -> Result<(), &'static str> {
        let line = line.strip_suffix(b"\n").ok_or("it breaks off")?;
        let line = std::str::from_utf8(line).map_err(|_| "it is no text")?;
        let (body, digest) = parted(line).ok_or("it carries no digest")?;
        let before = match (&self.digest, is_head) {
            (None, true) => follows(&body).ok_or(
                "it does not say which line of the file before it follows, so it was changed",
            )?,
            (Some(before), true) if follows(&body).as_ref() != Some(before) => {
                return Err("lines before it are missing");
            }
            (None, false) => return Err("the beginning is missing"),
            (Some(before), _) => before.clone(),
        };
        if digest_of(&before, &body) != digest {
            return Err(
                "it or the line before it was changed, or a line between them was taken out",
            );
        }
        self.digest = Some(digest.to_owned());
        if is_head {
            return Ok(());
        }
        let number = number_in(line).ok_or("it has no number")?;
        if self.number.is_some_and(|before| number != before + 1) {
            return Err("lines before it are missing");
        }
        self.first.get_or_insert(number);
        self.number = Some(number);
        self.lines += 1;
        Ok(())
    }
}

fn follows(body: &str) -> Option<String> {
    let digest = body.strip_prefix("{\"follows\":\"")?.strip_suffix("\"}")?;
    Some(digest.to_owned())
}
