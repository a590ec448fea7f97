//! The states that a power loss can leave on a disk, for tests of code that writes files.
//!
//! Operations of this thread on files through this crate are recorded. From the record, every state is
//! generated that a disk may have at any moment: unsynced names may be missing or present, in the order
//! in which they were created; unsynced bytes may be missing, cut or zero.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use crate::system::{make_private, private_builder};

thread_local! {
    static RECORD: RefCell<Option<Vec<FileOperation>>> = const { RefCell::new(None) };
}

/// One recorded operation.
#[derive(Debug, Clone)]
pub(crate) enum FileOperation {
    CreateFolder(PathBuf),
    Create(PathBuf),
    Append(PathBuf, Vec<u8>),
    SyncFile(PathBuf),
    Rename(PathBuf, PathBuf),
    Exchange(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncFolder(PathBuf),
}

pub(crate) fn note(step: impl FnOnce() -> FileOperation) {
    RECORD.with_borrow_mut(|record| {
        if let Some(steps) = record {
            steps.push(step());
        }
    });
}

/// One state after a power loss.
#[derive(Debug)]
pub struct DiskState<'a> {
    /// A folder in this state.
    pub folder: &'a Path,
    /// True if the power was lost after all operations.
    pub is_after_all: bool,
}

/// Runs `act`, which writes files in `folder`, and calls `look` for every state that a power loss may
/// leave there. Returns the number of states.
pub fn check(folder: &Path, act: impl FnOnce(), mut look: impl FnMut(DiskState<'_>)) -> usize {
    let mut disk = Disk::read(folder).expect("the folder can be read");
    RECORD.set(Some(Vec::new()));
    act();
    let steps = RECORD.take().unwrap_or_default();
    let (mut seen, mut count) = (BTreeSet::new(), 0);
    for at in 0..=steps.len() {
        let is_after_all = at == steps.len();
        for state in disk.list_states() {
            if seen.insert((is_after_all, state.clone())) {
                count += 1;
                let place = write(&state, folder).expect("a temporary folder takes files");
                look(DiskState {
                    folder: place.path(),
                    is_after_all,
                });
            }
        }
        if let Some(step) = steps.get(at) {
            disk.apply(step);
        }
    }
    count
}

#[derive(Debug, Clone, Default)]
struct Inode {
    synced: Vec<u8>,
    unsynced: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskNode {
    Folder,
    File(usize),
}

type DiskNames = BTreeMap<PathBuf, DiskNode>;

/// The bytes of each file; `None` for a folder.
type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A disk, with its unsynced changes.
#[derive(Debug, Default)]
struct Disk {
    inodes: Vec<Inode>,
    /// The names as programs see them.
    names: DiskNames,
    synced_names: DiskNames,
    /// Unsynced changes of names, each with its folders and the names after it.
    unsynced_names: Vec<(PathBuf, DiskNames)>,
}

/// The state of unsynced bytes after a power loss.
type Fate = fn(&[u8]) -> Vec<u8>;

const FATES: [Fate; 4] = [
    |_| Vec::new(),
    |bytes| bytes[..bytes.len() / 2].to_vec(),
    |bytes| vec![0; bytes.len()],
    <[u8]>::to_vec,
];

impl Disk {
    fn read(folder: &Path) -> io::Result<Self> {
        let mut disk = Self::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let node = if path.is_dir() {
                    folders.push(path.clone());
                    DiskNode::Folder
                } else {
                    disk.inodes.push(Inode {
                        synced: fs::read(&path)?,
                        unsynced: Vec::new(),
                    });
                    DiskNode::File(disk.inodes.len() - 1)
                };
                disk.names.insert(path, node);
            }
        }
        disk.synced_names.clone_from(&disk.names);
        Ok(disk)
    }

    fn apply(&mut self, step: &FileOperation) {
        match step {
            FileOperation::CreateFolder(path) => {
                self.names.insert(path.clone(), DiskNode::Folder);
                self.note_names(path);
            }
            FileOperation::Create(path) => {
                self.inodes.push(Inode::default());
                let node = DiskNode::File(self.inodes.len() - 1);
                self.names.insert(path.clone(), node);
                self.note_names(path);
            }
            FileOperation::Append(path, bytes) => self.inode(path).unsynced.extend(bytes),
            FileOperation::SyncFile(path) => {
                let inode = self.inode(path);
                inode.synced.append(&mut inode.unsynced);
            }
            FileOperation::Rename(from, to) => {
                let node = self.names.remove(from).expect("it was created");
                self.names.insert(to.clone(), node);
                self.note_names(to);
            }
            FileOperation::Exchange(one, other) => {
                let [a, b] = [one, other].map(|path| self.names[path]);
                self.names.extend([(one.clone(), b), (other.clone(), a)]);
                self.note_names(one);
            }
            FileOperation::Remove(path) => {
                self.names.remove(path);
                self.note_names(path);
            }
            FileOperation::SyncFolder(folder) => {
                let last = self.unsynced_names.iter().rposition(|it| it.0 == *folder);
                if let Some((_, names)) =
                    last.and_then(|it| self.unsynced_names.drain(..=it).next_back())
                {
                    self.synced_names = names;
                }
            }
        }
    }

    fn note_names(&mut self, path: &Path) {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        self.unsynced_names.push((folder, self.names.clone()));
    }

    fn inode(&mut self, path: &Path) -> &mut Inode {
        match self.names.get(path) {
            Some(DiskNode::File(at)) => &mut self.inodes[*at],
            _ => panic!("{} is written and was not created", path.display()),
        }
    }

    fn list_states(&self) -> Vec<Tree> {
        let later = self.unsynced_names.iter().map(|(_, names)| names);
        let all_names = std::iter::once(&self.synced_names).chain(later);
        all_names
            .flat_map(|names| FATES.map(|fate| self.tree(names, fate)))
            .collect()
    }

    fn tree(&self, names: &DiskNames, fate: Fate) -> Tree {
        let bytes = |node: &DiskNode| match node {
            DiskNode::Folder => None,
            DiskNode::File(at) => {
                let inode = &self.inodes[*at];
                Some([inode.synced.clone(), fate(&inode.unsynced)].concat())
            }
        };
        let names = names.iter();
        names
            .map(|(path, node)| (path.clone(), bytes(node)))
            .collect()
    }
}

