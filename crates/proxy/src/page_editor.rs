//! Changes of the configuration file for the web page.

use config::{
    ConfigError, Environment, Overrides,
    edit::{self, Document, EditError, NewServer},
};
use page::{Changed, ConfigChange, Configure, NewServerRequest, Refused, RequiredValue};
use serde_json::{Map, Value};
use setup::{
    add::{self, AddArguments},
    known::Answers,
    moving::difference,
};
use tool::ServerName;

use crate::cli::global::Global;

/// Changes the file that the daemon follows.
pub(crate) struct PageEditor {
    overrides: Overrides,
}

/// The result of an edit: a sentence, and the name of a new server.
type Edited = (String, Option<String>);

impl PageEditor {
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            overrides: global.overrides(),
        }
    }

    fn edit(
        &self,
        is_dry_run: bool,
        edit: impl FnMut(&mut Document) -> Result<Edited, EditError>,
    ) -> Result<Changed, Refused> {
        let mut texts = None;
        let changed = edit::change_with(
            &self.overrides,
            &Environment::of_process(),
            edit,
            |_, document, write| {
                let before = document.before().map(str::to_owned);
                texts = Some((document.path().to_owned(), before, document.text()));
                if is_dry_run { Ok(()) } else { write() }
            },
        );
        let changed = changed.map_err(refuse)?;
        let (message, name) = changed.value;
        // An edit that changes nothing is not committed.
        let (path, before, after) = texts.unwrap_or_else(|| (changed.path, None, String::new()));
        Ok(Changed {
            message,
            name,
            diff: difference(path, before.as_deref(), &after).text,
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
                Ok((format!("{state}{already}: {server}"), None))
            }),
            ConfigChange::AddServer(request) => {
                let (name, server) = prepare(request)?;
                self.edit(is_dry_run, |document| {
                    document.add_server(&name, &server)?;
                    Ok((format!("added: {name}"), Some(name.to_string())))
                })
            }
            ConfigChange::AddRule { number, rule } => {
                let written = write_rule(rule)?;
                self.edit(is_dry_run, |document| {
                    document.add_rule(*number, &written);
                    Ok((format!("added as rule {number}"), None))
                })
            }
            ConfigChange::RemoveRule { number, rule } => {
                self.check_rule(*number, rule)?;
                self.edit(is_dry_run, |document| {
                    if document.remove_rule(*number) {
                        return Ok((format!("removed: rule {number}"), None));
                    }
                    Err(EditError::Changed(document.path().to_owned()))
                })
            }
            ConfigChange::Restore { expected, text } => self.edit(is_dry_run, |document| {
                document.restore(expected, text)?;
                Ok(("the change was undone".to_owned(), None))
            }),
        }
    }
}

impl PageEditor {
    /// Checks that the rule with this number is the one that the page showed.
    fn check_rule(&self, number: usize, shown: &Map<String, Value>) -> Result<(), Refused> {
        let config = config::load(&self.overrides, &Environment::of_process());
        let config = config.map_err(|error| invalid(&error))?;
        let rule = config
            .gateway
            .policy
            .written()
            .nth(number.saturating_sub(1))
            .cloned();
        match rule {
            None => Err(Refused::NotFound(format!("there is no rule {number}"))),
            Some(rule) if rule == *shown => Ok(()),
            Some(_) => {
                let why = format!("rule {number} is another one by now; nothing was changed");
                Err(Refused::Changed(why))
            }
        }
    }
}

/// Returns the rule as the file has it. Texts alone: a page needs no others.
fn write_rule(rule: &Map<String, Value>) -> Result<Vec<(&str, String)>, Refused> {
    let write = |(key, value): (&'_ String, &Value)| match value {
        Value::String(text) => Ok(text.clone()),
        _ => Err(Refused::Invalid {
            text: format!(
                "`{key}` must be a text\nhint: edit the configuration for lists and arguments"
            ),
            field: Some(key.clone()),
        }),
    };
    let keys = rule.iter().filter(|(_, value)| *value != "");
    keys.map(|(key, value)| Ok((key.as_str(), write((key, value))?)))
        .collect()
}

/// Returns the server that a page asks for, as it is to be written.
fn prepare(request: &NewServerRequest) -> Result<(ServerName, NewServer), Refused> {
    let at = |field: &str| {
        let field = Some(field.to_owned());
        move |text: String| Refused::Invalid { text, field }
    };
    if let Some(address) = &request.address {
        let given = AddArguments {
            name: request.name.clone(),
            url: Some(address.clone()),
            ..AddArguments::default()
        };
        let read = add::read(&given);
        return read.map_err(|error| at("address")(error.to_string()));
    }
    let asked = request.recipe.as_deref().unwrap_or_default();
    let recipe = recipes::find(asked);
    let recipe = recipe.ok_or_else(|| at("recipe")(add::no_start(asked, None).to_string()))?;
    let mut answers = Answers::new(recipe);
    for question in answers.questions(|_| false) {
        if let Some(value) = request.values.get(&question.name) {
            answers.answer(&question, value);
        }
    }
    let missing = answers.questions(|name| std::env::var_os(name).is_some());
    if !missing.is_empty() {
        let needs = missing.into_iter().map(|it| RequiredValue {
            name: it.name,
            what: it.what,
            origin: it.origin,
            is_secret: it.is_secret,
            is_parameter: it.is_parameter,
        });
        return Err(Refused::Missing {
            text: format!("`{asked}` needs more values; nothing was changed"),
            needs: needs.collect(),
        });
    }
    let name = request.name.as_deref().unwrap_or(recipe.name());
    let name = add::read_name(name).map_err(|error| at("name")(error.to_string()))?;
    Ok((name, answers.server()))
}

fn refuse(error: EditError) -> Refused {
    match error {
        EditError::Mistakes(mistakes) | EditError::Broken(mistakes) => invalid(&mistakes),
        EditError::Unknown { .. } => Refused::NotFound(error.to_string()),
        EditError::Changed(_) => Refused::Changed(error.to_string()),
        EditError::Exists(_) => Refused::Invalid {
            text: error.to_string(),
            field: Some("name".to_owned()),
        },
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
    let key = error.mistakes.first().map(|it| it.key.as_str());
    let field = key
        .and_then(|key| key.rsplit('.').next())
        .filter(|it| !it.is_empty());
    Refused::Invalid {
        text: error.to_string(),
        field: field.map(str::to_owned),
    }
}
