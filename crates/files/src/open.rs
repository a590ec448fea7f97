//! Opening files. Our files are private, and never opened through a link, which could lead to any other
//! file; files of other programs are opened only if they are regular files.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use crate::{open_to_read, system::open_ours};

/// Reads a text file of at most `bytes_max` bytes that anyone may have made. A link is not followed.
pub fn read_text_within(path: &Path, bytes_max: usize) -> io::Result<String> {
    if std::fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("it is a link"));
    }
    let mut text = String::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let mut file = open_to_read(path)?.take(limit.saturating_add(1));
    file.read_to_string(&mut text)?;
    if text.len() > bytes_max {
        return Err(io::Error::other(format!("it has over {bytes_max} bytes")));
    }
    Ok(text)
}

/// Opens a file for appending; creates it if it is missing.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    open_ours(File::options().append(true).create(true), path)
}

/// Opens a file that is used for its lock alone; creates it if it is missing.
pub(crate) fn open_to_lock(path: &Path) -> io::Result<File> {
    let options = &mut File::options();
    open_ours(options.write(true).truncate(false).create(true), path)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _};

    use super::{open_to_append, open_to_lock, read_text_within};
    use crate::open_to_read;

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        fs::write(&file, "x").unwrap();
        assert!(open_to_read(&file).is_ok());
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
        let why = |path: &std::path::Path| open_to_read(path).unwrap_err().to_string();
        assert_eq!(why(&pipe), "it is a pipe, not a file");
        assert_eq!(why(folder.path()), "it is a folder, not a file");
        assert_eq!(why("/dev/zero".as_ref()), "it is a device, not a file");
    }

    #[test]
    fn a_file_is_private_and_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        open_to_append(&file).unwrap().write_all(b"a").unwrap();
        open_to_append(&file).unwrap().write_all(b"b").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"ab");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        assert_eq!(read_text_within(&file, 2).unwrap(), "ab");
        assert!(read_text_within(&file, 1).is_err());
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(read_text_within(&link, 2).is_err());
        assert!(open_to_append(&link).is_err());
        assert!(open_to_lock(&link).is_err());
    }
}
