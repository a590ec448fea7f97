//! Files of others: read within a bound, written whole beside their place and then renamed.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use files::Unfinished;
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

/// Writes a file that is there, or a new one. It keeps its mode, and its place if a link leads
/// there; a new one is private, for there may be secrets in it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = resolve(path)?;
    let mode = fs::metadata(&target).map(|about| about.permissions()).ok();
    // Its folder may let us, but who made it read-only meant it.
    if mode.as_ref().is_some_and(Permissions::readonly) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is read-only",
        ));
    }
    if let Some(folder) = target.parent().filter(|folder| !folder.exists()) {
        files::own_folder(folder)?;
    }
    let mut file = Unfinished::begin(&target)?;
    file.write_all(bytes)?;
    file.sync()?;
    file.finish()?;
    if let Some(mode) = mode {
        fs::set_permissions(&target, mode)?;
    }
    files::sync_folder(&target)
}

/// Writes a file that must not be there yet, for its owner alone.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = Unfinished::begin(path)?;
    file.write_all(bytes)?;
    file.sync()?;
    file.finish_new()
}

/// Takes a file away; where it lies, if a link leads there.
pub(crate) fn delete(path: &Path) -> io::Result<()> {
    match fs::remove_file(resolve(path)?) {
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

/// Where a path leads: a link, also to a file that is not there yet, is followed.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(target) => Ok(target),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) => match fs::read_link(path) {
            Ok(target) => Ok(path.parent().unwrap_or(Path::new("")).join(target)),
            Err(_) => Ok(path.to_owned()),
        },
    }
}

/// What a file's bytes are known by.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
