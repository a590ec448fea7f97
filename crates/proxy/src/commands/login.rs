//! `proxy login`: logs in to remote servers, and out of them.

mod person;

use std::fmt::Display;

use clap::Args;
use clap_complete::ArgValueCompleter;
use config::Config;
use fleet::LoginPlace;
use gateway::{ServerSettings, Settings};
use oauth::{Grant, GrantKind, LoginMethod, can_open_browser, log_in, log_out};
use tool::ServerName;

use self::person::Terminal;
use super::{caller::find_former_caller, load_config, reindex, route::notify_of_logins};
use crate::{
    cli::{complete::complete_servers, global::Global},
    event_loop::run_async,
    exit::{Exit, refuse},
    logging::start_log,
    report,
    time::render_time,
};

const EXAMPLES: &str = "\
Examples:
  proxy login linear
  proxy login linear --no-browser   print the address; paste the final address
  proxy login github --device       enter a code on another device
  proxy login --all                 every remote server without a login
  proxy login --end linear          log out

Exit codes: 0 logged in, 3 logged in to some servers, 1 to none, 2 wrong usage";

/// Log in to remote servers that need it, or log out
///
/// Finds the authorization server, registers this client there if needed, and opens a browser.
/// Without a browser (over SSH, in a container) it prints the address; paste the address at which
/// the browser ends. The login is stored in the state folder and renewed automatically.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct LoginArgs {
    /// Remote servers of the configuration
    #[arg(
        required_unless_present = "all",
        conflicts_with = "all",
        value_name = "SERVER"
    )]
    #[arg(add = ArgValueCompleter::new(complete_servers))]
    servers: Vec<String>,
    /// Every remote server that has no login, and no key in its `headers`
    #[arg(long)]
    all: bool,
    /// Print the address instead of opening a browser
    #[arg(long)]
    no_browser: bool,
    /// Show a code to enter on another device, if the server supports it
    #[arg(long)]
    device: bool,
    /// Additional scope to request; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Log out
    #[arg(long, conflicts_with_all = ["all", "no_browser", "device", "scopes"])]
    end: bool,
    /// With --end: the caller over HTTP whose own login ends, by the name of a token or the subject of an
    /// OAuth token
    #[arg(long = "for", value_name = "CALLER", requires = "end")]
    caller: Option<String>,
    /// With --end: also delete the registration of this client
    #[arg(long, requires = "end")]
    forget: bool,
}

impl LoginArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        start_log("error");
        if self.end {
            return log_out_of(global, &self);
        }
        log_in_to(global, &load_config(global)?, &self)
    }
}

/// Logs out of the servers. The local login is removed whatever the authorization server answers.
fn log_out_of(global: &Global, login: &LoginArgs) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    let settings = &config.gateway;
    let caller = login.caller.as_deref();
    let caller = caller
        .map(|it| find_former_caller(&config, it))
        .transpose()?;
    run_async(async {
        let mut exit = Exit::Success;
        for name in &login.servers {
            let server = find_server(settings, name)?;
            let Some(place) = find_place(settings, server).await else {
                exit = Exit::Nothing;
                continue;
            };
            let file = match &caller {
                Some(caller) => place.file.of_caller(caller),
                None => place.file,
            };
            let ended = log_out(&file, &place.settings, login.forget).await?;
            report::say(&match ended {
                Ok(true) => format!("{name}: logged out"),
                Ok(false) => format!("{name}: there was no login"),
                Err(error) => {
                    format!("{name}: logged out here, but not at its authorization server: {error}")
                }
            });
        }
        Ok(exit)
    })?
}

/// Logs in to the servers that were named, one after the other, and asks each for its tools.
fn log_in_to(global: &Global, config: &Config, login: &LoginArgs) -> anyhow::Result<Exit> {
    run_async(async {
        let servers = choose(&config.gateway, login).await?;
        let terminal = Terminal::new(opens_browser(login));
        let mut done = Vec::new();
        for server in &servers {
            if log_in_to_one(&config.gateway, server, login, &terminal).await {
                done.push(server.spec.name.clone());
            }
        }
        let failed = servers.len() - done.len();
        if !done.is_empty() {
            notify_of_logins(global).await;
            // Connected clients find the tools at their next search.
            let asked = reindex::survey_alone(config.gateway.clone(), done, global).await?;
            report::print_reindex(&asked, 0.0, global.json);
        }
        Ok(Exit::of_failures(failed, servers.len()))
    })?
}

