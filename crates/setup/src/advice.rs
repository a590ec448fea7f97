//! The knowledge of recipes about servers that were not added by them.

use clients::{Home, ImportedServer, ServerEntry, TranslatedServer};
use config::edit::NewServer;
use recipes::{Mended, Pin, StartMethod, Variable, mend, of_arguments, replacement};

/// Translates an entry of a client, and applies what recipes know of its server: the new address of a
/// server that moved, and version pins. Remarks tell the changes. The error is why it is left out.
pub fn translate(entry: &ServerEntry, home: &Home) -> Result<ImportedServer, String> {
    let mut imported = clients::translate(entry, home)?;
    let server = &mut imported.server;
    imported.remarks.extend(update_address(server));
    let added = add_pins(server.command.as_deref(), &mut server.args);
    let names = server.env.iter().map(|(name, _)| name);
    let names = names.chain(&server.inherit_env);
    let remarks = describe(added.as_ref(), &server.args, server.url.as_deref(), names);
    imported.remarks.extend(remarks);
    Ok(imported)
}

/// Replaces an address that has moved, and returns a remark on it.
fn update_address(server: &mut TranslatedServer) -> Option<String> {
    let recipe = replacement(server.url.as_deref()?)?;
    let StartMethod::Remote { url: new, .. } = &recipe.way else {
        return None;
    };
    if !recipe.parameters.is_empty() {
        return None;
    }
    let old = server.url.replace(new.clone())?;
    Some(format!("its address {old} is now {new}"))
}

/// Adds the version pins of its recipe to a server that was typed; returns remarks on everything that
/// recipes know of it.
pub fn advise_typed(server: &mut NewServer) -> Vec<String> {
    let added = add_pins(server.command.as_deref(), &mut server.args);
    let names = server.env.iter().map(|(name, _)| name);
    let names = names.chain(&server.inherit_env);
    describe(added.as_ref(), &server.args, server.url.as_deref(), names)
}

fn add_pins(command: Option<&str>, args: &mut Vec<String>) -> Option<Mended> {
    let mended = mend(command?, args)?;
    args.clone_from(&mended.args);
    Some(mended)
}

/// Describes the facts that recipes have about a server with this command line and these variables.
fn describe<'a>(
    added: Option<&Mended>,
    args: &[String],
    url: Option<&str>,
    names: impl Iterator<Item = &'a String>,
) -> Vec<String> {
    let mut remarks: Vec<String> = added.map(describe_pins).unwrap_or_default();
    let packages = args.iter().map(String::as_str).chain(url);
    let replaced = packages.filter_map(|package| Some((package, replacement(package)?)));
    for (package, recipe) in replaced {
        let package = package.split('?').next().unwrap_or_default();
        let name = recipe.name();
        remarks.push(format!(
            "`{package}` is deprecated; instead run: proxy add {name}"
        ));
    }
    let Some(recipe) = of_arguments(args) else {
        return remarks;
    };
    let is_replaced = args.iter().any(|it| replacement(it).is_some());
    if let Some(instead) = recipe.deprecated.as_ref().filter(|_| !is_replaced) {
        remarks.push(format!("`{}` is deprecated; use {instead}", recipe.name()));
    }
    for Variable {
        name, what, origin, ..
    } in recipe.lacks(names.map(String::as_str), args)
    {
        let origin = origin.as_ref().map(|it| format!(", from {it}"));
        let origin = origin.unwrap_or_default();
        remarks.push(format!(
            "it needs the variable {name} ({what}{origin}), which is not set"
        ));
    }
    remarks
}

fn describe_pins(mended: &Mended) -> Vec<String> {
    let package = mended.recipe.package.as_deref().unwrap_or_default();
    let one = |pin: &&Pin| {
        let (with, why) = (&pin.with, &pin.why);
        format!("`--with {with}` was added to the command of `{package}`: {why}")
    };
    mended.pins.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use clients::Home;
    use config::edit::NewServer;

    use super::{advise_typed, translate};

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
        assert!(remarks.contains("run: proxy add github"), "{remarks}");
        assert_eq!(typed("uvx mcp-server-time", &[]).1, "");
        let (_, remarks) = typed("npx -y @modelcontextprotocol/server-google-maps", &[]);
        assert!(remarks.contains("is deprecated; use Google's"), "{remarks}");
    }

    #[test]
    fn an_imported_address_that_has_moved_is_replaced() {
        let home = Home::new("/home/ada", []);
        let pasted = r#"{"linear": {"url": "https://mcp.linear.app/sse/"}}"#;
        let entries = clients::read_text(pasted).unwrap();
        let imported = translate(&entries[0], &home).unwrap();
        assert_eq!(
            imported.server.url.as_deref(),
            Some("https://mcp.linear.app/mcp")
        );
        let remark = "its address https://mcp.linear.app/sse/ is now https://mcp.linear.app/mcp";
        assert_eq!(imported.remarks, [remark]);
    }
}
