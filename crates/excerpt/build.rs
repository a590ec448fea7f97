//! Builds the tables of the tokenizer, which are embedded in the program and read in place.

#[path = "src/tokens/digest.rs"]
mod digest;

use std::{env, fs, path::PathBuf};

use digest::{EMPTY, RANK_BITS, SLOTS, find_slot, make_entry};

const TABLES: &str = "../../registry/tokens";

fn main() {
    println!("cargo::rerun-if-changed={TABLES}");
    println!("cargo::rerun-if-changed=src/tokens/digest.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names it"));
    let read = |name: &str| fs::read(PathBuf::from(TABLES).join(name)).expect("it is there");
    let words = read("o200k.words");
    let words = split_words(&words);
    fs::write(out.join("words"), words.concat()).expect("cargo made the folder");
    fs::write(out.join("starts"), starts(&words)).expect("cargo made the folder");
    fs::write(out.join("slots"), slots(&words)).expect("cargo made the folder");
    let classes = String::from_utf8(read("classes.txt")).expect("it is text");
    fs::write(out.join("classes.rs"), write_classes(&classes)).expect("cargo made the folder");
}

fn split_words(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut words = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (word, rest) = rest.split_at(usize::from(*length));
        words.push(word);
        bytes = rest;
    }
    words
}

/// Returns the start of each word, and the end of the last one.
fn starts(words: &[&[u8]]) -> Vec<u8> {
    let mut start = 0_u32;
    let mut starts = Vec::from(start.to_le_bytes());
    for word in words {
        start += u32::try_from(word.len()).expect("a word is short");
        starts.extend(start.to_le_bytes());
    }
    starts
}

fn slots(words: &[&[u8]]) -> Vec<u8> {
    assert!(words.len() < 1 << RANK_BITS, "a rank has {RANK_BITS} bits");
    let mut slots = vec![EMPTY; SLOTS];
    for (rank, word) in words.iter().enumerate() {
        let rank = u32::try_from(rank).expect("there are fewer");
        let mut slot = find_slot(word);
        while slots[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        slots[slot] = make_entry(word, rank);
    }
    slots.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn write_classes(lines: &str) -> String {
    let bounds = lines.lines().map(|line| {
        let (start, class) = line.split_once(' ').expect("a character and a class");
        format!("(0x{start}, Class::{class}),")
    });
    let bounds = bounds.collect::<String>();
    format!("static BOUNDS: &[(u32, Class)] = &[{bounds}];")
}