fn write(tree: &Tree, folder: &Path) -> io::Result<tempfile::TempDir> {
    let place = tempfile::tempdir()?;
    for (path, bytes) in tree {
        let path = place.path().join(path.strip_prefix(folder).unwrap_or(path));
        match bytes {
            None => private_builder().create(&path)?,
            Some(bytes) => {
                fs::write(&path, bytes)?;
                make_private(&path)?;
            }
        }
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::check;
    use crate::{append_durable, replace_unchanged, write_durable, write_whole};

    /// Returns true if each state has the old bytes or the new ones, and the last state has the new
    /// ones.
    fn is_durable(act: impl FnOnce(&Path)) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        let mut is_good = true;
        let count = check(
            folder.path(),
            || act(&file),
            |state| {
                let found = fs::read_to_string(state.folder.join("file")).unwrap();
                is_good &= found == "new" || (found == "old" && !state.is_after_all);
            },
        );
        assert!(count > 3, "{count}");
        is_good
    }

    #[test]
    fn a_durable_write_is_told_from_one_that_is_not() {
        assert!(is_durable(|file| write_durable(file, b"new").unwrap()));
        assert!(is_durable(|file| {
            let replaced = replace_unchanged(file, Some(b"old"), b"new");
            assert_eq!(replaced.unwrap(), crate::Replaced::Yes);
        }));
        assert!(!is_durable(|file| write_whole(file, b"new").unwrap()));
        assert!(!is_durable(|file| {
            write_whole(file, b"new").unwrap();
            crate::sync_folder(file).unwrap();
        }));
    }

    #[test]
    fn added_bytes_are_there_when_they_were_added() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/file");
        let act = || {
            crate::own_folder(file.parent().unwrap()).unwrap();
            append_durable(&file, b"one").unwrap();
            append_durable(&file, b"two").unwrap();
        };
        check(folder.path(), act, |state| {
            let found = fs::read(state.folder.join("new/file")).unwrap_or_default();
            assert!(!state.is_after_all || found == b"onetwo");
        });
    }
}
