//! Owners, modes, links and identities of files, as Unix systems have them.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
    io,
    os::unix::fs::{
        DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
        PermissionsExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, CWD, OFlags, RenameFlags, access, fsync, renameat_with, statvfs},
    io::Errno,
    process::geteuid,
};

use tempfile::NamedTempFile;

use crate::folder_error::FolderError;

/// The mode of a private file, and of a private folder.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Mode bits that give the group and others any access.
pub(crate) const OF_OTHERS: u32 = 0o077;

/// Mode bits that allow others to replace our files.
pub(crate) const WRITE_OF_OTHERS: u32 = 0o022;

const ROOT: u32 = 0;

/// The users whose folders and links are used.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trusted {
    /// Our own user.
    Us,
    /// Our own user, and root, who may do anything.
    UsAndRoot,
}

/// Returns a builder of folders that no other user can enter.
pub(crate) fn private_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(FOLDER_MODE);
    builder
}

pub(crate) fn check_owner(
    path: &Path,
    about: &Metadata,
    trusted: Trusted,
) -> Result<(), FolderError> {
    let (owner, us) = (about.uid(), geteuid().as_raw());
    let is_trusted = owner == us || (matches!(trusted, Trusted::UsAndRoot) && owner == ROOT);
    if is_trusted {
        return Ok(());
    }
    let why = format!("belongs to user {owner}, not to user {us}; choose a folder of your own");
    Err(FolderError::refuse(path, &why))
}

/// Checks that a folder gives others none of the forbidden permissions.
pub(crate) fn check_mode(path: &Path, about: &Metadata, forbidden: u32) -> Result<(), FolderError> {
    if !about.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory).into());
    }
    let mode = about.mode() & 0o7777;
    if mode & forbidden == 0 {
        return Ok(());
    }
    let what = if mode & WRITE_OF_OTHERS == 0 {
        "read"
    } else {
        "write to"
    };
    let name = path.display();
    let why = format!("lets others {what} it (mode {mode:04o}); try `chmod 700 {name}`");
    Err(FolderError::refuse(path, &why))
}

/// Opens a file of ours, which is private if it is created. Fails for a link.
pub(crate) fn open_ours(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    options.mode(FILE_MODE).custom_flags(no_link).open(path)
}

/// Opens the folder of a file, which can be locked like a file.
pub(crate) fn open_to_lock_beside(place: &Path) -> io::Result<File> {
    let folder = place.parent().filter(|it| *it != "");
    File::open(folder.unwrap_or(Path::new(".")))
}

/// Returns the path without links.
pub(crate) fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Opens another program's file for reading, following links. Anything but a regular file is refused at
/// once: opening a pipe would wait for a writer, and reading a device never ends.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    let at_once = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options()
        .read(true)
        .custom_flags(at_once)
        .open(path)?;
    let kind = file.metadata()?.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(file),
        _ if kind.is_dir() => "it is a folder",
        _ if kind.is_fifo() => "it is a pipe",
        _ if kind.is_char_device() || kind.is_block_device() => "it is a device",
        _ => "it is a socket",
    };
    Err(io::Error::other(format!("{what}, not a file")))
}

/// Opens a file of ours that no other user may read; never follows a link. If other users may read it,
/// the error says how to fix that.
pub fn open_private(path: &Path) -> io::Result<File> {
    let file = open_ours(File::options().read(true), path)?;
    let about = file.metadata()?;
    let name = path.display();
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if about.uid() != geteuid().as_raw() {
        return refuse(format!("{name} belongs to another user"));
    }
    if about.mode() & OF_OTHERS != 0 {
        return refuse(format!(
            "{name} can be read by others; try `chmod 600 {name}`"
        ));
    }
    Ok(file)
}

/// Returns true if no other user can read or write the file.
pub fn is_private(about: &Metadata) -> bool {
    about.mode() & OF_OTHERS == 0
}

/// Takes all permissions for a file from other users.
pub fn make_private(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(FILE_MODE))
}

/// Returns true if the file is a pipe with a name, such as `<(COMMAND)` of a shell.
pub fn is_pipe(about: &Metadata) -> bool {
    about.file_type().is_fifo()
}

