//! The file is written whole, and stays the file that it is.

use std::{
    fs::{self, DirBuilder},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

use files::Unfinished;

pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(folder)?;
            }
            path.to_owned()
        }
        Err(error) => return Err(error),
    };
    let mode = fs::metadata(&target).map(|it| it.permissions()).ok();
    // A folder may be writable where the file was made read-only on purpose.
    if mode.as_ref().is_some_and(fs::Permissions::readonly) {
        return Err(io::ErrorKind::PermissionDenied.into());
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
