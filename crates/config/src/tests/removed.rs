//! Files of earlier versions: their former keys have a note each.

use super::load_text;
use crate::keys::REMOVED;

/// `config/every-key.toml` at commit 1d687a68.
const OLD_FILE: &str = include_str!("every-key-1d687a68.toml");

#[test]
fn a_file_with_all_keys_of_an_earlier_version_loads_with_a_note_for_each_former_key() {
    let notes = load_text(OLD_FILE, &[]).unwrap().removed_keys;
    for (path, replacement) in REMOVED {
        let name = path.rsplit('.').next().unwrap();
        let note = format!("{name}: this key was removed: {replacement}");
        assert!(
            notes.iter().any(|it| it.ends_with(&note)),
            "{path}: {notes:#?}"
        );
    }
    assert_eq!(notes.len(), REMOVED.len(), "{notes:#?}");
}

#[test]
fn a_note_has_the_place_of_the_former_key() {
    let config = load_text("[http]\nmax_requests = 7", &[]).unwrap();
    let note = &config.notes()[1];
    let expected = ":2:1: http.max_requests: this key was removed: the limit is 256 requests";
    assert!(note.ends_with(expected), "{note}");
    let config = load_text("", &[("PROXY_HTTP__MAX_REQUESTS", "7")]).unwrap();
    let expected = "PROXY_HTTP__MAX_REQUESTS: http.max_requests: this key was removed: the limit is 256 requests";
    assert_eq!(config.removed_keys, [expected]);
    assert_eq!(config.http.limits.requests_max, 256);
}