/// Variables that a program of this system needs in order to run, besides `PATH` and `HOME`.
pub const SYSTEM_VARIABLES: &[&str] = &[];

/// Returns the name of a variable in the form in which names are compared.
pub fn variable_name(name: &str) -> Cow<'_, str> {
    Cow::Borrowed(name)
}

/// Returns the variables of this process whose names are Unicode.
pub fn own_variables() -> impl Iterator<Item = (String, OsString)> {
    let all = std::env::vars_os();
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
}

/// The folders of programs if there is no `PATH`.
pub const PATH_DEFAULT: &str = "/usr/bin:/bin";

/// Folders in which a login shell would find programs but which are missing in the `PATH` of a
/// desktop client: folders of the home, then of the machine.
pub const PROGRAM_FOLDERS: (&[&str], &[&str]) = (
    &[
        ".local/bin",
        ".cargo/bin",
        ".bun/bin",
        ".deno/bin",
        ".volta/bin",
        ".asdf/shims",
        ".pyenv/shims",
    ],
    &[
        "/usr/local/bin",
        "/opt/homebrew/bin",
        "/home/linuxbrew/.linuxbrew/bin",
    ],
);

/// Returns the home folder of the user: `HOME`.
pub fn find_home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

/// Returns true if the system takes a text as the name of one file in a folder.
pub fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !matches!(name, "." | "..") && !name.contains(['/', '\0'])
}

/// Returns true if a command is a path, and not a name to be searched for.
pub fn is_path(command: &str) -> bool {
    command.contains('/')
}

/// Returns the program with this path, if it is a file that we may execute.
pub fn find_program(path: &Path) -> Option<PathBuf> {
    let is_program = path.is_file() && access(path, Access::EXEC_OK).is_ok();
    is_program.then(|| path.to_owned())
}

/// Returns the bytes that we can still write to the disk of a folder; `None` if the system does not
/// tell.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let about = statvfs(folder).ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

/// The identity of a file: two paths with the same one lead to the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the identity of the file itself, also of a link.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::of_metadata(&fs::symlink_metadata(path)?))
    }

    /// Returns the identity of the file to which a path leads; a link is followed.
    pub(crate) fn of_target(path: &Path) -> io::Result<Self> {
        Ok(Self::of_metadata(&fs::metadata(path)?))
    }

    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        Ok(Self::of_metadata(&file.metadata()?))
    }

    fn of_metadata(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
        }
    }
}

/// The version of a file: distinguishes two states without reading the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    id: FileId,
    bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl FileVersion {
    /// Returns the version of the file to which a path leads; a link is followed.
    pub fn of(path: &Path) -> io::Result<Self> {
        let about = fs::metadata(path)?;
        Ok(Self {
            id: FileId::of_metadata(&about),
            bytes: about.len(),
            seconds: about.mtime(),
            nanoseconds: about.mtime_nsec(),
        })
    }
}

/// Waits until the names in a folder survive a power loss.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = File::open(folder)?;
    synced(&folder, folder.sync_all())
}

/// Returns the result of a sync. On macOS the standard library also has the disk empty its own cache
/// (`F_FULLFSYNC`), which file systems of a network refuse; there, the plain call is made instead.
pub(crate) fn synced(file: &File, result: io::Result<()>) -> io::Result<()> {
    let refused = |error: &io::Error| {
        let refusals = [Errno::NOTTY, Errno::NOTSUP, Errno::INVAL];
        Errno::from_io_error(error).is_some_and(|error| refusals.contains(&error))
    };
    match result {
        Err(error) if cfg!(target_os = "macos") && refused(&error) => Ok(fsync(file)?),
        other => other,
    }
}

/// Moves a finished file to its destination, replacing a file that exists there.
pub(crate) fn persist(file: NamedTempFile, place: &Path) -> io::Result<()> {
    let persisted = file.persist(place);
    persisted.map(drop).map_err(|error| error.error)
}

/// Exchanges two files. Returns `false`, and does nothing, if the file system does not support that.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
