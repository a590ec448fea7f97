//! Files of others: read within a bound, written whole beside their place and then renamed.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use files::Replaced;
use sha2::{Digest as _, Sha256};

/// A larger file is no configuration. Claude Code keeps what was pasted into its own.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A file's text, or why it cannot be had.
pub(crate) fn read_file(path: &Path) -> Result<String, String> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let fail = |why: &str| format!("{}: {why}", path.display());
    let bytes = read().map_err(|error| fail(&error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fail("too large for a configuration"));
    }
    String::from_utf8(bytes).map_err(|_| fail("not UTF-8"))
}

/// Replaces a file that holds these bytes, or writes a new one. It keeps its mode, and its place if
/// a link leads there; a new one is private, for there may be secrets in it.
pub(crate) fn write(path: &Path, before: Option<&[u8]>, after: &[u8]) -> io::Result<()> {
    match files::replace_unchanged(path, before, after)? {
        Replaced::Yes => Ok(()),
        Replaced::ChangedMeanwhile => Err(io::Error::other("it was changed meanwhile; try again")),
    }
}

/// Takes a file away; where it lies, if a link leads there.
pub(crate) fn delete(path: &Path) -> io::Result<()> {
    match fs::remove_file(files::resolve(path)?) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The bytes of a file; none where it is not there.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a file's bytes are known by.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
