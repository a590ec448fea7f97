//! Changes of the configuration file for the web page.

use config::{
    ConfigError, Environment,
    edit::{self, Document, EditError, NewServer, StoredSecrets, describe_stored},
};
use page::{Changed, ConfigChange, Configure, NewServerRequest, Refused};
use setup::{
    add::{self, AddArguments, AddError},
    known::Answers,
    moving::difference,
};
use tool::ServerName;

use crate::{
    cli::global::Global,
    commands::secret::{keep_with, names},
};

/// Changes the file that the daemon follows.
pub(crate) struct PageEditor {
    global: Global,
}

/// The result of an edit.
#[derive(Default)]
struct Edited {
    /// A sentence.
    message: String,
    /// The name of a new server.
    name: Option<String>,
    /// The secrets that the document names, and that are stored with it.
    secrets: StoredSecrets,
}

impl Edited {
    fn saying(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

impl PageEditor {
    pub(crate) fn new(global: &Global) -> Self {
        let global = global.clone();
        Self { global }
    }

    fn edit(
        &self,
        is_dry_run: bool,
        edit: impl FnMut(&mut Document) -> Result<Edited, EditError>,
    ) -> Result<Changed, Refused> {
        let mut texts = None;
        let changed = edit::change_with(
            &self.global.overrides(),
            &Environment::of_process(),
            edit,
            |edited: &Edited, document, write| {
                let before = document.before().map(str::to_owned);
                texts = Some((document.path().to_owned(), before, document.text()));
                if is_dry_run {
                    return Ok(());
                }
                keep_with(&self.global, &edited.secrets, write)
            },
        );
        let changed = changed.map_err(refuse)?;
        let Edited { message, name, .. } = changed.value;
        // An edit that changes nothing is not committed.
        let (path, before, after) = texts.unwrap_or_else(|| (changed.path, None, String::new()));
        Ok(Changed {
            message,
            name,
            diff: difference(&path, before.as_deref(), &after),
            before: before.unwrap_or_default(),
            after,
        })
    }
}

impl Configure for PageEditor {
    fn change(&self, change: &ConfigChange, is_dry_run: bool) -> Result<Changed, Refused> {
        match change {
            ConfigChange::SetEnabled { server, enabled } => self.edit(is_dry_run, |document| {
                let state = if *enabled { "enabled" } else { "disabled" };
                let is_new = document.set_enabled(server, *enabled)?;
                let already = if is_new { "" } else { " already" };
                Ok(Edited::saying(format!("{state}{already}: {server}")))
            }),
            ConfigChange::AddServer(request) => {
                let (name, server) = prepare(request)?;
                let added = self.edit(is_dry_run, |document| {
                    let secrets = document.add_server(&name, &server, || names(&self.global))?;
                    let stored = describe_stored(&secrets);
                    let stored = stored.map(|it| format!("; {it}")).unwrap_or_default();
                    Ok(Edited {
                        message: format!("added: {name}{stored}"),
                        name: Some(name.to_string()),
                        secrets,
                    })
                });
                added.map_err(|refused| match refused {
                    Refused::Invalid { text, field } => Refused::Invalid {
                        text,
                        // The page calls it so.
                        field: field.map(|it| it.replace("url", "address")),
                    },
                    refused => refused,
                })
            }
            ConfigChange::Forbid {
                server,
                tool,
                client,
            } => self.edit(is_dry_run, |document| {
                document.forbid(server, tool, client.as_deref());
                let of = client.as_deref().unwrap_or("every client");
                Ok(Edited::saying(format!(
                    "forbidden for {of}: {server}/{tool}"
                )))
            }),
            ConfigChange::Restore { expected, text } => self.edit(is_dry_run, |document| {
                document.restore(expected, text)?;
                Ok(Edited::saying("the change was undone"))
            }),
        }
    }
}

/// Returns the server that a page asks for, as it is to be written.
fn prepare(request: &NewServerRequest) -> Result<(ServerName, NewServer), Refused> {
    if let Some(address) = &request.address {
        let given = AddArguments {
            name: request.name.clone(),
            url: Some(address.clone()),
            ..AddArguments::default()
        };
        return add::read(&given).map_err(|error| match error {
            AddError::Name { .. } => refuse_at("name", &error),
            error => refuse_at("address", &error),
        });
    }
    let asked = request.recipe.as_deref().unwrap_or_default();
    let recipe = recipes::find(asked);
    let recipe = recipe.ok_or_else(|| refuse_at("recipe", &add::no_start(asked, None)))?;
    let name = request.name.as_deref().unwrap_or(recipe.name());
    let name = add::read_name(name).map_err(|error| refuse_at("name", &error))?;
    let mut answers = Answers::new(recipe);
    for question in answers.questions(|_| false) {
        let given = request.values.get(&question.name);
        if let Some(value) = given.filter(|it| !it.is_empty()) {
            answers.answer(&question, value);
        }
    }
    let missing = answers.questions(|name| std::env::var_os(name).is_some());
    if !missing.is_empty() {
        return Err(Refused::Missing {
            text: format!("`{asked}` needs more values; nothing was changed"),
            needs: missing,
        });
    }
    Ok((name, answers.server()))
}

fn refuse_at(field: &str, why: &impl ToString) -> Refused {
    Refused::Invalid {
        text: why.to_string(),
        field: Some(field.to_owned()),
    }
}

fn refuse(error: EditError) -> Refused {
    match error {
        EditError::Mistakes(mistakes) | EditError::Broken(mistakes) => invalid(&mistakes),
        EditError::Unknown { .. } => Refused::NotFound(error.to_string()),
        EditError::Changed(_) => Refused::Changed(error.to_string()),
        EditError::Exists(_) => refuse_at("name", &error),
        EditError::Io { .. } | EditError::Busy(_) | EditError::Outrun(_) => {
            Refused::Failed(error.into())
        }
        other => Refused::Invalid {
            text: other.to_string(),
            field: None,
        },
    }
}

/// The mistakes of the changed file, in the words of `config check`, at the key of the first.
fn invalid(error: &ConfigError) -> Refused {
    let first = error.mistakes.first();
    let field = first.and_then(|it| it.key.rsplit('.').next());
    let field = field.filter(|it| !it.is_empty());
    Refused::Invalid {
        text: error.to_string(),
        field: field.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use secrets::Store;
    use serde_json::{Value, json};

    use super::*;

    fn request(json: Value) -> ConfigChange {
        ConfigChange::AddServer(serde_json::from_value(json).unwrap())
    }

    fn editor(folder: &tempfile::TempDir) -> PageEditor {
        let config = folder.path().join("config.toml");
        let global = Global::with_paths(config, folder.path().join("state"));
        PageEditor::new(&global)
    }

    #[test]
    fn a_secret_value_is_stored_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let editor = editor(&folder);
        let value = "an-unusual-value";
        let values = json!({ "CIRCLECI_TOKEN": value });
        let change = request(json!({"recipe": "circleci", "values": values}));
        let store = Store::in_state(&folder.path().join("state"));
        let kept = || {
            store
                .get(&"circleci.CIRCLECI_TOKEN".parse().unwrap())
                .unwrap()
        };
        let shown = editor.change(&change, true).unwrap();
        assert!(kept().is_none() && !folder.path().join("config.toml").exists());
        let changed = editor.change(&change, false).unwrap();
        assert_eq!(changed.diff, shown.diff);
        assert!(!format!("{changed:?}").contains(value));
        let text = fs::read_to_string(folder.path().join("config.toml")).unwrap();
        assert!(text.contains("${secret:circleci.CIRCLECI_TOKEN}") && !text.contains(value));
        assert_eq!(kept().unwrap().expose(), value);
    }

    #[test]
    fn a_secret_in_an_address_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let editor = editor(&folder);
        let change =
            request(json!({"name": "far", "address": "https://far.test/mcp?token=opensesame"}));
        let changed = editor.change(&change, false).unwrap();
        assert!(
            !format!("{changed:?}").contains("opensesame"),
            "{changed:?}"
        );
        assert!(
            changed.message.ends_with("not in the file: far.token"),
            "{changed:?}"
        );
        let store = Store::in_state(&folder.path().join("state"));
        let kept = store.get(&"far.token".parse().unwrap()).unwrap();
        assert_eq!(kept.unwrap().expose(), "opensesame");
    }

    #[track_caller]
    fn check(refused: Result<Changed, Refused>, expected: &str) {
        let Err(Refused::Invalid { text, field }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(field.as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn a_mistake_is_at_its_field() {
        let folder = tempfile::tempdir().unwrap();
        let editor = editor(&folder);
        let add = |json| editor.change(&request(json), false);
        check(
            add(json!({"address": "ftp://x.test/", "name": "x"})),
            "address",
        );
        check(
            add(json!({"address": "https://x.test/mcp", "name": "X Y"})),
            "name",
        );
        check(add(json!({"recipe": "nothing-like-it"})), "recipe");
        check(
            add(json!({"recipe": "memory", "name": "X Y", "values": {"FILE": "/x"}})),
            "name",
        );
        let forbid = |client: &str| {
            let change = ConfigChange::Forbid {
                server: "notes".to_owned(),
                tool: "wipe".to_owned(),
                client: Some(client.to_owned()),
            };
            editor.change(&change, true)
        };
        check(forbid(""), "client");
        assert!(!folder.path().join("config.toml").exists());
        let missing = add(json!({"recipe": "circleci"}));
        let Err(Refused::Missing { needs, .. }) = missing else {
            panic!("{missing:?}");
        };
        assert!(
            needs
                .iter()
                .any(|it| it.name == "CIRCLECI_TOKEN" && it.is_secret)
        );
    }
}
