//! A server of a house, before it is written into the configuration.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    fake::{Era, FakeItem, Script, Step},
    processes::HOUSE_VARIABLE,
};

/// A server with its launch and settings.
#[derive(Debug, Clone)]
pub struct Server {
    name: String,
    launch: Launch,
    /// Words in front of the command and its arguments.
    wrapper: Vec<String>,
    env: BTreeMap<String, String>,
    /// Lines of TOML in the server's table.
    settings: Vec<String>,
}

#[derive(Debug, Clone)]
enum Launch {
    Fake(Box<Script>),
    Program { command: String, args: Vec<String> },
}

/// Creates a fake server without steps.
pub fn fake(name: &str) -> Fake {
    Fake {
        name: name.to_owned(),
        script: Script::default(),
        wrapper: Vec::new(),
        env: BTreeMap::new(),
        settings: Vec::new(),
    }
}

/// Creates a server from any program.
pub fn program<A: Into<String>>(
    name: &str,
    command: impl Into<String>,
    args: impl IntoIterator<Item = A>,
) -> Program {
    let args = args.into_iter().map(Into::into).collect();
    Program(Server {
        name: name.to_owned(),
        launch: Launch::Program {
            command: command.into(),
            args,
        },
        wrapper: Vec::new(),
        env: BTreeMap::new(),
        settings: Vec::new(),
    })
}

/// A fake server that is being built.
#[derive(Debug, Clone)]
pub struct Fake {
    name: String,
    script: Script,
    wrapper: Vec<String>,
    env: BTreeMap<String, String>,
    settings: Vec<String>,
}

impl Fake {
    /// Starts the server through a shell that waits for the server to exit, as many start scripts
    /// do.
    #[must_use]
    pub fn under_shell(mut self) -> Self {
        let shell = ["sh", "-c", "\"$0\" \"$@\"; exit $?"];
        self.wrapper = shell.map(str::to_owned).to_vec();
        self
    }

    /// Starts the server through this program, which gets the command and its arguments.
    #[must_use]
    pub fn under<W: Into<String>>(mut self, wrapper: impl IntoIterator<Item = W>) -> Self {
        self.wrapper = wrapper.into_iter().map(Into::into).collect();
        self
    }

    /// Starts a second process in a group of its own, as a shell with job control does.
    #[must_use]
    pub fn with_job(self) -> Self {
        let job = "set -m; sleep 3600 </dev/null >/dev/null 2>&1 & exec \"$0\" \"$@\"";
        self.under(["bash", "-c", job])
    }

    /// Ignores the end of its input and SIGTERM.
    #[must_use]
    pub fn deaf(mut self) -> Self {
        self.script.ignores_stdin_end = true;
        self.script.ignores_sigterm = true;
        self
    }

    /// Sets an environment variable of the server.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds a tool that takes any arguments.
    #[must_use]
    pub fn tool(mut self, name: &str, steps: impl Into<Vec<Step>>) -> Self {
        self.script.tools.push(FakeItem::new(name, steps));
        self
    }

    /// Adds a tool with this definition.
    #[must_use]
    pub fn tool_as(mut self, definition: Value, steps: impl Into<Vec<Step>>) -> Self {
        self.script.tools.push(FakeItem::defined(definition, steps));
        self
    }

    /// Adds a tool that is hidden until a [`Step::Reveal`].
    #[must_use]
    pub fn hidden_tool(mut self, name: &str, steps: impl Into<Vec<Step>>) -> Self {
        self.script.tools.push(FakeItem {
            hidden: true,
            ..FakeItem::new(name, steps)
        });
        self
    }

    /// Adds an entry to `tools/list`, valid or not.
    #[must_use]
    pub fn listed(mut self, entry: Value) -> Self {
        self.script.listed.push(entry);
        self
    }

    /// Lists the tools of a file.
    #[must_use]
    pub fn catalog(mut self, file: impl Into<PathBuf>) -> Self {
        self.script.catalog = Some(file.into());
        self
    }

