//! Removes secrets stored by `proxy secret` from records of calls.

use std::time::SystemTime;

use parking_lot::Mutex;
use printable::Redactor;
use secrets::{PrivateFiles, Store};
use telemetry::Hide;

/// Hides every stored secret in a text, with the current contents of the store; its file is read
/// again after a change.
pub(crate) fn hide_kept_secrets(files: &PrivateFiles) -> Hide {
    let store = Store::of(files);
    let known: Mutex<Option<(Option<SystemTime>, Redactor)>> = Mutex::default();
    Hide::new(move |text: &str| {
        let changed_at = store.changed_at();
        let mut known = known.lock();
        if known.as_ref().is_none_or(|(at, _)| *at != changed_at) {
            let values = store.values().ok()?;
            let values = values.iter().map(|it| it.expose().to_owned());
            *known = Some((changed_at, Redactor::new(values)));
        }
        known.as_ref().map(|(_, redactor)| redactor.apply(text))
    })
}

#[cfg(test)]
mod tests {
    use secrets::{PrivateFiles, Secret, Store};

    use super::hide_kept_secrets;

    #[test]
    fn a_kept_secret_is_hidden_from_the_moment_that_it_is_kept() {
        let state = tempfile::tempdir().unwrap();
        let files = PrivateFiles::plain(state.path());
        let hide = hide_kept_secrets(&files);
        let text = r#"{"a":"hunter2-hunter2"}"#;
        assert_eq!(hide.apply(text).as_deref(), Some(text));
        let secret = Secret::new("hunter2-hunter2");
        let store = Store::of(&files);
        store.set(&"linear".parse().unwrap(), &secret).unwrap();
        assert_eq!(hide.apply(text).as_deref(), Some(r#"{"a":"***"}"#));
        // Arguments are written down as a digest while the secrets cannot be read.
        std::fs::write(state.path().join("secrets/secrets.json"), "{").unwrap();
        assert_eq!(hide.apply(text), None);
    }
}
