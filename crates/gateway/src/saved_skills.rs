//! The folder of the user's own skills: each folder in it is a skill of the server `scripts` (0040).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use files::open_to_read;
use jsonrpc::Json;
use serde_json::{Value, json};
use tool::{Capability, Digest, ItemKind, Offer, OfferItem, SkillFile};

/// The most skills that are read.
const SKILLS_MAX: usize = 500;

/// The most files of a skill, and the bytes of all of them, that every host accepts.
const FILES_MAX: usize = 512;
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The deepest folder in a skill.
const DEPTH_MAX: usize = 16;

/// The longest name of a skill, in characters.
const NAME_CHARS_MAX: usize = 64;

const MAIN_FILE: &str = "SKILL.md";

/// The skills at their last reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedSkills {
    entries: Vec<OfferItem>,
    /// The files by URI.
    files: BTreeMap<String, (PathBuf, SkillFile)>,
}

impl SavedSkills {
    /// Reads the folder; `None` if it does not exist. `note` gets the name of each folder that is no
    /// valid skill, and the reason.
    pub(crate) fn read(folder: &Path, mut note: impl FnMut(&str, &str)) -> Option<Self> {
        let folders = match list(folder) {
            Ok(folders) => folders,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                note(".", &format!("the folder cannot be read: {error}"));
                return Some(Self::default());
            }
        };
        let mut saved = Self::default();
        for (name, path) in folders.iter().take(SKILLS_MAX) {
            if path.is_dir()
                && !name.starts_with('.')
                && let Err(why) = saved.add(name, path)
            {
                note(name, &why);
            }
        }
        if folders.len() > SKILLS_MAX {
            let why = format!("only the first {SKILLS_MAX} folders are read");
            note(".", &why);
        }
        Some(saved)
    }

    /// The number of skills.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The list that a server with these skills would send.
    pub(crate) fn offer(&self) -> Offer {
        let has_any = !self.entries.is_empty();
        let capabilities = [Capability::Resources, Capability::Skills].into_iter();
        Offer {
            capabilities: capabilities.filter(|_| has_any).collect::<BTreeSet<_>>(),
            skills: self.entries.clone(),
            ..Offer::default()
        }
    }

    /// The result of `resources/read` for a file, if it still is as it was listed.
    pub(crate) fn read_file(&self, uri: &str) -> Result<Json, String> {
        let shown = || printable::one_line_of(uri, 200);
        let file = self.files.get(uri);
        let (path, listed) = file.ok_or_else(|| format!("No skill has {}", shown()))?;
        let bytes = read_within(path, BYTES_MAX);
        let bytes = bytes.map_err(|error| format!("{}: {error}", shown()))?;
        if describe(uri, &bytes) != *listed {
            return Err(format!("{} has just been changed; read it again", shown()));
        }
        let mime = mime_of(uri);
        let content = match String::from_utf8(bytes) {
            Ok(text) => json!({"uri": uri, "mimeType": mime.unwrap_or("text/plain"), "text": text}),
            Err(error) => {
                let blob = BASE64_STANDARD.encode(error.as_bytes());
                let mime = mime.unwrap_or("application/octet-stream");
                json!({"uri": uri, "mimeType": mime, "blob": blob})
            }
        };
        Ok(Json::of_built(json!({"contents": [content]}).to_string()))
    }

    fn add(&mut self, name: &str, folder: &Path) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.chars().all(is_plain) || name.len() > NAME_CHARS_MAX {
            return Err(format!(
                "a skill has no such name; call its folder by small letters, digits and `-`, {NAME_CHARS_MAX} at most"
            ));
        }
        let mut paths = Vec::new();
        gather(folder, "", 0, &mut paths).map_err(|error| error.to_string())?;
        if paths.len() > FILES_MAX {
            return Err(format!("it has more than {FILES_MAX} files"));
        }
        let (mut files, mut bytes_left, mut front) = (Vec::new(), BYTES_MAX, None);
        for (own, path) in paths {
            let bytes =
                read_within(&path, bytes_left).map_err(|error| format!("{own}: {error}"))?;
            bytes_left -= bytes.len() as u64;
            if own == MAIN_FILE {
                front = Some(frontmatter(&bytes, name)?);
            }
            files.push((path, describe(&format!("skill://{name}/{own}"), &bytes)));
        }
        let front = front.ok_or_else(|| format!("it has no file {MAIN_FILE}"))?;
        let resources: Vec<&SkillFile> = files.iter().map(|(_, it)| it).collect();
        let uri = format!("skill://{name}/{MAIN_FILE}");
        let entry = json!({"uri": uri, "frontmatter": front, "resources": resources});
        let entry = OfferItem::parse(ItemKind::Skill, &entry.to_string())?;
        self.entries.push(entry);
        let files = files.into_iter();
        let files = files.map(|(path, file)| (file.uri.clone(), (path, file)));
        self.files.extend(files);
        Ok(())
    }
}

fn describe(uri: &str, bytes: &[u8]) -> SkillFile {
    SkillFile {
        uri: uri.to_owned(),
        digest: format!("sha256:{}", Digest::of_bytes(bytes)),
        size: bytes.len() as u64,
    }
}

