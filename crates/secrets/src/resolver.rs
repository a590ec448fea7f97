//! Resolving references of the configuration to secrets.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use processes::Spawner;
use tokio::sync::OnceCell;

use crate::{
    command, error::ResolveError, keeping::read_bounded, name::SecretName, reference::Reference,
    secret::Secret, store::Store,
};

/// The largest file with a secret; a key of any kind is shorter.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Reads secrets each time they are requested. Runs each command once, and caches its output until it
/// is removed by `forget`.
#[derive(Debug)]
pub struct Resolver {
    store: Store,
    spawner: Arc<Spawner>,
    printed: Mutex<HashMap<Vec<String>, Arc<OnceCell<Secret>>>>,
}

impl Resolver {
    /// Creates a resolver that reads from this store, and starts commands with this spawner.
    pub fn new(store: Store, spawner: Arc<Spawner>) -> Self {
        Self {
            store,
            spawner,
            printed: Mutex::default(),
        }
    }

    /// Returns the secret; `caller` is the caller over HTTP, if there is one: any other uses the secret
    /// of that name. Concurrent callers of one command wait for the same run; after a failure, the next
    /// caller runs it again.
    pub async fn resolve(
        &self,
        reference: &Reference,
        caller: Option<&str>,
    ) -> Result<Secret, ResolveError> {
        match (reference, caller) {
            (Reference::CallerSecret(name), Some(caller)) => {
                let hint = format!(
                    "proxy secret set {name} --for {}",
                    shell_words::quote(caller)
                );
                self.read(&name.of_caller(caller), hint)
            }
            (Reference::Secret(name) | Reference::CallerSecret(name), _) => {
                self.read(name, format!("proxy secret set {name}"))
            }
            (Reference::File(path), _) => read_file(path),
            (Reference::Command(words), _) => {
                let cell = Arc::clone(self.printed.lock().entry(words.clone()).or_default());
                let running = || command::run(words, &self.spawner);
                cell.get_or_try_init(running).await.cloned()
            }
        }
    }

    fn read(&self, name: &SecretName, hint: String) -> Result<Secret, ResolveError> {
        let stored = self.store.get(name).map_err(|error| ResolveError {
            why: error.to_string(),
            hint: None,
        })?;
        stored.ok_or_else(|| ResolveError {
            why: format!("there is no secret `{name}`"),
            hint: Some(hint),
        })
    }

    /// Returns true if the reference is a command that has printed a secret.
    pub fn has_printed(&self, reference: &Reference) -> bool {
        let Reference::Command(words) = reference else {
            return false;
        };
        let printed = self.printed.lock();
        printed.get(words).is_some_and(|cell| cell.initialized())
    }

    /// Removes the cached output of a command, so that the next caller runs it again. Returns true if
    /// there was any output. A run in progress continues for the callers that wait for it.
    pub fn forget(&self, reference: &Reference) -> bool {
        let Reference::Command(words) = reference else {
            return false;
        };
        let mut printed = self.printed.lock();
        let removed = printed.extract_if(|it, cell| it == words && cell.initialized());
        removed.count() > 0
    }

    /// Returns the store from which secrets are read.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

fn read_file(path: &Path) -> Result<Secret, ResolveError> {
    let path = from_home(path);
    let failed = |why: String| ResolveError {
        why: format!("the file {}: {why}", path.display()),
        hint: Some("check the path in `${file:...}`".to_owned()),
    };
    let read = File::open(&path).and_then(|file| read_bounded(file, FILE_BYTES_MAX));
    let bytes = read.map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))?;
    match text.trim_end_matches(['\n', '\r']) {
        "" => Err(failed("it is empty".to_owned())),
        text => Ok(Secret::new(text)),
    }
}

