//! Texts by name in one allocation: the digests of definitions, which every start reads.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};

/// A sorted map of texts. Reading it from JSON allocates twice, not twice for each entry. A change
/// moves the entries after it.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct TextMap {
    /// Each name and its value, in the order of the names.
    text: String,
    /// The start of each name and of its value in `text`.
    starts: Vec<(usize, usize)>,
}

impl TextMap {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let at = self.find(name).ok()?;
        Some(self.entry(at).1)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        (0..self.starts.len()).map(|at| self.entry(at))
    }

    pub(crate) fn to_map(&self) -> BTreeMap<String, String> {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        self.iter().map(owned).collect()
    }

    pub(crate) fn insert(&mut self, name: &str, value: &str) {
        self.remove(name);
        let Err(at) = self.find(name) else { return };
        let start = self.start(at);
        self.text.insert_str(start, value);
        self.text.insert_str(start, name);
        for (later, middle) in &mut self.starts[at..] {
            *later += name.len() + value.len();
            *middle += name.len() + value.len();
        }
        self.starts.insert(at, (start, start + name.len()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let Ok(at) = self.find(name) else { return };
        let (start, end) = (self.start(at), self.start(at + 1));
        self.starts.remove(at);
        self.text.drain(start..end);
        for (later, middle) in &mut self.starts[at..] {
            *later -= end - start;
            *middle -= end - start;
        }
    }

    /// Removes the entries whose names are not to be kept.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        let mut kept = Self::default();
        for (name, value) in self.iter().filter(|(name, _)| is_kept(name)) {
            kept.push(name, value);
        }
        *self = kept;
    }

    /// Returns the index of a name, or the index at which it would be.
    fn find(&self, name: &str) -> Result<usize, usize> {
        let name_at = |(start, middle): &(usize, usize)| &self.text[*start..*middle];
        self.starts.binary_search_by(|it| name_at(it).cmp(name))
    }

    /// Returns the start of an entry, or the end of the last one.
    fn start(&self, at: usize) -> usize {
        self.starts.get(at).map_or(self.text.len(), |it| it.0)
    }

    fn entry(&self, at: usize) -> (&str, &str) {
        let (start, middle) = self.starts[at];
        (
            &self.text[start..middle],
            &self.text[middle..self.start(at + 1)],
        )
    }

    /// Adds an entry after all others.
    fn push(&mut self, name: &str, value: &str) {
        let start = self.text.len();
        self.text.push_str(name);
        self.starts.push((start, self.text.len()));
        self.text.push_str(value);
    }
}

impl From<BTreeMap<String, String>> for TextMap {
    fn from(map: BTreeMap<String, String>) -> Self {
        let mut texts = Self::default();
        for (name, value) in &map {
            texts.push(name, value);
        }
        texts
    }
}

impl FromIterator<(String, String)> for TextMap {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(entries: I) -> Self {
        Self::from(entries.into_iter().collect::<BTreeMap<_, _>>())
    }
}

impl fmt::Debug for TextMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for TextMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for TextMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Texts)
    }
}

struct Texts;

impl<'de> Visitor<'de> for Texts {
    type Value = TextMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<TextMap, A::Error> {
        let mut map = TextMap::default();
        while let Some((Text(name), Text(value))) = entries.next_entry()? {
            // We write it sorted; a person who edits the file need not.
            if map.iter().next_back().is_none_or(|(last, _)| last < &*name) {
                map.push(&name, &value);
            } else {
                map.insert(&name, &value);
            }
        }
        Ok(map)
    }
}

/// A text that is borrowed from the JSON if it has no escapes.
#[derive(Deserialize)]
struct Text<'json>(#[serde(borrow)] Cow<'json, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_as_a_sorted_map_of_texts_is() {
        for json in [
            "{}",
            r#"{"a":"1"}"#,
            r#"{"a":"1","b":"","c":"3"}"#,
            // In another order, a name twice, an empty name, escapes.
            r#"{"c":"3","a":"1","b":"2","a":"4"}"#,
            r#"{"":"x","\u0061\"":"é\n"}"#,
        ] {
            let map: TextMap = serde_json::from_str(json).unwrap();
            let expected: BTreeMap<String, String> = serde_json::from_str(json).unwrap();
            assert_eq!(map.to_map(), expected, "{json}");
            assert_eq!(map, TextMap::from(expected.clone()), "{json}");
            for (name, value) in &expected {
                assert_eq!(map.get(name), Some(value.as_str()), "{json}");
            }
            for absent in ["0", "aa", "zz"] {
                assert_eq!(map.get(absent), None, "{json}");
            }
            let written = serde_json::to_string(&map).unwrap();
            assert_eq!(written, serde_json::to_string(&expected).unwrap());
        }
        for wrong in [r#"{"a":1}"#, r#"["a"]"#, "null", r#"{"a":"1""#] {
            assert!(serde_json::from_str::<TextMap>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn changes_are_those_of_a_sorted_map() {
        let mut map = TextMap::default();
        let mut expected = BTreeMap::new();
        for (name, value) in [("b", "22"), ("a", ""), ("c", "3"), ("b", "4"), ("bb", "5")] {
            map.insert(name, value);
            expected.insert(name.to_owned(), value.to_owned());
            assert_eq!(map, TextMap::from(expected.clone()), "{name}");
        }
        for name in ["x", "b", "a"] {
            map.remove(name);
            expected.remove(name);
            assert_eq!(map, TextMap::from(expected.clone()), "{name}");
        }
        map.retain(|name| name == "c");
        assert_eq!(map.to_map(), [("c".to_owned(), "3".to_owned())].into());
    }
}
