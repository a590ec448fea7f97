//! Files of other programs: read with a size limit, and replaced atomically.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use files::Replaced;
use sha2::{Digest as _, Sha256};

/// The size limit of a file or a pasted text. Claude Code keeps pasted texts in its file; a list of
/// servers has some kilobytes.
const TEXT_MIB_MAX: u64 = 8;

/// Returns a file's text, or the reason why it cannot be read, with its path.
pub(crate) fn read_file(path: &Path) -> Result<String, String> {
    read_open(path).map_err(|why| format!("{}: {why}", path.display()))
}

/// Returns a file's text, or the reason why it cannot be read, for a caller that names the file.
pub(crate) fn read_open(path: &Path) -> Result<String, String> {
    let file = files::open_to_read(path).map_err(|error| error.to_string())?;
    let size = file.metadata().map(|about| about.len()).unwrap_or_default();
    read_stream(file, Some(size))
}

/// Returns the whole text of a stream whose size may be known, or the reason why it cannot be read.
pub(crate) fn read_stream(stream: impl io::Read, size: Option<u64>) -> Result<String, String> {
    let bytes = read_bounded(stream, size).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())
}

fn read_bounded(stream: impl io::Read, size: Option<u64>) -> io::Result<Vec<u8>> {
    let most = TEXT_MIB_MAX << 20;
    let too_large = |size: String| {
        io::Error::other(format!(
            "{size}; a configuration file may have at most {TEXT_MIB_MAX} MiB"
        ))
    };
    if let Some(size) = size.filter(|size| *size > most) {
        return Err(too_large(format!("it has {} MiB", size.div_ceil(1 << 20))));
    }
    let mut bytes = Vec::new();
    stream.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large("it has more".to_owned()));
    }
    Ok(bytes)
}

/// Replaces a file that has these bytes, or writes a new one. An existing file keeps its mode, and a
/// link to it is followed; a new file is private, because it may contain secrets.
pub(crate) fn write(path: &Path, before: Option<&[u8]>, after: &[u8]) -> io::Result<()> {
    match files::replace_unchanged(path, before, after)? {
        Replaced::Yes => Ok(()),
        Replaced::ChangedMeanwhile => {
            Err(io::Error::other("another program changed it; try again"))
        }
    }
}

/// Removes a file; if it is a link, its target.
pub(crate) fn delete(path: &Path) -> io::Result<()> {
    match fs::remove_file(files::resolve(path)?) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the bytes of a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match files::open_to_read(path) {
        Ok(file) => {
            let size = file.metadata()?.len();
            read_bounded(file, Some(size)).map(Some)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the digest that identifies the bytes of a file.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use std::{fs, io};

    use super::{TEXT_MIB_MAX, read, read_file, read_stream};

    #[test]
    fn no_more_is_read_than_the_limit_and_the_size_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.json");
        let file = fs::File::create(&path).unwrap();
        file.set_len((TEXT_MIB_MAX << 20) + 1).unwrap();
        let why = read_file(&path).unwrap_err();
        assert!(
            why.ends_with("it has 9 MiB; a configuration file may have at most 8 MiB"),
            "{why}"
        );
        assert!(read(&path).is_err());
        assert!(read_stream(io::repeat(b' '), None).is_err());
        file.set_len(TEXT_MIB_MAX << 20).unwrap();
        assert!(read_file(&path).is_ok());
    }
}
