//! Recipes by name, by package, and by words.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::file::all;
use crate::recipe::{Recipe, ServerFacts, StartMethod};

/// Returns the recipe with this name: its own name, another name of the server or its package, or a
/// common alias if only one recipe has it. Case, `_` and words such as `mcp` do not matter.
pub fn find(name: &str) -> Option<&'static Recipe> {
    let asked = simplify(name);
    if asked.is_empty() {
        return None;
    }
    let is = |other: &str| simplify(other) == asked;
    let known = |recipe: &Recipe| recipe.known.names.iter().any(|other| is(other));
    let aliased = |recipe: &Recipe| recipe.known.aliases.iter().any(|other| is(other));
    only(|recipe| recipe.name() == name)
        .or_else(|| only(|recipe| is(recipe.name())))
        .or_else(|| only(known))
        .or_else(|| of_package(name))
        .or_else(|| only(aliased))
}

/// Returns the recipe of a server that search knows, if there is one.
pub fn recipe_of(known: &ServerFacts) -> Option<&'static Recipe> {
    all().iter().find(|recipe| recipe.known.name == known.name)
}

/// Returns the recipe of a package, an image or an address, of any release. It is the recipe that
/// starts it, not one that replaces it.
pub fn of_package(package: &str) -> Option<&'static Recipe> {
    let asked = bare(package);
    only(|recipe| match (&recipe.package, &recipe.way) {
        (Some(package), _) => bare(package) == asked,
        (None, StartMethod::Remote { url, .. }) => bare(url) == asked,
        (None, StartMethod::Command(_)) => false,
    })
}

/// Returns the recipe that replaces this outdated package or address.
pub fn replacement(package: &str) -> Option<&'static Recipe> {
    let asked = bare(package);
    only(|recipe| recipe.replaces.iter().any(|old| bare(old) == asked))
}

/// Returns the recipe that serves the purpose of a package that does not exist: the recipe that replaces
/// it, or one with its name or with a word of its name. `None` if recipes name that package themselves.
pub fn find_instead_of(package: &str) -> Option<&'static Recipe> {
    if of_package(package).is_some() {
        return None;
    }
    let bare = bare(package);
    let own = bare.rsplit('/').next().unwrap_or_default();
    let words = split(own).collect::<Vec<_>>().into_iter();
    let mut words = words.filter(|word| word.len() >= PREFIX_CHARS);
    replacement(package)
        .or_else(|| find(own))
        .or_else(|| words.find_map(|word| find(&word)))
        .filter(|recipe| recipe.deprecated.is_none())
}

/// Returns the recipes that match these words, the best first; without words all of them, by name. Only
/// the recipes that match the most words are returned.
pub fn search(words: &str) -> Vec<&'static Recipe> {
    let words: BTreeSet<String> = split(words).collect();
    let mut found: Vec<_> = (all().iter())
        .map(|recipe| (score(recipe, &words), recipe))
        .filter(|((matched, _), _)| *matched > 0 || words.is_empty())
        .collect();
    let most = found.iter().map(|((matched, _), _)| *matched).max();
    found.retain(|((matched, _), _)| Some(*matched) == most);
    found.sort_by_key(|((_, score), recipe)| (Reverse(*score), recipe.name()));
    found.into_iter().map(|(_, recipe)| recipe).collect()
}

/// Returns the number of words that match a recipe, and the score of the matches.
fn score(recipe: &Recipe, words: &BTreeSet<String>) -> (usize, u32) {
    let known = &recipe.known;
    let name = std::slice::from_ref(&known.name);
    let texts: [(&[String], u32); 8] = [
        (name, 10),
        (&known.names, 8),
        (&known.aliases, 8),
        (&recipe.verbs, 5),
        (&known.tags, 4),
        (std::slice::from_ref(&known.category), 3),
        (std::slice::from_ref(&recipe.what), 3),
        (std::slice::from_ref(&recipe.notes), 1),
    ];
    let best = |word: &String| -> u32 {
        let scores = texts.iter().map(|(texts, weight)| {
            let fit = texts.iter().flat_map(|text| split(text));
            weight * fit.map(|other| closeness(word, &other)).max().unwrap_or(0)
        });
        scores.max().unwrap_or(0)
    };
    let scores = words.iter().map(best);
    let retired = u32::from(recipe.deprecated.is_some());
    let (matched, sum) = scores.fold((0, 0), |(matched, sum), score| {
        (matched + usize::from(score > 0), sum + score)
    });
    (matched, sum.saturating_sub(retired * RETIRED))
}

/// Returns 2 if the words are equal, 1 if `other` begins with `word`, else 0.
fn closeness(word: &str, other: &str) -> u32 {
    let begins = word.len() >= PREFIX_CHARS && other.starts_with(word);
    if word == other { 2 } else { u32::from(begins) }
}

/// Splits a text into words in lower case and in the singular, without words that carry no meaning.
fn split(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).map(str::to_lowercase);
    let words = words.filter(|word| !NOISE.contains(&word.as_str()));
    words.map(|word| match word.strip_suffix('s') {
        Some(one) if one.len() > 2 && !one.ends_with('s') => one.to_owned(),
        _ => word,
    })
}

/// Returns a name without case, punctuation and words that carry no meaning.
fn simplify(name: &str) -> String {
    let words: Vec<String> = split(name).collect();
    words.join("-")
}

/// Returns a package without its release, an image without its tag, or an address without its last
/// slash.
fn bare(package: &str) -> String {
    let package = package.trim().to_ascii_lowercase();
    if package.contains("://") {
        let end = package.find('?').unwrap_or(package.len());
        return package[..end].trim_end_matches('/').to_owned();
    }
    let name = package.rfind('/').map_or(0, |slash| slash + 1);
    let sign = package[name..].find(['@', ':', '=', '<', '>', '[', '~', ' ']);
    let end = match sign {
        // An `@` at the beginning belongs to the scope of a package, and does not begin a release.
        Some(0) | None => package.len(),
        Some(at) => name + at,
    };
    // PyPI treats these spellings of a name as the same.
    package[..end].replace(['_', '.'], "-")
}

/// Returns the recipe for which `holds` is true, if there is exactly one.
fn only(holds: impl Fn(&Recipe) -> bool) -> Option<&'static Recipe> {
    let mut found = all().iter().filter(|recipe| holds(recipe));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The shortest word that is matched as a prefix; shorter ones begin too many words.
const PREFIX_CHARS: usize = 3;

/// The score that a deprecated recipe loses, so that it is listed after its successor.
const RETIRED: u32 = 8;

const NOISE: [&str; 23] = [
    "mcp", "server", "servers", "the", "a", "an", "of", "in", "on", "to", "for", "and", "or",
    "with", "my", "dev", "by", "from", "its", "it", "is", "that", "official",
];
