//! A server with a recipe, made ready for the configuration.

use std::{collections::BTreeMap, path::Path};

use config::edit::NewServer;
use recipes::{Auth, Recipe, RecipeValues, RequiredValue, StartMethod};

/// The user's answers for a server that is added by its recipe.
#[derive(Debug, Clone)]
pub struct Answers {
    recipe: &'static Recipe,
    parameters: BTreeMap<String, String>,
    variables: BTreeMap<String, Value>,
}

/// The source of the value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// In the environment, at each start.
    Environment,
    /// Given by the user: a template for the configuration.
    Written(String),
}

impl Answers {
    /// No answers yet.
    pub fn new(recipe: &'static Recipe) -> Self {
        let (parameters, variables) = (BTreeMap::new(), BTreeMap::new());
        Self {
            recipe,
            parameters,
            variables,
        }
    }

    /// Sets parameters from `NAME=VALUE`; a value alone is that of the only parameter. The error is for people.
    pub fn set(&mut self, given: &str) -> Result<(), String> {
        let names = self.recipe.parameters.iter();
        let names: Vec<&str> = names.map(|it| it.name.as_str()).collect();
        let (name, value) = match (given.split_once('='), names.as_slice()) {
            (Some((name, value)), names) if names.contains(&name) => (name, value),
            (None, [only]) => (*only, given),
            (pair, names) => {
                let (server, name) = (self.recipe.name(), pair.map_or(given, |(name, _)| name));
                let hint = match names {
                    [] => "it has none; set a variable with `--env`".to_owned(),
                    names => format!("it has `{}`", names.join("`, `")),
                };
                return Err(format!(
                    "`{server}` has no parameter `{name}`\nhint: {hint}"
                ));
            }
        };
        let value = absolute(name, value);
        self.parameters.insert(name.to_owned(), value);
        Ok(())
    }

    /// Sets variables as returned by [`crate::add::read_env`].
    pub fn set_env(&mut self, env: Vec<(String, String)>) {
        for (name, value) in env {
            self.variables.insert(name, Value::Written(value));
        }
    }

    /// Sets the answer to a question; it is no template.
    pub fn answer(&mut self, question: &RequiredValue, value: &str) {
        if question.is_parameter {
            let value = printable::escape_template(&absolute(&question.name, value));
            self.parameters.insert(question.name.clone(), value);
        } else {
            let value = Value::Written(printable::escape_template(value));
            self.variables.insert(question.name.clone(), value);
        }
    }

    /// Returns the questions that are still open. A required variable that is set in the environment is
    /// not asked for.
    pub fn questions(&mut self, is_set: impl Fn(&str) -> bool) -> Vec<RequiredValue> {
        let mut questions = self.recipe.required_values(&self.parameters);
        questions.retain(|it| {
            if it.is_parameter {
                return true;
            }
            let is_known = self.variables.contains_key(&it.name);
            if !is_known && is_set(&it.name) {
                let name = it.name.clone();
                self.variables.insert(name, Value::Environment);
                return false;
            }
            !is_known
        });
        questions
    }

    /// Returns the table for the configuration. Values that were not given remain as `${VAR}` or
    /// `{NAME}`.
    pub fn server(&self) -> NewServer {
        let given = RecipeValues {
            parameters: self.parameters.clone(),
            variables: self.variables.keys().cloned().collect(),
        };
        let entry = self.recipe.entry(&given).unwrap_or_default();
        let written = |text: String| self.write_values(text);
        let pairs = |pairs: BTreeMap<String, String>| {
            let pairs = pairs.into_iter();
            pairs.map(|(name, text)| (name, written(text))).collect()
        };
        let mut server = NewServer {
            comment: vec![self.recipe.what.clone()],
            command: entry.command,
            args: entry.args.into_iter().map(written).collect(),
            env: pairs(entry.env),
            url: entry.url.map(written),
            headers: pairs(entry.headers),
            notes: Some(self.recipe.notes.clone()).filter(|it| !it.is_empty()),
            start_timeout_s: entry.start_timeout_s,
            is_per_client: entry.scope.is_some(),
            secret_values: self.secret_values(),
            ..NewServer::default()
        };
        // Variables that the recipe does not have are added as they are.
        if let StartMethod::Command(_) = self.recipe.way {
            for (name, value) in &self.variables {
                let is_there = server.env.iter().any(|(there, _)| there == name);
                if let (false, Value::Written(value)) = (is_there, value) {
                    server.env.push((name.clone(), value.clone()));
                }
            }
        }
        if let (Some(example), Some(arguments)) =
            (&self.recipe.example, self.recipe.example_arguments(&given))
        {
            server.examples = vec![(example.tool.clone(), arguments.into())];
        }
        server
    }

    /// Returns the given values of variables that the recipe calls secret.
    fn secret_values(&self) -> Vec<(String, String)> {
        let secret = self.recipe.variables.iter().filter(|it| it.secret);
        let given = secret.filter_map(|it| match self.variables.get(&it.name)? {
            Value::Written(value) if !printable::has_reference(value) => {
                Some((it.name.clone(), value.clone()))
            }
            _ => None,
        });
        given.filter(|(_, value)| !value.is_empty()).collect()
    }

    /// Replaces `${VAR}` by the given values.
    fn write_values(&self, text: String) -> String {
        let said = self.variables.iter();
        said.fold(text, |text, (name, value)| match value {
            Value::Written(value) => text.replace(&format!("${{{name}}}"), value),
            Value::Environment => text,
        })
    }

