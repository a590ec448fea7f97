//! `pins.json`: the pins of all servers, in a separate file so that damage to the catalog does not
//! affect them.

use std::{collections::BTreeMap, fmt, io};

use serde::{Deserialize, Serialize};
use tool::Digest;

use crate::{
    catalog::{CATALOG, Records},
    disk::Disk,
    limits::{PINS_FORMAT, REMOVED_SERVERS_PINNED_MAX},
    pins::Pins,
    snapshot::SnapshotContent,
};

/// The pins of all servers, including removed ones. A server that is added under an old name is
/// compared with the definitions accepted under that name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PinBook {
    format: u32,
    servers: BTreeMap<String, Pins>,
    /// In the file, the reason why it was recreated; cleared when everything was reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trouble: Option<PinTrouble>,
    #[serde(skip)]
    nothing: Pins,
    /// True if the pins differ from the file.
    #[serde(skip)]
    is_new: bool,
}

/// The reason why pins cannot be trusted. No definition counts as accepted until a user has
/// reviewed all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PinTrouble {
    /// The file is not a valid pins file of any version.
    Damaged,
    /// The file is missing, although servers were surveyed.
    Missing,
    /// The file was damaged or missing and was replaced by a new one. Damaged content is kept in
    /// this file of the state folder.
    Replaced(Option<String>),
    /// The file was written by a newer version of this program, in this format. It is not changed.
    Newer(u32),
    /// The file system denies reading the file. It is not changed.
    Unreadable(String),
}

impl PinTrouble {
    /// Returns true if decisions can be saved.
    pub(crate) fn is_writable(&self) -> bool {
        !matches!(self, Self::Newer(_) | Self::Unreadable(_))
    }
}

impl fmt::Display for PinTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => write!(f, "{PINS} is damaged"),
            Self::Missing => write!(f, "{PINS} is missing"),
            Self::Replaced(None) => write!(f, "{PINS} was missing"),
            Self::Replaced(Some(aside)) => {
                write!(f, "{PINS} was damaged, its content is kept in {aside}")
            }
            Self::Newer(format) => write!(
                f,
                "{PINS} has format {format} of a newer version; this one reads format {PINS_FORMAT}"
            ),
            Self::Unreadable(why) => write!(f, "{PINS} cannot be read: {why}"),
        }
    }
}

/// Returns the format that a JSON text names, whatever else it has.
pub(crate) fn read_format(json: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let read: Format = serde_json::from_slice(json).ok()?;
    Some(read.format)
}

impl Records {
    pub(crate) fn read_with_pins(disk: &Disk) -> (Self, PinBook) {
        let mut records = Self::read(disk);
        let book = PinBook::read(disk, &mut records);
        (records, book)
    }
}

impl Pins {
    /// Looks for signs in the stored definitions of a server.
    pub(crate) fn with_signs(mut self, disk: &Disk, records: &Records, server: &str) -> Self {
        let record = records.servers.get(server);
        if let Some(kept) = record.and_then(|it| it.read_snapshot(disk)) {
            self.note_signs(&kept.definitions(), || records.names_of_others(server));
        }
        self
    }
}

