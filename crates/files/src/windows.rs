//! Identities and kinds of files on Windows. Folders and files are private by the access list of the folder
//! that they are in, which they inherit: that of a user's profile admits the user, administrators and the
//! system.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    os::windows::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use tempfile::NamedTempFile;

use crate::folder_error::FolderError;

/// The mode bits of Unix, which Windows does not have.
pub(crate) const OF_OTHERS: u32 = 0;
pub(crate) const WRITE_OF_OTHERS: u32 = 0;

/// Flags of `CreateFileW`: open the link itself, and open folders too.
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const BACKUP_SEMANTICS: u32 = 0x0200_0000;

/// The wait for a program that reads a file to be replaced, and the interval between two attempts.
const RENAME_WAIT: Duration = Duration::from_millis(500);
const RENAME_REST: Duration = Duration::from_millis(5);

/// The errors while another program has a file open (`winerror.h`).
const ACCESS_DENIED: i32 = 5;
const SHARING_VIOLATION: i32 = 32;

/// The longest path that every program accepts without `\\?\` before it.
const PATH_CHARS_MAX: usize = 260;

/// The users whose folders and links are used. The access list decides that.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trusted {
    /// Our own user.
    Us,
    /// Our own user, and the administrators, who may do anything.
    UsAndRoot,
}

/// Returns a builder of folders, which inherit the access list of their parent.
pub(crate) fn private_builder() -> DirBuilder {
    DirBuilder::new()
}

/// Succeeds: a folder is protected by the access list that it inherits, which the user chose with the place.
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(crate) fn check_owner(_: &Path, _: &Metadata, _: Trusted) -> Result<(), FolderError> {
    Ok(())
}

/// Checks that it is a folder.
pub(crate) fn check_mode(_: &Path, about: &Metadata, _: u32) -> Result<(), FolderError> {
    if about.is_dir() {
        return Ok(());
    }
    Err(io::Error::from(io::ErrorKind::NotADirectory).into())
}

/// Opens a file of ours. Fails for a link.
pub(crate) fn open_ours(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // A lock needs more than the right to append.
    let file = options
        .read(true)
        .custom_flags(OPEN_REPARSE_POINT)
        .open(path)?;
    if file.metadata()?.is_symlink() {
        return Err(io::Error::other("it is a link"));
    }
    Ok(file)
}

/// Opens a file for temporary files of the user that stands for another file: a folder cannot be locked. Case
/// does not distinguish names.
pub(crate) fn open_to_lock_beside(place: &Path) -> io::Result<File> {
    let mut hasher = DefaultHasher::new();
    let place = std::path::absolute(place)?;
    place.to_string_lossy().to_lowercase().hash(&mut hasher);
    let name = format!("proxy-{:016x}.lock", hasher.finish());
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    open_ours(&mut options, &std::env::temp_dir().join(name))
}

/// Returns the path without links, and without `\\?\` before its disk, which people do not write.
pub(crate) fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    let path = fs::canonicalize(path)?;
    let plain = path.to_str().and_then(|it| it.strip_prefix(r"\\?\"));
    let plain = plain.filter(|it| it.as_bytes().get(1) == Some(&b':') && it.len() < PATH_CHARS_MAX);
    Ok(plain.map(PathBuf::from).unwrap_or(path))
}

/// Opens another program's file for reading, following links. Anything but a regular file is refused:
/// reading a device, such as `CON`, may never end.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    if path.is_dir() {
        return Err(io::Error::other("it is a folder, not a file"));
    }
    let file = File::open(path)?;
    let kind = winapi_util::file::typ(&file)?;
    if kind.is_disk() {
        return Ok(file);
    }
    let what = if kind.is_pipe() { "pipe" } else { "device" };
    Err(io::Error::other(format!("it is a {what}, not a file")))
}

/// Opens a file of ours; never follows a link. The access list of its folder keeps it private.
pub fn open_private(path: &Path) -> io::Result<File> {
    open_ours(File::options().read(true), path)
}

/// Returns true: the access list of its folder keeps a file private.
pub fn is_private(_: &Metadata) -> bool {
    true
}

/// Succeeds: a file inherits the access list of its folder.
pub fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns false: pipes have names of their own, `\\\\.\\pipe\\NAME`, and are in no folder.
pub fn is_pipe(_: &Metadata) -> bool {
    false
}