/// Reads the front matter between two lines `---`, which names the skill as its folder does.
fn frontmatter(bytes: &[u8], name: &str) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| format!("{MAIN_FILE} is not UTF-8"))?;
    let missing =
        || format!("{MAIN_FILE} does not begin with front matter between two lines `---`");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n");
    let rest = text.strip_prefix("---\n").ok_or_else(missing)?;
    let end = rest
        .find("\n---\n")
        .or_else(|| rest.strip_suffix("\n---").map(str::len));
    let front = tool::read_yaml(&rest[..end.ok_or_else(missing)?]);
    let front = front.map_err(|error| format!("{MAIN_FILE}: {error}"))?;
    let text = |key: &str| front[key].as_str().filter(|it| !it.trim().is_empty());
    if text("name") != Some(name) {
        return Err(format!(
            "{MAIN_FILE}: its `name` is not `{name}`, the name of its folder"
        ));
    }
    match text("description") {
        Some(_) => Ok(front),
        None => Err(format!("{MAIN_FILE} has no `description`")),
    }
}

/// The entries of a folder by name.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push((name, entry.path()));
    }
    entries.sort();
    Ok(entries)
}

/// Collects the files of a skill with their paths in it. Hidden files and links are left out: a link may
/// lead out of the skill.
fn gather(
    folder: &Path,
    before: &str,
    depth: usize,
    files: &mut Vec<(String, PathBuf)>,
) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(io::Error::other("its folders are nested too deeply"));
    }
    for (name, path) in list(folder)? {
        let about = fs::symlink_metadata(&path)?;
        // A `?`, a `#` or a `%` in a URI would mean something else.
        let is_plain = |c: char| c.is_alphanumeric() || "-_.+~ ()".contains(c);
        if name.starts_with('.') || !name.chars().all(is_plain) {
            continue;
        }
        let own = format!("{before}{}", name.replace(' ', "%20"));
        if about.is_dir() {
            gather(&path, &format!("{own}/"), depth + 1, files)?;
        } else if about.is_file() && files.len() <= FILES_MAX {
            files.push((own, path));
        }
    }
    Ok(())
}

/// Reads a whole file that is no link and not longer than this.
fn read_within(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("it is a link"));
    }
    let mut bytes = Vec::new();
    open_to_read(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let mib = BYTES_MAX / 1024 / 1024;
        let why = format!("the skill has more than {mib} MiB");
        return Err(io::Error::other(why));
    }
    Ok(bytes)
}

fn mime_of(uri: &str) -> Option<&'static str> {
    let (_, ending) = uri.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "md" => "text/markdown",
        "json" => "application/json",
        "html" => "text/html",
        "csv" => "text/csv",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says so")]
mod tests {
    use super::*;

    fn read(folder: &Path) -> (SavedSkills, Vec<String>) {
        let mut mistakes = Vec::new();
        let note = |name: &str, why: &str| mistakes.push(format!("{name}: {why}"));
        let saved = SavedSkills::read(folder, note).unwrap();
        (saved, mistakes)
    }

    #[test]
    fn each_folder_is_a_skill_or_says_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let main =
            b"---\nname: weekly\ndescription: Write the report.\nmetadata:\n  n: 1\n---\n# Do it";
        write("weekly/SKILL.md", main);
        write("weekly/a b/data.bin", &[0xff]);
        write("weekly/.git/config", b"x");
        write("Bad Name/SKILL.md", b"x");
        write("empty/x.md", b"x");
        write("other/SKILL.md", b"---\nname: else\n---\n");
        write("plain/SKILL.md", b"# no front matter");
        write("broken/SKILL.md", b"---\nname: [\n---\n");
        write("mute/SKILL.md", b"---\nname: mute\n---");
        write("note.txt", b"x");
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("weekly/link")).unwrap();
        let (saved, mistakes) = read(folder.path());
        let entries: Vec<&str> = saved.entries.iter().map(OfferItem::json).collect();
        let digest = |bytes: &[u8]| Digest::of_bytes(bytes);
        assert_eq!(
            serde_json::from_str::<Value>(entries[0]).unwrap(),
            json!({
                "uri": "skill://weekly/SKILL.md",
                "frontmatter": {"name": "weekly", "description": "Write the report.", "metadata": {"n": 1}},
                "resources": [
                    {"uri": "skill://weekly/SKILL.md", "digest": format!("sha256:{}", digest(main)), "size": main.len()},
                    {"uri": "skill://weekly/a%20b/data.bin", "digest": format!("sha256:{}", digest(&[0xff])), "size": 1},
                ],
            })
        );
        assert_eq!(entries.len(), 1);
        let expected = [
            "Bad Name: a skill has no such name",
            "broken: SKILL.md: line ",
            "empty: it has no file SKILL.md",
            "mute: SKILL.md has no `description`",
            "other: SKILL.md: its `name` is not `other`",
            "plain: SKILL.md does not begin with front matter",
        ];
        assert_eq!(mistakes.len(), expected.len(), "{mistakes:?}");
        for (mistake, expected) in mistakes.iter().zip(expected) {
            assert!(mistake.starts_with(expected), "{mistake}");
        }
    }

    #[test]
    fn a_file_is_read_as_it_was_listed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/SKILL.md");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "---\nname: a\ndescription: A.\n---\n").unwrap();
        fs::write(folder.path().join("a/x"), [0xff]).unwrap();
        let (saved, _) = read(folder.path());
        let read = |uri: &str| saved.read_file(uri).map(|it| it.as_str().to_owned());
        let text = read("skill://a/SKILL.md").unwrap();
        assert!(
            text.contains("text/markdown") && text.contains("name: a"),
            "{text}"
        );
        assert!(read("skill://a/x").unwrap().contains(r#""blob":"/w==""#));
        assert!(
            read("skill://a/../../x")
                .unwrap_err()
                .starts_with("No skill has")
        );
        fs::write(&file, "changed").unwrap();
        assert!(
            read("skill://a/SKILL.md")
                .unwrap_err()
                .ends_with("read it again")
        );
    }
}