impl PinBook {
    /// Reads the file. Migrates pins that an earlier version stored in the catalog, and adds the
    /// fields to their records that the earlier version did not write.
    pub(crate) fn read(disk: &Disk, records: &mut Records) -> Self {
        let mut book = match disk.read(PINS) {
            Ok(bytes) => Self::parse(&bytes).unwrap_or_else(|trouble| {
                if disk.is_newly_damaged(PINS) {
                    tracing::warn!(%trouble, "nothing counts as accepted");
                }
                Self::troubled(trouble)
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Records with digests were always written together with pins.
                let had_pins = records.servers.values().any(|it| it.digests.is_some());
                Self {
                    trouble: had_pins.then_some(PinTrouble::Missing),
                    ..Self::default()
                }
            }
            Err(error) => Self::troubled(PinTrouble::Unreadable(error.to_string())),
        };
        book.take_over(disk, records);
        book.complete_signs(disk, records);
        book
    }

    /// Looks for signs where nobody has yet: in definitions that an earlier version found changed, and in
    /// all definitions if the pins are lost.
    fn complete_signs(&mut self, disk: &Disk, records: &Records) {
        for name in records.servers.keys() {
            let pins = self.servers.get(name);
            if pins.map_or(self.trouble.is_some(), Pins::lacks_signs) {
                let pins = pins.cloned().unwrap_or_default();
                self.set(name, pins.with_signs(disk, records, name));
            }
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, PinTrouble> {
        let read = serde_json::from_slice::<Self>(bytes);
        let format = match &read {
            Ok(book) => Some(book.format),
            Err(_) => read_format(bytes),
        };
        if let Some(newer) = format.filter(|format| *format > PINS_FORMAT) {
            return Err(PinTrouble::Newer(newer));
        }
        read.map_err(|_| PinTrouble::Damaged)
    }

    fn troubled(trouble: PinTrouble) -> Self {
        Self {
            trouble: Some(trouble),
            ..Self::default()
        }
    }

    fn take_over(&mut self, disk: &Disk, records: &mut Records) {
        for (name, record) in &mut records.servers {
            if record.digests.is_some() || record.snapshot.is_none() {
                continue;
            }
            let kept = record.read_snapshot(disk);
            let now = kept.as_ref().map(SnapshotContent::definitions);
            let now = now.unwrap_or_default();
            if self.trouble.is_none() && !self.servers.contains_key(name) {
                let pins = match &record.legacy_pins {
                    Some(legacy) => Pins::of_legacy(legacy, &now),
                    // A record older than pins: its current definitions count as accepted.
                    None => Pins::of(&now),
                };
                self.servers.insert(name.clone(), pins);
                self.is_new = true;
            }
            if let Some(kept) = &kept {
                record.note_digests(&kept.tools);
            }
        }
    }

    /// Returns the pins of a server, or pins that accept nothing if the server is unknown.
    pub(crate) fn of(&self, server: &str) -> &Pins {
        self.servers.get(server).unwrap_or(&self.nothing)
    }

    pub(crate) fn get(&self, server: &str) -> Option<&Pins> {
        self.servers.get(server)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Pins)> {
        self.servers.iter()
    }

    pub(crate) fn set(&mut self, server: &str, pins: Pins) {
        if self.servers.get(server) != Some(&pins) {
            self.servers.insert(server.to_owned(), pins);
            self.is_new = true;
        }
    }

    pub(crate) fn remove(&mut self, server: &str) {
        self.is_new |= self.servers.remove(server).is_some();
    }

    /// Returns true if the pins differ from the file, and the file may be replaced.
    pub(crate) fn lacks_write(&self) -> bool {
        self.is_new && self.trouble.as_ref().is_none_or(PinTrouble::is_writable)
    }

    pub(crate) fn trouble(&self) -> Option<&PinTrouble> {
        self.trouble.as_ref()
    }

    /// Returns true if the first survey of a server accepts its definitions; false while the file,
    /// which may contain pins of that server, cannot be read.
    pub(crate) fn accepts_new_servers(&self) -> bool {
        matches!(self.trouble, None | Some(PinTrouble::Replaced(_)))
    }

    /// Clears the trouble after everything was reviewed.
    pub(crate) fn end_trouble(&mut self) {
        self.is_new |= self.trouble.take().is_some();
    }

    /// Removes the pins of the servers that were removed longest ago, if there are too many.
    pub(crate) fn bound(&mut self, is_there: impl Fn(&str) -> bool) {
        let removed = self.servers.iter().filter(|(name, _)| !is_there(name));
        let removed = removed.map(|(name, pins)| (pins.at, name.clone()));
        let mut removed: Vec<(u64, String)> = removed.collect();
        removed.sort_unstable();
        let surplus = removed.len().saturating_sub(REMOVED_SERVERS_PINNED_MAX);
        for (_, name) in &removed[..surplus] {
            self.remove(name);
        }
    }

    /// Writes both files, the pins first: a crash in between leaves pins without a record, but
    /// never a record without its pins.
    pub(crate) fn write_with(&mut self, disk: &Disk, records: &Records) -> io::Result<()> {
        self.write(disk, records)?;
        disk.write(CATALOG, records.to_text().as_bytes())
    }

    /// Writes the file if the pins changed. A damaged file is kept under another name; a file of a
    /// newer version is not changed.
    pub(crate) fn write(&mut self, disk: &Disk, records: &Records) -> io::Result<()> {
        match &self.trouble {
            Some(PinTrouble::Newer(_) | PinTrouble::Unreadable(_)) => return Ok(()),
            Some(PinTrouble::Damaged) => {
                let bytes = disk.read(PINS)?;
                let digest = Digest::of_bytes(&bytes).short(ASIDE_DIGITS);
                let aside = format!("pins-damaged-{digest}.json");
                disk.write(&aside, &bytes)?;
                self.begin_anew(Some(aside), records);
            }
            Some(PinTrouble::Missing) => self.begin_anew(None, records),
            Some(PinTrouble::Replaced(_)) | None => {}
        }
        if !self.is_new {
            return Ok(());
        }
        self.format = PINS_FORMAT;
        let text = serde_json::to_string(&self).expect("maps with text keys are always JSON");
        disk.write(PINS, text.as_bytes())?;
        self.is_new = false;
        Ok(())
    }

    /// Replaces the file; all definitions of all known servers wait for a review.
    fn begin_anew(&mut self, aside: Option<String>, records: &Records) {
        self.trouble = Some(PinTrouble::Replaced(aside));
        for name in records.servers.keys() {
            self.servers.entry(name.clone()).or_default();
        }
        self.is_new = true;
    }
}

pub(crate) const PINS: &str = "pins.json";

/// The number of digest digits in the name of a damaged file that was moved aside; no check relies
/// on it.
const ASIDE_DIGITS: usize = 12;