/// Variables that a program of this system needs in order to run, besides `PATH` and `HOME`.
pub const SYSTEM_VARIABLES: &[&str] = &[
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMMONPROGRAMFILES(X86)",
    "COMMONPROGRAMW6432",
    "COMPUTERNAME",
    "COMSPEC",
    "DRIVERDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "PUBLIC",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Returns the name of a variable in the form in which names are compared: upper case, because case does not
/// distinguish names.
pub fn variable_name(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Cow::Owned(name.to_ascii_uppercase());
    }
    Cow::Borrowed(name)
}

/// Returns the variables of this process whose names are Unicode, and `HOME`. Those whose names begin with
/// `=` are not of programs: the shell keeps the folder of each disk in them.
pub fn own_variables() -> impl Iterator<Item = (String, OsString)> {
    let home = std::env::var_os("HOME").is_none().then(find_home).flatten();
    let home = home.map(|home| ("HOME".to_owned(), home.into_os_string()));
    let all = std::env::vars_os().filter_map(|(name, value)| {
        let name = variable_name(name.to_str()?).into_owned();
        (!name.starts_with('=')).then_some((name, value))
    });
    all.chain(home)
}

/// The folders of programs if there is no `PATH`.
pub const PATH_DEFAULT: &str = r"C:\Windows\System32;C:\Windows";

/// Folders of programs that may be missing in `PATH`: folders of the home, then of the machine. There are
/// none of the machine, because every user may create folders on the system's disk.
pub const PROGRAM_FOLDERS: (&[&str], &[&str]) = (
    &[
        r".local\bin",
        r".cargo\bin",
        r".bun\bin",
        r".deno\bin",
        r"AppData\Roaming\npm",
        r"AppData\Local\Microsoft\WindowsApps",
    ],
    &[],
);

/// Returns the home folder of the user: `USERPROFILE`, or what the system says.
pub fn find_home() -> Option<PathBuf> {
    std::env::home_dir()
}

/// Names of devices, in every folder and with every ending; some have a digit after them.
const DEVICES: &[&str] = &[
    "con", "prn", "aux", "nul", "com", "lpt", "conin$", "conout$",
];

/// Returns true if the system takes a text as the name of one file in a folder: not as a disk or a stream
/// (`C:`), not as a device (`NUL.txt`), and without dropping its end.
pub fn is_file_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.trim_end().to_ascii_lowercase();
    let device = stem.trim_end_matches(|c: char| c.is_numeric());
    let is_refused = |c: char| c.is_control() || r#"<>:"/\|?*"#.contains(c);
    !name.is_empty()
        && !name.ends_with(['.', ' '])
        && !name.contains(is_refused)
        && !DEVICES.contains(&device)
}

/// Returns true if a command is a path, and not a name to be searched for.
pub fn is_path(command: &str) -> bool {
    command.contains(['/', '\\', ':'])
}

/// Returns the program with this path: the file itself if it has an ending of programs, else the file with
/// the first ending of `PATHEXT` for which there is one (`npx.cmd`, `uvx.exe`).
pub fn find_program(path: &Path) -> Option<PathBuf> {
    let endings = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
    let name = path.file_name()?.to_str()?;
    let has_ending = endings
        .split(';')
        .filter(|it| !it.is_empty())
        .any(|ending| {
            let start = name.len().checked_sub(ending.len());
            let end = start.and_then(|start| name.get(start..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(ending))
        });
    if has_ending {
        return path.is_file().then(|| path.to_owned());
    }
    let with_endings = endings.split(';').filter(|it| !it.is_empty());
    let mut named = with_endings
        .map(|ending| path.with_file_name(format!("{name}{}", ending.to_ascii_lowercase())));
    named.find(|path| path.is_file())
}

/// Returns `None`: there is no safe call for the free bytes of a disk.
pub fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// The identity of a file: two paths with the same one lead to the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    volume: u64,
    index: u64,
}

impl FileId {
    /// Returns the identity of the file itself, also of a link.
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::of_file(&open_for_id(path, OPEN_REPARSE_POINT)?)
    }

    /// Returns the identity of the file to which a path leads; a link is followed.
    pub(crate) fn of_target(path: &Path) -> io::Result<Self> {
        Self::of_file(&open_for_id(path, 0)?)
    }

    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        let about = winapi_util::file::information(file)?;
        Ok(Self {
            volume: about.volume_serial_number(),
            index: about.file_index(),
        })
    }
}