    /// Remarks that the person should read before using the server, one per line.
    pub fn remarks(&self) -> Vec<String> {
        let recipe = self.recipe;
        let mut remarks = Vec::new();
        if let Some(instead) = &recipe.deprecated {
            remarks.push(format!("deprecated; use {instead}"));
        }
        if !recipe.needs.is_empty() {
            remarks.push(format!("needs {}", recipe.needs.join(", ")));
        }
        if recipe.started.is_none() {
            let why = recipe.not_started.as_deref();
            remarks.push(format!(
                "not checked: {}",
                why.unwrap_or("it was never started for a check")
            ));
        }
        if recipe.auth == Auth::OAuth && self.server().headers.is_empty() {
            let optional = recipe.variables.iter().map(|it| it.name.as_str());
            let tokens: Vec<&str> = optional.collect();
            remarks.push(match tokens.as_slice() {
                [] => "requires a login".to_owned(),
                tokens => format!(
                    "requires a login, or a token: `--env {}=...`",
                    tokens.join("=...` or `--env ")
                ),
            });
        }
        for (name, value) in &self.variables {
            if *value == Value::Environment {
                remarks.push(format!(
                    "`{name}` is read from the environment at each start; set it in the entry of \
                    each client whose environment lacks it"
                ));
            }
        }
        remarks
    }
}

/// Resolves a folder or file relative to the current folder, as a shell does.
fn absolute(name: &str, value: &str) -> String {
    let is_path = ["DIR", "FILE"].contains(&name);
    let is_relative = !value.starts_with(['/', '~', '$', ':']) && !value.contains(':');
    if let (true, true, Ok(path)) = (is_path, is_relative, std::path::absolute(Path::new(value))) {
        return path.to_string_lossy().into_owned();
    }
    match value.strip_prefix("~/") {
        Some(rest) if is_path => format!("${{HOME}}/{rest}"),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Answers;
    use crate::add::read_env;

    fn answers(name: &str) -> Answers {
        Answers::new(recipes::find(name).unwrap())
    }

    #[test]
    fn a_recipe_asks_for_what_it_cannot_go_without() {
        let mut files = answers("filesystem");
        let questions = files.questions(|_| false);
        let [question] = questions.as_slice() else {
            panic!("{questions:?}");
        };
        assert!(question.is_parameter && question.name == "DIR");
        files.answer(question, "/a/${b}");
        assert!(files.questions(|_| false).is_empty());
        assert_eq!(files.server().args.last().unwrap(), "/a/$${b}");
        assert!(files.server().examples.iter().all(|(_, it)| it.is_object()));
    }

    #[test]
    fn a_value_alone_is_that_of_the_only_parameter() {
        let mut files = answers("filesystem");
        files.set("here").unwrap();
        let here = std::path::absolute("here").unwrap();
        assert_eq!(files.server().args.last().unwrap(), here.to_str().unwrap());
        files.set("DIR=~/x").unwrap();
        assert_eq!(files.server().args.last().unwrap(), "${HOME}/x");
        let error = files.set("FOLDER=/x").unwrap_err();
        assert_eq!(
            error,
            "`filesystem` has no parameter `FOLDER`\nhint: it has `DIR`"
        );
        let error = answers("time").set("x").unwrap_err();
        assert!(error.ends_with("hint: it has none; set a variable with `--env`"));
    }

    #[test]
    fn a_parameter_that_adds_words_may_be_left_out() {
        let mut git = answers("git");
        assert!(git.questions(|_| false).is_empty());
        assert_eq!(git.server().args, ["mcp-server-git"]);
        git.set("/srv/repo").unwrap();
        assert_eq!(
            git.server().args,
            ["mcp-server-git", "--repository", "/srv/repo"]
        );
    }

    #[test]
    fn a_secret_comes_from_the_environment_or_is_one_of_the_secret_values() {
        let needing = recipes::all().iter().find(|it| {
            let is_child = matches!(it.way, recipes::StartMethod::Command(_));
            is_child && it.parameters.is_empty() && it.required().any(|it| it.secret)
        });
        let name = needing.unwrap().name();
        let variable = needing.unwrap().required().find(|it| it.secret).unwrap();
        let mut answers = answers(name);
        assert!(!answers.questions(|_| false).is_empty());
        assert!(answers.clone().questions(|_| true).is_empty());
        answers.questions(|_| true);
        let value = |answers: &Answers| {
            let env = answers.server().env;
            let found = env.into_iter().find(|(name, _)| *name == variable.name);
            found.unwrap().1
        };
        assert_eq!(value(&answers), format!("${{{}}}", variable.name));
        let said = |answers: &Answers, words| answers.remarks().join("\n").contains(words);
        assert!(said(&answers, "from the environment at each start"));
        let given = format!("{}=hunter2", variable.name);
        answers.set_env(read_env(&[given]).unwrap());
        assert_eq!(value(&answers), "hunter2");
        let secret = (variable.name.clone(), "hunter2".to_owned());
        assert_eq!(answers.server().secret_values, [secret]);
        assert!(!said(&answers, "hunter2"));
    }

    #[test]
    fn every_recipe_makes_a_table() {
        for recipe in recipes::all() {
            let mut answers = Answers::new(recipe);
            for question in answers.questions(|_| false) {
                answers.answer(&question, "/value");
            }
            let server = answers.server();
            let name = recipe.name();
            assert!(server.command.is_some() != server.url.is_some(), "{name}");
        }
    }
}
