//! A server as given on the command line, made ready for the configuration.

use config::edit::NewServer;
use tool::ServerName;

use crate::naming::{name_of_command, name_of_url, valid_name};

/// The values given for a new server. Texts are as typed, and are templates: `${VAR}` in them is filled
/// in at each start.
#[derive(Debug, Clone, Default)]
pub struct AddArguments {
    /// Its name; an address in its place is used as the address.
    pub name: Option<String>,
    /// Its address, for a remote server; with a name alone, the value of a recipe's only parameter.
    pub url: Option<String>,
    /// Its program and arguments, for a local server.
    pub command: Vec<String>,
    /// `NAME=VALUE`, or `NAME` for a variable whose value is read from our environment at each start.
    pub env: Vec<String>,
    /// `NAME: VALUE`.
    pub headers: Vec<String>,
    /// The folder it runs in.
    pub cwd: Option<String>,
}

/// The reason why no server can be added, with the fix, for people.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// A command line from which no name could be made.
    #[error("no name can be derived from this\nhint: proxy add NAME ...")]
    NoName,
    /// A name that is not valid.
    #[error("{0}")]
    Name(String),
    /// A header for a server that is started here.
    #[error("only a remote server takes headers\nhint: set a variable with `--env NAME=VALUE`")]
    Headers,
    /// A mistake in another argument, or an argument that is missing.
    #[error("{0}")]
    Argument(String),
}

impl AddArguments {
    /// The name of a server that is given by name alone, or with an argument that is no address: a
    /// recipe must have it.
    pub fn name_alone(&self) -> Option<&str> {
        let name = self.name.as_deref().filter(|name| !name.contains("://"))?;
        let has_address = self.url.as_ref().is_some_and(|url| url.contains("://"));
        (!has_address && self.command.is_empty()).then_some(name)
    }
}

const BOTH: &str = "both an address and a command\nhint: `proxy add NAME URL` for a remote server, `proxy add \
                    NAME -- COMMAND` for a local one";

/// Returns the name and the table of a server whose command or address was given.
pub fn read(given: &AddArguments) -> Result<(ServerName, NewServer), AddError> {
    let (name, url) = match (&given.name, &given.url) {
        (Some(name), None) if name.contains("://") => (None, Some(name)),
        (name, url) => (name.as_ref(), url.as_ref()),
    };
    let server = match (url, given.command.as_slice()) {
        (Some(_), [_, ..]) => return Err(wrong(BOTH)),
        (Some(url), []) => remote(url, given)?,
        (None, [_, ..]) => child(given)?,
        (None, []) => {
            return Err(name.map_or(AddError::NoName, |name| no_start(name, None)));
        }
    };
    let name = match (name, url) {
        (Some(name), _) => read_name(name)?,
        (None, Some(url)) => name_of_url(url).ok_or(AddError::NoName)?,
        (None, None) => {
            let words: Vec<&str> = given.command.iter().map(String::as_str).collect();
            name_of_command(&words).ok_or(AddError::NoName)?
        }
    };
    Ok((name, server))
}

/// Parses a name as typed.
pub fn read_name(name: &str) -> Result<ServerName, AddError> {
    let near = valid_name(name).map(|near| format!("\nhint: `{near}` is valid"));
    let near = near.unwrap_or_default();
    name.parse()
        .map_err(|error: tool::NameError| AddError::Name(format!("{error}{near}")))
}

/// The number of similar recipes that are named.
const RECIPES_NAMED: usize = 3;

/// Returns the error for a name that no recipe has; `given` followed the name.
pub fn no_start(name: &str, given: Option<&str>) -> AddError {
    if let Some(given) = given {
        return wrong(format!(
            "`{given}` is not an address, and there is no recipe for `{name}`\nhint: proxy add {name} -- {given}, \
             or: proxy add {name} https://HOST/mcp"
        ));
    }
    let names = recipes::all().iter().map(recipes::Recipe::name);
    let mut near = tool::near(name, names, RECIPES_NAMED);
    if near.is_empty() {
        let found = recipes::search(name).into_iter().take(RECIPES_NAMED);
        near = found.map(recipes::Recipe::name).collect();
    }
    let near = match near.as_slice() {
        [] => String::new(),
        near => format!("proxy add {}; else ", near.join(", or proxy add ")),
    };
    wrong(format!(
        "there is no recipe for `{name}`, and neither a command nor an address is given\nhint: {near}proxy add {name} \
         -- npx -y PACKAGE, or: proxy add {name} https://HOST/mcp"
    ))
}

