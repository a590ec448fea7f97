//! Private folders: created for their owner alone, and checked if they exist already.

use std::{
    fs::{self, DirBuilder},
    io,
    path::Path,
};

use crate::{
    folder_error::FolderError,
    note,
    system::{OF_OTHERS, Trusted, WRITE_OF_OTHERS, check_mode, check_owner, private_builder},
    whole::sync_folder,
};

/// Creates a folder that no other user can enter. An existing one must be ours, not a link, and closed to
/// all others. Its parent must exist.
pub fn private_folder(path: &Path) -> Result<(), FolderError> {
    make(private_builder().recursive(false), path)?;
    let about = fs::symlink_metadata(path)?;
    if about.is_symlink() {
        return Err(FolderError::refuse(path, "is a symbolic link"));
    }
    check_owner(path, &about, Trusted::Us)?;
    check_mode(path, &about, OF_OTHERS)
}

/// Creates a folder that no other user can enter, with its parents. An existing one may be readable by
/// others, since our files in it are private; it must belong to us (or to root, who may do anything),
/// and no other user may have write access. A link to it is followed if it is ours.
pub fn own_folder(path: &Path) -> Result<(), FolderError> {
    let trusted = Trusted::UsAndRoot;
    let made = make(private_builder().recursive(true), path);
    match fs::symlink_metadata(path) {
        Ok(named) => check_owner(path, &named, trusted)?,
        Err(error) => return made.and(Err(error.into())),
    }
    made?;
    let about = fs::metadata(path)?;
    check_owner(path, &about, trusted)?;
    check_mode(path, &about, WRITE_OF_OTHERS)
}

/// A created folder survives a power loss if its parent can be synced.
fn make(builder: &DirBuilder, path: &Path) -> Result<(), FolderError> {
    let missing = path.ancestors().take_while(|folder| !folder.exists());
    let missing: Vec<&Path> = missing.filter(|folder| *folder != "").collect();
    match builder.create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    for folder in missing.into_iter().rev() {
        note!(CreateFolder(folder));
        let _ = sync_folder(folder);
    }
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
        path::Path,
    };

    use rustix::process::geteuid;

    use super::{own_folder, private_folder};
    use crate::FolderError;

    /// Creates a folder with this mode and checks if it is accepted as a private folder, and as one of
    /// ours.
    #[track_caller]
    fn check(mode: u32, is_private: bool, is_own: bool) {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("folder");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        assert_eq!(private_folder(&folder).is_ok(), is_private, "{mode:o}");
        assert_eq!(own_folder(&folder).is_ok(), is_own, "{mode:o}");
    }

    #[test]
    fn a_folder_that_others_write_to_is_refused() {
        check(0o700, true, true);
        check(0o500, true, true);
        check(0o755, false, true);
        check(0o775, false, false);
        check(0o777, false, false);
        check(0o1777, false, false);
    }

    #[test]
    fn a_folder_is_made_for_us_alone() {
        let parent = tempfile::tempdir().unwrap();
        let deep = parent.path().join("a/b");
        own_folder(&deep).unwrap();
        private_folder(&deep.join("c")).unwrap();
        for folder in [&deep, deep.parent().unwrap(), &deep.join("c")] {
            assert_eq!(fs::metadata(folder).unwrap().mode() & 0o777, 0o700);
        }
        let unmade = private_folder(&parent.path().join("x/y"));
        assert!(matches!(unmade, Err(FolderError::Unusable(_))));
    }

    #[test]
    fn a_link_of_ours_is_followed_and_is_not_private() {
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join("link");
        own_folder(&parent.path().join("folder")).unwrap();
        symlink("folder", &link).unwrap();
        assert!(own_folder(&link).is_ok());
        assert!(matches!(
            private_folder(&link),
            Err(FolderError::NotOurs(_))
        ));
        fs::write(parent.path().join("file"), "").unwrap();
        assert!(own_folder(&parent.path().join("file")).is_err());
    }

    /// Only root can give a file away; the refusal of a foreign owner is tried where that is us,
    /// and on a folder of root's where it is not.
    #[test]
    fn a_folder_of_another_user_is_refused_and_one_of_root_is_not_private() {
        if geteuid().as_raw() != 0 {
            assert!(matches!(
                private_folder(Path::new("/")),
                Err(FolderError::NotOurs(_))
            ));
            assert!(own_folder(Path::new("/usr")).is_ok());
            return;
        }
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("theirs");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        chown(&folder, Some(65_534), None).unwrap();
        let link = parent.path().join("link");
        symlink(&folder, &link).unwrap();
        for path in [&folder, &link] {
            assert!(matches!(own_folder(path), Err(FolderError::NotOurs(_))));
            assert!(matches!(private_folder(path), Err(FolderError::NotOurs(_))));
        }
        let ours = parent.path().join("ours");
        own_folder(&ours).unwrap();
        let planted = parent.path().join("planted");
        symlink(&ours, &planted).unwrap();
        std::os::unix::fs::lchown(&planted, Some(65_534), None).unwrap();
        assert!(matches!(own_folder(&planted), Err(FolderError::NotOurs(_))));
    }
}
