//! Repair of command lines that another program wrote, by the recipes of their packages.

use crate::lookup::of_package;
use crate::recipe::{Pin, Recipe, StartMethod, Variable};

/// A repaired command line.
#[derive(Debug, Clone)]
pub struct Mended {
    /// The recipe of its package.
    pub recipe: &'static Recipe,
    /// The pins that were added. Never empty.
    pub pins: Vec<&'static Pin>,
    /// The arguments including the pins.
    pub args: Vec<String>,
}

/// Returns the recipe of the package in a command line.
pub fn of_arguments(args: &[String]) -> Option<&'static Recipe> {
    args.iter().find_map(|arg| of_package(arg))
}

/// Adds the version pins that this package currently needs. Returns `None` if none is missing. Only
/// `uvx` and `uv` support `--with`.
pub fn mend(command: &str, args: &[String]) -> Option<Mended> {
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    if !["uvx", "uv", "uvx.exe", "uv.exe"].contains(&program) {
        return None;
    }
    let at = args.iter().position(|arg| of_package(arg).is_some())?;
    let recipe = of_package(&args[at])?;
    let is_held = |pin: &Pin| {
        let name = package_of(&pin.with);
        let given = args.iter().zip(args.iter().skip(1));
        let mut given = given
            .filter(|(option, _)| *option == "--with")
            .map(|(_, it)| it.as_str());
        let mut joined = args.iter().filter_map(|arg| arg.strip_prefix("--with="));
        let is_it = |given: &str| given.split(',').any(|it| package_of(it) == name);
        given.any(is_it) || joined.any(is_it)
    };
    let pins: Vec<&Pin> = recipe.pins.iter().filter(|pin| !is_held(pin)).collect();
    if pins.is_empty() {
        return None;
    }
    // If the program of a package has another name, the package is the value of `--from`.
    let is_from = at > 0 && args[at - 1] == "--from";
    let at = at - usize::from(is_from);
    let added = pins
        .iter()
        .flat_map(|pin| ["--with".to_owned(), pin.with.clone()]);
    let mut mended = args.to_vec();
    mended.splice(at..at, added);
    Some(Mended {
        recipe,
        pins,
        args: mended,
    })
}

/// Returns the package of a requirement: `mcp` for `mcp<2` and `mcp[cli]==1.9`.
fn package_of(requirement: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let end = requirement
        .find(|c| !is_name(c))
        .unwrap_or(requirement.len());
    &requirement[..end]
}

impl Recipe {
    /// Returns the required variables for which a table has no value. `names` are the variables that
    /// the server receives; a text of `texts` may refer to a variable instead.
    pub fn lacks<'a>(
        &'static self,
        names: impl IntoIterator<Item = &'a str>,
        texts: &[String],
    ) -> Vec<&'static Variable> {
        if !matches!(self.way, StartMethod::Command(_)) {
            return Vec::new();
        }
        let names: Vec<&str> = names.into_iter().collect();
        let is_given = |variable: &Variable| {
            let name = variable.name.as_str();
            let is_passed = names.iter().any(|it| *it == name || *it == "*");
            is_passed || texts.iter().any(|text| text.contains(name))
        };
        self.required()
            .filter(|variable| !is_given(variable))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{mend, of_arguments};

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(line: &str, mended: Option<&str>) {
        let (command, args) = line.split_once(' ').unwrap();
        let found = mend(command, &words(args)).map(|it| it.args);
        assert_eq!(found, mended.map(words), "{line}");
    }

    #[test]
    fn what_a_recipe_holds_back_is_added_once() {
        check(
            "uvx mcp-server-sqlite --db-path x",
            Some("--with mcp<2 mcp-server-sqlite --db-path x"),
        );
        check(
            "/usr/bin/uvx --python 3.12 mcp_server_sqlite@latest",
            Some("--python 3.12 --with mcp<2 mcp_server_sqlite@latest"),
        );
        check(
            "uv tool run mcp-server-sqlite==2025.4.25",
            Some("tool run --with mcp<2 mcp-server-sqlite==2025.4.25"),
        );
        check(
            "uvx --from office-powerpoint-mcp-server ppt_mcp_server",
            Some("--with mcp<2 --from office-powerpoint-mcp-server ppt_mcp_server"),
        );
        check("uvx --with mcp<2 mcp-server-sqlite", None);
        check("uvx --with=mcp==1.9.4 mcp-server-sqlite", None);
        check(
            "uvx --with mcpx<2 mcp-server-sqlite",
            Some("--with mcpx<2 --with mcp<2 mcp-server-sqlite"),
        );
        check("uvx mcp-server-time", None);
        check("python -m mcp-server-sqlite", None);
        check("npx -y mcp-server-nobody", None);
    }

    #[test]
    fn every_pinned_recipe_holds_back_what_it_says() {
        for recipe in crate::all().iter().filter(|it| !it.pins.is_empty()) {
            let crate::StartMethod::Command(command) = &recipe.way else {
                continue;
            };
            assert!(
                mend(&command[0], &command[1..]).is_none(),
                "{}",
                recipe.name()
            );
            let package = vec![recipe.package.clone().unwrap()];
            assert!(mend(&command[0], &package).is_some(), "{}", recipe.name());
        }
    }

    #[test]
    fn a_variable_that_nothing_gives_is_lacking() {
        let recipe = of_arguments(&words("-y @circleci/mcp-server-circleci@latest")).unwrap();
        let lacks = |names: &[&str], texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|it| (*it).to_owned()).collect();
            let lacks = recipe.lacks(names.iter().copied(), &texts);
            lacks.iter().map(|it| it.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(lacks(&["OTHER"], &[]), ["CIRCLECI_TOKEN"]);
        assert!(lacks(&["CIRCLECI_TOKEN"], &[]).is_empty());
        assert!(lacks(&["*"], &[]).is_empty());
        assert!(lacks(&[], &["${CIRCLECI_TOKEN}"]).is_empty());
    }
}
