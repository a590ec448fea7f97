//! What a change of a file looks like, with what looks secret masked.

use std::{fmt, path::PathBuf, time::Duration};

use similar::{Algorithm, TextDiff};

/// Lines round a change that are shown with it.
const CONTEXT_LINES: usize = 2;

/// Time for the shortest difference; after it, a longer one will do.
const DIFF_TIME_MAX: Duration = Duration::from_millis(500);

/// The difference of one file, as `diff -u` has it.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The file.
    pub path: PathBuf,
    /// Lines, masked; empty where nothing changes.
    pub text: String,
}

/// The difference between a file that may not be there and what it is to be.
pub fn difference(path: PathBuf, before: Option<&str>, after: &str) -> Difference {
    let name = path.display().to_string();
    let old = if before.is_some() {
        name.as_str()
    } else {
        "/dev/null"
    };
    let before = before.unwrap_or_default();
    let difference = TextDiff::configure()
        .algorithm(Algorithm::Patience)
        .timeout(DIFF_TIME_MAX)
        .diff_lines(before, after);
    let unified = difference
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(old, &name)
        .to_string();
    let mask = |line: &str| {
        if line.starts_with("--- ") || line.starts_with("+++ ") {
            line.to_owned()
        } else {
            clients::mask_line(line)
        }
    };
    let text = unified.lines().map(|line| mask(line) + "\n").collect();
    Difference { path, text }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_is_shown_without_secrets() {
        let before = "a\n\"TOKEN\": \"abcdef\"\nb\nc\n";
        let shown = difference("/x".into(), Some(before), "a\nb\nnew\nc\n").to_string();
        let expected = "--- /x\n+++ /x\n@@ -1,4 +1,4 @@\n a\n-\"TOKEN\": \"***\"\n b\n+new\n c\n";
        assert_eq!(shown, expected);
        assert!(
            difference("/x".into(), None, "a\n")
                .to_string()
                .starts_with("--- /dev/null\n+++ /x\n")
        );
    }
}