fn from_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), files::find_home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use super::Resolver;
    use crate::{Reference, Secret, SecretName, Store};

    fn resolver(state: &tempfile::TempDir) -> Resolver {
        Resolver::new(Store::in_state(state.path()), Arc::default())
    }

    fn reference(text: &str) -> Reference {
        Reference::parse(text).unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_missing_secret_names_the_command_and_one_that_came_is_seen() {
        let state = tempfile::tempdir().unwrap();
        let resolver = resolver(&state);
        let wanted = reference("secret:linear");
        let missing = resolver.resolve(&wanted, None).await.unwrap_err();
        assert_eq!(missing.hint.as_deref(), Some("proxy secret set linear"));
        let store = Store::in_state(state.path());
        let secret = Secret::new("hunter2");
        store.set(&"linear".parse().unwrap(), &secret).unwrap();
        assert_eq!(resolver.resolve(&wanted, None).await, Ok(secret));
    }

    #[tokio::test]
    async fn a_caller_gets_its_own_secret_and_no_other() {
        let state = tempfile::tempdir().unwrap();
        let resolver = resolver(&state);
        let (name, store) = ("key".parse::<SecretName>().unwrap(), resolver.store());
        store.set(&name, &Secret::new("ours")).unwrap();
        store
            .set(&name.of_caller("oauth ann"), &Secret::new("anns"))
            .unwrap();
        let wanted = reference("caller:secret:key");
        let read = async |caller| resolver.resolve(&wanted, caller).await;
        assert_eq!(read(Some("oauth ann")).await, Ok(Secret::new("anns")));
        assert_eq!(read(None).await, Ok(Secret::new("ours")));
        let missing = read(Some("oauth bob")).await.unwrap_err();
        assert_eq!(
            missing.hint.as_deref(),
            Some("proxy secret set key --for 'oauth bob'")
        );
    }

    #[tokio::test]
    async fn a_file_is_read_without_its_line_end() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("key");
        let wanted = reference(&format!("file:{}", file.display()));
        let resolver = resolver(&state);
        assert!(resolver.resolve(&wanted, None).await.is_err());
        fs::write(&file, "hunter2\n").unwrap();
        assert_eq!(
            resolver.resolve(&wanted, None).await,
            Ok(Secret::new("hunter2"))
        );
        fs::write(&file, "\n").unwrap();
        assert!(resolver.resolve(&wanted, None).await.is_err());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_runs_once_however_many_ask() {
        let state = tempfile::tempdir().unwrap();
        let runs = state.path().join("runs");
        let script = format!("echo run >> {}; printf 'hunter2\\n'", runs.display());
        let wanted = Reference::Command(vec!["sh".into(), "-c".into(), script]);
        let resolver = resolver(&state);
        let (one, two) = tokio::join!(
            resolver.resolve(&wanted, None),
            resolver.resolve(&wanted, None)
        );
        assert_eq!((one.clone(), two), (Ok(Secret::new("hunter2")), one));
        assert_eq!(fs::read_to_string(runs).unwrap(), "run\n");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_whose_secret_is_forgotten_runs_again() {
        let state = tempfile::tempdir().unwrap();
        let runs = state.path().join("runs");
        let script = format!("echo run >> {0}; wc -l < {0}", runs.display());
        let wanted = Reference::Command(vec!["sh".into(), "-c".into(), script]);
        let resolver = resolver(&state);
        assert!(!resolver.forget(&wanted));
        let first = resolver.resolve(&wanted, None).await.unwrap();
        assert!(resolver.has_printed(&wanted) && resolver.forget(&wanted));
        assert!(!resolver.has_printed(&wanted));
        let second = resolver.resolve(&wanted, None).await.unwrap();
        assert_eq!((first.expose().trim(), second.expose().trim()), ("1", "2"));
        assert!(!resolver.forget(&reference("secret:linear")));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_that_fails_says_why_and_not_what_it_printed() {
        let state = tempfile::tempdir().unwrap();
        let resolver = resolver(&state);
        let check = async |script: &str, expected: &str| {
            let words = ["sh", "-c", script].map(str::to_owned).to_vec();
            let error = resolver.resolve(&Reference::Command(words), None).await;
            let why = error.unwrap_err().why;
            assert!(why.contains(expected) && !why.contains("hunter2"), "{why}");
        };
        check(
            "echo hunter2; echo locked: hunter2 >&2; exit 1",
            "locked: ***",
        )
        .await;
        check("exit 3", "exit status: 3").await;
        check("true", "printed nothing").await;
        let none = Reference::Command(vec!["no-such-program-here".to_owned()]);
        let why = resolver.resolve(&none, None).await.unwrap_err().why;
        assert!(why.contains("cannot be started"), "{why}");
    }
}
