//! The environment variables as a value, so that tests need no process of their own.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

/// The variables of an environment.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// The variables of this process. Names that are not Unicode are skipped, because no key has one.
    pub fn of_process() -> Self {
        Self(files::own_variables().collect())
    }

    /// An empty variable counts as not set, as in a shell's `${VAR:-}`.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        let value = self.0.get(name).map(OsString::as_os_str);
        value.filter(|value| !value.is_empty())
    }

    /// The path that a variable holds.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// Every variable that is not empty, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        self.starting("")
    }

    /// The environment without the variables that set a key.
    pub(crate) fn without_proxy_variables(&self) -> Self {
        let mut others = self.clone();
        others.0.retain(|name, _| !name.starts_with("PROXY_"));
        others
    }

    /// The variables that start with `prefix` and are not empty, in the order of their names.
    pub(crate) fn starting<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a OsStr)> {
        let names = self.0.keys().filter(move |name| name.starts_with(prefix));
        names.filter_map(|name| Some((name.as_str(), self.get(name)?)))
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let owned = |(name, value): (N, V)| (name.into(), value.into());
        Self(variables.into_iter().map(owned).collect())
    }
}
