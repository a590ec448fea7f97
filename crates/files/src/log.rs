//! A log of bounded size that several processes write to.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::{FileId, folder::own_folder, open::open_to_append};

/// The size at which a log is rotated, and the previous rotated log is removed: small enough for a
/// person to read, and too small to fill a disk.
pub const LOG_BYTES_MAX: u64 = 1024 * 1024;

/// A log of bounded size for callers that write whole lines. Blocks while the disk is written.
#[derive(Debug)]
pub struct BoundedLog {
    path: PathBuf,
    file: Option<File>,
    /// The last write failed, perhaps in the middle of a line.
    is_torn: bool,
}

impl BoundedLog {
    /// Opens no file yet: a log is created with its first line.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            is_torn: false,
        }
    }

    /// The path of the newest of the two files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends whole lines. Lines that do not fit on the disk are lost; the next call tries again.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let written = self.try_append(lines);
        self.is_torn = written.is_err();
        written
    }

    fn try_append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut file = self.current()?;
        if file.metadata()?.len() + lines.len() as u64 > LOG_BYTES_MAX {
            self.rotate(&file)?;
            file = self.current()?;
        }
        if self.is_torn {
            file.write_all(b"\n")?;
        }
        file.write_all(lines)?;
        self.file = Some(file);
        Ok(())
    }

    /// Returns the file that is under the log's name now. Another process may have rotated ours.
    fn current(&mut self) -> io::Result<File> {
        match self.file.take() {
            Some(file) if self.is_current(&file) => Ok(file),
            _ => {
                if let Some(folder) = self.path.parent() {
                    own_folder(folder)?;
                }
                open_to_append(&self.path)
            }
        }
    }

    fn is_current(&self, file: &File) -> bool {
        match (FileId::of_target(&self.path), FileId::of_file(file)) {
            (Ok(named), Ok(held)) => named == held,
            _ => false,
        }
    }

    /// Only one of several processes rotates the file: the others find it rotated, or go on in the old
    /// file.
    fn rotate(&self, file: &File) -> io::Result<()> {
        if file.try_lock().is_ok() && self.is_current(file) {
            fs::rename(&self.path, put_aside(&self.path))?;
        }
        Ok(())
    }
}

/// The path of a rotated log.
pub fn put_aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{BoundedLog, LOG_BYTES_MAX, put_aside};
    use crate::is_private;

    fn line(name: &str, kib: usize) -> Vec<u8> {
        format!("{name}{}\n", "x".repeat(kib * 1024)).into_bytes()
    }

    #[test]
    fn a_full_log_is_put_aside_once_by_whoever_finds_it_full() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/notes.log");
        let (mut ours, mut theirs) = (BoundedLog::new(path.clone()), BoundedLog::new(path.clone()));
        ours.append(&line("1", 300)).unwrap();
        theirs.append(&line("2", 300)).unwrap();
        ours.append(&line("3", 300)).unwrap();
        assert!(!put_aside(&path).exists());
        theirs.append(&line("4", 300)).unwrap();
        ours.append(&line("5", 300)).unwrap();

        let firsts = |path: &Path| -> String {
            let text = fs::read_to_string(path).unwrap();
            text.lines().map(|line| &line[..1]).collect()
        };
        assert_eq!(firsts(&put_aside(&path)), "123");
        assert_eq!(firsts(&path), "45");
        for path in [path.as_path(), path.parent().unwrap()] {
            assert!(
                is_private(&fs::metadata(path).unwrap()),
                "{}",
                path.display()
            );
        }
    }

    #[test]
    fn two_files_of_bounded_size_are_all_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = BoundedLog::new(path.clone());
        for number in 0..50 {
            log.append(&line(&format!("{number} "), 100)).unwrap();
        }
        for path in [&path, &put_aside(&path)] {
            assert!(fs::metadata(path).unwrap().len() <= LOG_BYTES_MAX);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(fs::read_to_string(&path).unwrap().contains("49 x"));
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_written_is_lost_and_the_next_line_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = BoundedLog::new(path.clone());
        log.append(b"first\n").unwrap();
        // A folder in its place cannot be written to.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(log.append(b"lost\n").is_err());
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "half a li").unwrap();
        log.append(b"second\n").unwrap();
        log.append(b"third\n").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "half a li\nsecond\nthird\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_a_log_gets_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, path) = (folder.path().join("victim"), folder.path().join("log"));
        fs::write(&victim, "").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        assert!(BoundedLog::new(path).append(b"line\n").is_err());
        assert_eq!(fs::read(&victim).unwrap(), b"");
    }
}
