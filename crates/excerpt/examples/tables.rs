//! Writes the files of `registry/tokens` anew: `cargo run -p excerpt --example tables -- registry/tokens`.

use std::{env, fs, path::PathBuf};

use regex::Regex;
use tiktoken_rs::{CoreBPE, o200k_base};

fn main() {
    let folder = PathBuf::from(env::args().nth(1).expect("the folder is the argument"));
    let encoding = o200k_base().expect("the encoding is built in");
    fs::write(folder.join("o200k.words"), words(&encoding)).expect("the folder takes files");
    fs::write(folder.join("classes.txt"), classes()).expect("the folder takes files");
}

/// Every word by its rank, a byte for its length before it.
fn words(encoding: &CoreBPE) -> Vec<u8> {
    let mut words = Vec::new();
    for rank in 0.. {
        let Ok(word) = encoding.decode_bytes(&[rank]) else {
            break;
        };
        // Ranks end with the words; what lies behind a gap has a meaning for a model alone.
        words.push(u8::try_from(word.len()).expect("a word is short"));
        words.extend(word);
    }
    words
}

/// The first character of each run of characters of one class, and the class.
fn classes() -> String {
    let class = |pattern, name| (Regex::new(pattern).expect("a pattern"), name);
    let classes = [
        class(r"^[\p{Lu}\p{Lt}]$", "Upper"),
        class(r"^\p{Ll}$", "Lower"),
        class(r"^[\p{Lm}\p{Lo}]$", "Letter"),
        class(r"^\p{M}$", "Mark"),
        class(r"^\p{N}$", "Number"),
        class(r"^\s$", "Space"),
    ];
    let mut lines = String::new();
    let mut before = "";
    for c in '\0'..=char::MAX {
        let text = c.to_string();
        let found = classes.iter().find(|(pattern, _)| pattern.is_match(&text));
        let name = found.map_or("Sign", |(_, name)| name);
        if name != before {
            lines.push_str(&format!("{:x} {name}\n", u32::from(c)));
            before = name;
        }
    }
    lines
}
