//! Opening files of ours: for their owner alone, and never through a link.
//!
//! A link in the place of a file would have us write to whatever it names.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// Opens a file to write at its end; makes it if it is not there.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    open(File::options().append(true), path)
}

/// Opens a file that is there for its lock alone; makes it if it is not there.
pub(crate) fn open_to_lock(path: &Path) -> io::Result<File> {
    open(File::options().write(true).truncate(false), path)
}

fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let options = options.create(true).mode(0o600).custom_flags(no_link);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _};

    use super::{open_to_append, open_to_lock};

    #[test]
    fn a_file_is_private_and_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        open_to_append(&file).unwrap().write_all(b"a").unwrap();
        open_to_append(&file).unwrap().write_all(b"b").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"ab");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_to_append(&link).is_err());
        assert!(open_to_lock(&link).is_err());
    }
}