    /// Adds a skill with these files, the first of which is its `SKILL.md`. It lists and serves them.
    #[must_use]
    pub fn skill(self, name: &str, files: &[(&str, &str)]) -> Self {
        let entry = |own: &str, text: &str| {
            let digest = tool::Digest::of_bytes(text.as_bytes());
            json!({"uri": format!("skill://{name}/{own}"), "digest": format!("sha256:{digest}"),
                "size": text.len()})
        };
        let listed: Vec<Value> = files.iter().map(|(own, text)| entry(own, text)).collect();
        let (_, main) = files[0];
        let says = main
            .lines()
            .find_map(|line| line.strip_prefix("description: "));
        let skill = json!({"uri": format!("skill://{name}/SKILL.md"), "resources": listed,
            "frontmatter": {"name": name, "description": says}});
        self.script(|script| {
            script.skills.push(FakeItem::defined(skill, []));
            script.resources.extend(files.iter().map(|(own, text)| {
                let uri = format!("skill://{name}/{own}");
                let content =
                    json!({"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]});
                FakeItem::defined(json!({"uri": uri, "name": own}), Step::Result(content))
            }));
        })
    }

    /// Sets the era of the protocol that the server supports.
    #[must_use]
    pub fn era(mut self, era: Era) -> Self {
        self.script.era = era;
        self
    }

    /// Runs these steps before anything is read.
    #[must_use]
    pub fn before(mut self, steps: impl Into<Vec<Step>>) -> Self {
        self.script.before = steps.into();
        self
    }

    /// Changes any other part of the script.
    #[must_use]
    pub fn script(mut self, change: impl FnOnce(&mut Script)) -> Self {
        change(&mut self.script);
        self
    }

    /// Adds a line of TOML to the server's table, such as `timeout_s = 1`.
    #[must_use]
    pub fn setting(mut self, line: &str) -> Self {
        self.settings.push(line.to_owned());
        self
    }

    /// Returns the script alone, for a fake that is started without a house.
    pub fn into_script(self) -> Script {
        self.script
    }
}

/// Any program as a server.
#[derive(Debug, Clone)]
pub struct Program(Server);

impl Program {
    /// Sets an environment variable of the server.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.env.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a line of TOML to the server's table.
    #[must_use]
    pub fn setting(mut self, line: &str) -> Self {
        self.0.settings.push(line.to_owned());
        self
    }
}

impl Program {
    /// Returns the command that starts the server, for a client without a house.
    pub fn to_command(&self) -> Command {
        let Launch::Program { command, args } = &self.0.launch else {
            unreachable!("the server is a program");
        };
        let mut started = Command::new(command);
        started.args(args).envs(&self.0.env);
        started
    }
}

impl From<Fake> for Server {
    fn from(
        Fake {
            name,
            script,
            wrapper,
            env,
            settings,
        }: Fake,
    ) -> Self {
        Self {
            name,
            launch: Launch::Fake(Box::new(script)),
            wrapper,
            env,
            settings,
        }
    }
}

impl From<Program> for Server {
    fn from(program: Program) -> Self {
        program.0
    }
}

impl Server {
    /// Returns the server's table in the configuration of the house in this folder. The script of a
    /// fake is written to a file, and its input is recorded.
    pub(super) fn into_table(self, house: &Path, fake_server: &Path) -> String {
        let Server {
            name,
            launch,
            wrapper,
            mut env,
            settings,
        } = self;
        let (command, args) = match launch {
            Launch::Program { command, args } => (command, args),
            Launch::Fake(script) => fake_command(&name, *script, house, fake_server),
        };
        let mut words = wrapper.into_iter().chain([command]).chain(args);
        let command = words.next().expect("there is a command");
        let args: Vec<String> = words.collect();
        // The proxy passes few of its own variables to its children.
        env.insert(HOUSE_VARIABLE.to_owned(), house.display().to_string());
        let mut table = format!("[servers.{}]\n", quoted(&name));
        let args = args
            .iter()
            .map(|arg| quoted(arg))
            .collect::<Vec<_>>()
            .join(", ");
        let env = env
            .iter()
            .map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)));
        let env = env.collect::<Vec<_>>().join(", ");
        let command = quoted(&command);
        writeln!(table, "command = {command}").expect("a string can be written to");
        writeln!(table, "args = [{args}]").expect("a string can be written to");
        writeln!(table, "env = {{ {env} }}").expect("a string can be written to");
        for line in settings {
            table.push_str(&line);
            table.push('\n');
        }
        table
    }
}

fn fake_command(
    name: &str,
    mut script: Script,
    house: &Path,
    fake_server: &Path,
) -> (String, Vec<String>) {
    script
        .record
        .get_or_insert_with(|| house.join(record_name(name)));
    let text = serde_json::to_string(&script).expect("a script is plain data");
    let file = house.join(format!("{name}.script.json"));
    fs::write(&file, text).expect("the test folder is writable");
    let args = vec!["--script-file".to_owned(), file.display().to_string()];
    (fake_server.display().to_string(), args)
}

/// Returns the name of the file in a house in which a fake server records its input.
pub(super) fn record_name(server: &str) -> String {
    format!("{server}.received")
}

/// Quotes a text: a JSON string is also a TOML string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
