//! The environment variables of a process, which fill in templates.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use files::variable_name;
use serde::{Deserialize, Serialize};

/// The environment of this process or of a client, or a part of it. Its debug output has no values.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Returns the variables of this process whose names and values are UTF-8.
    pub fn of_process() -> Self {
        let all = files::own_variables();
        all.filter_map(|(name, value)| Some((name, value.into_string().ok()?)))
            .collect()
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&*variable_name(name)).map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter()
    }

    /// Sets the value of a variable.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0
            .insert(variable_name(name).into_owned(), value.to_owned());
    }

    /// Lists the names whose values differ.
    pub(crate) fn differing(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let differ = names.into_iter().filter(|it| self.get(it) != other.get(it));
        differ.cloned().collect()
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variables({})", self.0.len())
    }
}