fn wrong(why: impl Into<String>) -> AddError {
    AddError::Argument(why.into())
}

fn remote(url: &str, given: &AddArguments) -> Result<NewServer, AddError> {
    if !given.env.is_empty() || given.cwd.is_some() {
        return Err(wrong(
            "a remote server takes no variables and no folder\nhint: set a header with `--header 'NAME: VALUE'`",
        ));
    }
    Ok(NewServer {
        url: Some(url.to_owned()),
        headers: read_headers(&given.headers)?,
        ..NewServer::default()
    })
}

fn child(given: &AddArguments) -> Result<NewServer, AddError> {
    if !given.headers.is_empty() {
        return Err(AddError::Headers);
    }
    let mut words = given.command.iter();
    Ok(NewServer {
        command: words.next().cloned(),
        args: words.cloned().collect(),
        env: read_env(&given.env)?,
        cwd: given.cwd.clone(),
        ..NewServer::default()
    })
}

/// Returns `NAME=VALUE` unchanged; `NAME` as a template that reads the value from the environment.
pub fn read_env(given: &[String]) -> Result<Vec<(String, String)>, AddError> {
    let read = |pair: &String| {
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (pair.as_str(), format!("${{{pair}}}")),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            // The text after the `=` may be a secret.
            return Err(wrong(format!(
                "`{name}` is not a variable\nhint: write `NAME=VALUE`"
            )));
        }
        Ok((name.to_owned(), value))
    };
    given.iter().map(read).collect()
}

/// Returns `NAME: VALUE` as pairs; the values are templates.
pub fn read_headers(given: &[String]) -> Result<Vec<(String, String)>, AddError> {
    let read = |header: &String| {
        let (name, value) = header
            .split_once(':')
            .or_else(|| header.split_once('='))
            .unwrap_or((header, ""));
        if value.trim().is_empty() || name.contains(' ') {
            return Err(wrong(format!(
                "`{name}` is not a header\nhint: write `NAME: VALUE`"
            )));
        }
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    given.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::{AddArguments, AddError, read};

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_command_is_a_server_and_gives_it_a_name() {
        let given = AddArguments {
            command: words("npx -y @scope/server-notes dir"),
            env: words("KEY=a=b TOKEN"),
            ..AddArguments::default()
        };
        let (name, server) = read(&given).unwrap();
        assert_eq!(name.as_str(), "notes");
        assert_eq!(server.command.as_deref(), Some("npx"));
        assert_eq!(server.args, ["-y", "@scope/server-notes", "dir"]);
        let env = [("KEY", "a=b"), ("TOKEN", "${TOKEN}")];
        assert_eq!(server.env, env.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn an_address_in_the_place_of_the_name_is_an_address() {
        let given = AddArguments {
            name: Some("https://mcp.example.com/mcp".to_owned()),
            headers: vec![
                "Authorization: Bearer ${T}".to_owned(),
                "X-Team=a".to_owned(),
            ],
            ..AddArguments::default()
        };
        let (name, server) = read(&given).unwrap();
        assert_eq!(name.as_str(), "example");
        assert_eq!(server.url, given.name);
        let headers = [("Authorization", "Bearer ${T}"), ("X-Team", "a")];
        let headers = headers.map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(server.headers, headers);
    }

    #[test]
    fn what_cannot_be_added_is_told_with_what_to_type() {
        let check = |given: &AddArguments, says: &str| {
            let error = read(given).unwrap_err().to_string();
            assert!(
                error.starts_with(says) && error.contains("hint: "),
                "{error}"
            );
        };
        let named = |name: &str| AddArguments {
            name: Some(name.to_owned()),
            ..AddArguments::default()
        };
        check(&named("nobody"), "there is no recipe for `nobody`");
        check(&AddArguments::default(), "no name can be derived");
        let mut both = named("x");
        both.url = Some("https://a.example.com".to_owned());
        both.command = words("npx y");
        check(&both, "both an address and a command");
        let mut shouted = named("My Server");
        shouted.command = words("npx y");
        let error = read(&shouted).unwrap_err();
        assert!(error.to_string().ends_with("hint: `my-server` is valid"));
        let mut secret = named("x");
        secret.command = words("npx y");
        secret.env = vec!["a b=hunter2".to_owned()];
        check(&secret, "`a b` is not a variable");
        secret.env.clear();
        secret.headers = vec!["X: y".to_owned()];
        assert_eq!(read(&secret).unwrap_err(), AddError::Headers);
    }
}
