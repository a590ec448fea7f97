//! The knowledge of recipes about servers that were not added by them.

use clients::{Server, Taken};
use config::edit::NewServer;
use recipes::{Mended, Pin, Variable, mend, of_arguments, replacement};

/// Adds the version pins of its recipe to a server; returns what was added.
pub(crate) fn mend_server(server: &mut Server) -> Option<Mended> {
    let mended = mend(server.command.as_deref()?, &server.args)?;
    server.args.clone_from(&mended.args);
    Some(mended)
}

/// Does the same for an imported server, with remarks on everything that recipes know of it.
pub(crate) fn advise_taken(taken: &mut Taken) {
    let added = mend_server(&mut taken.server);
    let Server {
        args,
        url,
        env,
        inherit_env,
        ..
    } = &taken.server;
    let names = env.iter().map(|(name, _)| name).chain(inherit_env);
    let is_told = |package: &str| taken.remarks.iter().any(|it| it.contains(package));
    let remarks = describe(added.as_ref(), args, url.as_deref(), names, is_told);
    taken.remarks.extend(remarks);
    // Added words come before the secrets that were found.
    taken.secrets = clients::find_secrets(&taken.server);
}

/// Adds the version pins of its recipe to a server that was typed; returns remarks on everything that
/// recipes know of it.
pub fn advise_typed(server: &mut NewServer) -> Vec<String> {
    let added = mend(server.command.as_deref().unwrap_or_default(), &server.args);
    if let Some(mended) = &added {
        server.args.clone_from(&mended.args);
    }
    let NewServer {
        args,
        url,
        env,
        inherit_env,
        ..
    } = server;
    let names = env.iter().map(|(name, _)| name).chain(&*inherit_env);
    describe(added.as_ref(), args, url.as_deref(), names, |_| false)
}

/// Describes the facts that recipes have about a server with this command line and these variables. No
/// replacement is named for packages for which `is_told` returns true.
fn describe<'a>(
    added: Option<&Mended>,
    args: &[String],
    url: Option<&str>,
    names: impl Iterator<Item = &'a String>,
    is_told: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut remarks: Vec<String> = added.map(describe_pins).unwrap_or_default();
    let packages = args.iter().map(String::as_str).chain(url);
    let replaced = packages.filter_map(|package| Some((package, replacement(package)?)));
    for (package, recipe) in replaced.filter(|(package, _)| !is_told(package)) {
        let package = package.split('?').next().unwrap_or_default();
        let name = recipe.name();
        remarks.push(format!(
            "`{package}` is no longer the one to use; take: proxy add {name}"
        ));
    }
    let Some(recipe) = of_arguments(args) else {
        return remarks;
    };
    for Variable {
        name, what, origin, ..
    } in recipe.lacks(names.map(String::as_str), args)
    {
        let origin = origin
            .as_ref()
            .map_or_else(String::new, |it| format!(", from {it}"));
        remarks.push(format!(
            "it is known to need the variable {name} ({what}{origin}), which nothing gives it"
        ));
    }
    remarks
}

fn describe_pins(mended: &Mended) -> Vec<String> {
    let package = mended.recipe.package.as_deref().unwrap_or_default();
    let one = |pin: &&Pin| {
        let (with, why) = (&pin.with, &pin.why);
        format!("`--with {with}` was added to the start of `{package}`: {why}")
    };
    mended.pins.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use config::edit::NewServer;

    use super::advise_typed;

    #[test]
    fn what_was_typed_gets_what_its_recipe_knows() {
        let typed = |line: &str, env: &[&str]| {
            let mut words = line.split(' ').map(str::to_owned);
            let mut server = NewServer {
                command: words.next(),
                args: words.collect(),
                env: env
                    .iter()
                    .map(|name| ((*name).to_owned(), "x".to_owned()))
                    .collect(),
                ..NewServer::default()
            };
            let remarks = advise_typed(&mut server);
            (server.args.join(" "), remarks.join("\n"))
        };
        let (args, remarks) = typed("uvx mcp-server-sqlite --db-path x", &[]);
        assert_eq!(args, "--with mcp<2 mcp-server-sqlite --db-path x");
        assert!(remarks.starts_with("`--with mcp<2` was added"), "{remarks}");
        let (args, remarks) = typed("npx -y @circleci/mcp-server-circleci", &[]);
        assert_eq!(args, "-y @circleci/mcp-server-circleci");
        assert!(remarks.contains("the variable CIRCLECI_TOKEN"), "{remarks}");
        let given = typed("npx -y @circleci/mcp-server-circleci", &["CIRCLECI_TOKEN"]);
        assert_eq!(given.1, "");
        let (_, remarks) = typed("npx -y @modelcontextprotocol/server-github", &[]);
        assert!(remarks.contains("take: proxy add github"), "{remarks}");
        assert_eq!(typed("uvx mcp-server-time", &[]).1, "");
    }
}