/// Opens a file or folder without access to its content, so that no other program is disturbed.
fn open_for_id(path: &Path, flags: u32) -> io::Result<File> {
    let mut options = File::options();
    options
        .access_mode(0)
        .custom_flags(BACKUP_SEMANTICS | flags);
    options.open(path)
}

/// The version of a file: distinguishes two states without reading the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    id: FileId,
    bytes: u64,
    modified: SystemTime,
}

impl FileVersion {
    /// Returns the version of the file to which a path leads; a link is followed.
    pub fn of(path: &Path) -> io::Result<Self> {
        let about = fs::metadata(path)?;
        Ok(Self {
            id: FileId::of_target(path)?,
            bytes: about.len(),
            modified: about.modified()?,
        })
    }
}

/// Succeeds: Windows has no call that waits for the names in a folder, which its file system logs.
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns the result of a sync.
pub(crate) fn synced(_: &File, result: io::Result<()>) -> io::Result<()> {
    result
}

/// Moves a finished file to its destination, replacing a file that exists there, also while others read it.
/// `tempfile` cannot do the latter. A program that does not share what it reads, such as a virus scanner, is
/// waited for.
pub(crate) fn persist(file: NamedTempFile, place: &Path) -> io::Result<()> {
    let path = file.into_temp_path().keep().map_err(|error| error.error)?;
    let deadline = Instant::now() + RENAME_WAIT;
    loop {
        match fs::rename(&path, place) {
            Err(error) if is_held(&error) && Instant::now() < deadline => rest(),
            Err(error) => {
                let _ = fs::remove_file(&path);
                return Err(error);
            }
            Ok(()) => return Ok(()),
        }
    }
}

fn is_held(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(ACCESS_DENIED | SHARING_VIOLATION)
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "no event tells that a file is free; callers may block"
)]
fn rest() {
    std::thread::sleep(RENAME_REST);
}

/// Returns `false`: Windows cannot exchange two files.
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(crate) fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{FileId, find_program, is_file_name, open_to_read, rest, variable_name};
    use crate::write_whole;

    #[test]
    fn a_program_is_found_by_the_endings_of_programs() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["npx.cmd", "npx", "notes.txt", "uvx.EXE"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = |name: &str| find_program(&folder.path().join(name));
        assert_eq!(found("npx"), Some(folder.path().join("npx.cmd")));
        assert!(found("uvx").is_some() && found("uvx.exe").is_some());
        assert_eq!(found("notes"), None);
        assert_eq!(found("notes.txt"), None);
    }

    #[test]
    fn a_file_is_replaced_once_its_reader_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        write_whole(&place, b"old").unwrap();
        let reader = fs::File::open(&place).unwrap();
        let reading = std::thread::spawn(move || {
            rest();
            drop(reader);
        });
        write_whole(&place, b"new").unwrap();
        reading.join().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_whole(folder.path(), b"x").is_err());
    }

    #[test]
    fn a_file_has_one_identity_by_every_name() {
        let folder = tempfile::tempdir().unwrap();
        let [one, same, other] = ["one", "same", "other"].map(|it| folder.path().join(it));
        fs::write(&one, "x").unwrap();
        fs::write(&other, "x").unwrap();
        fs::hard_link(&one, &same).unwrap();
        assert_eq!(FileId::of(&one).unwrap(), FileId::of(&same).unwrap());
        assert_ne!(FileId::of(&one).unwrap(), FileId::of(&other).unwrap());
        assert!(FileId::of(&folder.path().join("none")).is_err());
    }

    #[test]
    fn only_files_are_read_and_names_of_variables_have_no_case() {
        let folder = tempfile::tempdir().unwrap();
        let why = |path: &std::path::Path| open_to_read(path).unwrap_err().to_string();
        assert_eq!(why(folder.path()), "it is a folder, not a file");
        assert_eq!(why("NUL".as_ref()), "it is a device, not a file");
        assert_eq!(variable_name("Path"), "PATH");
    }

    #[test]
    fn the_name_of_a_file_is_no_disk_stream_or_device() {
        for name in ["today.md", "a b", "nullable", "comma", "x.nul"] {
            assert!(is_file_name(name), "{name}");
        }
        let no_names = [
            "C:", "C:x", "a:b", "NUL", "nul.txt", "com1", "COM1 .x", "a.", "a ", r"a\b", "..", "",
        ];
        for name in no_names {
            assert!(!is_file_name(name), "{name}");
        }
    }
}
