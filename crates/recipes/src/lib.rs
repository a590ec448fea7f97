//! Well-known servers: `registry/recipes.toml`, which is part of the program.
//!
//! The recipes hold static knowledge alone: this crate reads no file, starts no process and uses no
//! network.

mod entry;
mod file;
mod listed;
mod lookup;
mod mend;
mod recipe;
mod template;
mod versions;

pub use entry::{RecipeValues, RequiredValue, ServerTable};
pub use file::{SOURCE, all, known};
pub use listed::{ListedServer, read_listed};
pub use lookup::{find, find_instead_of, of_package, recipe_of, replacement, search};
pub use mend::{Mended, mend, of_arguments};
pub use recipe::{
    Alternative, Auth, Distribution, Example, Parameter, Pin, Recipe, RecipeScope, ServerFacts,
    StartMethod, Started, Transport, Variable,
};
pub use versions::fits;

#[cfg(test)]
mod tests;
