//! The file of recipes as a part of the program, parsed at its first use.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::recipe::{Recipe, ServerFacts};

/// The text of the file, for callers that must detect changes to it.
pub const SOURCE: &str = include_str!("../../../registry/recipes.toml");

/// Returns every recipe of a server that can be added, by category and name.
pub fn all() -> &'static [Recipe] {
    &FILE.recipes
}

/// Returns the search data of every server, including those that cannot be added.
pub fn known() -> impl Iterator<Item = &'static ServerFacts> {
    let of_recipes = FILE.recipes.iter().map(|recipe| &recipe.known);
    FILE.known.iter().chain(of_recipes)
}

const JSON: &str = include_str!(concat!(env!("OUT_DIR"), "/recipes.json"));

static FILE: LazyLock<RecipeFile> =
    LazyLock::new(|| serde_json::from_str(JSON).expect("a test reads the same embedded file"));

/// The file as the build script wrote it.
#[derive(Debug, Deserialize)]
struct RecipeFile {
    known: Vec<ServerFacts>,
    recipes: Vec<Recipe>,
}
