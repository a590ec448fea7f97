//! The file as it is part of the program, read when somebody first asks.

use std::sync::LazyLock;

use crate::raw;
use crate::recipe::{Known, Recipe};

/// The file as it is, for whoever has to notice that it changed.
pub const SOURCE: &str = include_str!("../../../registry/recipes.toml");

/// Every recipe of a server that can be added, by category and name.
pub fn all() -> &'static [Recipe] {
    &FILE.recipes
}

/// What search knows of every server, of those too that cannot be added.
pub fn known() -> impl Iterator<Item = &'static Known> {
    let of_recipes = FILE.recipes.iter().map(|recipe| &recipe.known);
    FILE.known.iter().chain(of_recipes)
}

const JSON: &str = include_str!(concat!(env!("OUT_DIR"), "/recipes.json"));

static FILE: LazyLock<raw::File> =
    LazyLock::new(|| raw::parse(JSON).expect("a test reads the same embedded file"));