fn opens_browser(login: &LoginArgs) -> bool {
    !login.no_browser && can_open_browser(|name| std::env::var_os(name))
}

async fn choose<'a>(
    settings: &'a Settings,
    login: &LoginArgs,
) -> anyhow::Result<Vec<&'a ServerSettings>> {
    if !login.all {
        let servers = login.servers.iter();
        return servers.map(|name| find_server(settings, name)).collect();
    }
    let secrets = gateway::resolver(&settings.private_files());
    let mut servers = Vec::new();
    for server in settings.enabled() {
        let place = LoginPlace::find(&server.spec, &secrets, &settings.private_files()).await;
        let Ok(Some(place)) = place else { continue };
        let grant = place.file.read().ok().and_then(|record| record.grant);
        let is_good = grant.is_some_and(|grant| grant.ended.is_none());
        if !is_good && place.settings.grant == GrantKind::AuthorizationCode {
            servers.push(server);
        }
    }
    if servers.is_empty() {
        return Err(Exit::Usage.with("every remote server has a login or a key"));
    }
    Ok(servers)
}

pub(super) fn find_server<'a>(
    settings: &'a Settings,
    name: &str,
) -> anyhow::Result<&'a ServerSettings> {
    let parsed: Option<ServerName> = name.parse().ok();
    let found = parsed.and_then(|name| settings.server(&name));
    found.ok_or_else(|| {
        let known = settings.servers.iter().map(|it| it.spec.name.as_str());
        let known = known.collect::<Vec<_>>().join(", ");
        refuse(format!("no server `{name}`\nhint: the servers are {known}"))
    })
}

/// Returns true if the login succeeded. The outcome has been printed.
async fn log_in_to_one(
    settings: &Settings,
    server: &ServerSettings,
    login: &LoginArgs,
    terminal: &Terminal,
) -> bool {
    let name = &server.spec.name;
    let Some(place) = find_place(settings, server).await else {
        return false;
    };
    let way = if login.device {
        LoginMethod::Device
    } else {
        LoginMethod::Browser
    };
    let logged_in = log_in(place.login(way, &login.scopes), terminal).await;
    report::say(&match &logged_in {
        Ok(logged_in) => describe(name, logged_in),
        Err(error) => explain(name, error, error.hint()),
    });
    logged_in.is_ok()
}

/// Returns the place of the server's login; `None`, with a printed error, if it cannot have one.
async fn find_place(settings: &Settings, server: &ServerSettings) -> Option<LoginPlace> {
    let name = &server.spec.name;
    let secrets = gateway::resolver(&settings.private_files());
    let place = LoginPlace::find(&server.spec, &secrets, &settings.private_files()).await;
    match &place {
        Ok(Some(_)) => {}
        Ok(None) => report::say(&format!(
            "error: {name}: it needs no login: it is a local server, or its `headers` have an \
             `Authorization`"
        )),
        Err(failure) => report::say(&explain(name, failure, failure.hint.as_deref())),
    }
    place.ok().flatten()
}

fn describe(name: &ServerName, logged_in: &Grant) -> String {
    let issuer = printable::one_line(&logged_in.issuer);
    let scopes = match logged_in.scopes.as_slice() {
        [] => String::new(),
        scopes => format!("; scopes: {}", printable::one_line(&scopes.join(" "))),
    };
    let until = logged_in.expires_at.map(render_time);
    let until = match (until, logged_in.is_renewable()) {
        (Some(until), true) => format!("; token until {until}, then renewed automatically"),
        (Some(until), false) => format!("; until {until}"),
        (None, _) => String::new(),
    };
    format!("{name}: logged in at {issuer}{scopes}{until}")
}

fn explain(name: &ServerName, error: impl Display, hint: Option<impl Display>) -> String {
    let hint = hint.map(|hint| format!("\nhint: {hint}"));
    format!("error: {name}: {error}{}", hint.unwrap_or_default())
}
