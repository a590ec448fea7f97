//! `proxy login` and `proxy logout`.

mod person;

use std::sync::Arc;

use config::{Config, Environment};
use fleet::LoginPlace;
use gateway::{Gateway, ServerSettings, Settings};
use oauth::{
    GrantKind, LoggedIn, Login as Wanted, LoginError, Way, can_open_browser, log_in, log_out,
};
use tool::ServerName;

use self::person::Terminal;
use super::{event_loop::run_async, logging::log, reindex, status::have_looked_again};
use crate::{
    cli::{Global, Login, Logout},
    exit::Exit,
    report,
    time::render_time,
};

/// Logs in to the servers that were named, one after the other, and asks each for its tools.
pub(super) fn log_in_to(global: &Global, login: &Login) -> anyhow::Result<Exit> {
    let Some(config) = read_config(global) else {
        return Ok(Exit::Usage);
    };
    run_async(async {
        let servers = match choose(&config.gateway, login).await {
            Ok(servers) => servers,
            Err(why) => {
                report::say(&why);
                return Ok(Exit::Usage);
            }
        };
        let terminal = Terminal::new(opens_browser(login));
        let mut done = Vec::new();
        for server in &servers {
            if log_in_to_one(&config.gateway, server, login, &terminal).await {
                done.push(server.spec.name.clone());
            }
        }
        let failed = servers.len() - done.len();
        if !done.is_empty() {
            have_looked_again(global).await;
            ask_for_tools(&config, global, done).await?;
        }
        Ok(match failed {
            0 => Exit::Success,
            failed if failed == servers.len() => Exit::Nothing,
            _ => Exit::Partial,
        })
    })?
}

fn opens_browser(login: &Login) -> bool {
    !login.no_browser && can_open_browser(|name| std::env::var_os(name))
}

fn read_config(global: &Global) -> Option<Config> {
    log("error");
    let config = config::load(&global.overrides(), &Environment::of_process());
    config
        .inspect_err(|error| report::say(&error.to_string()))
        .ok()
}

async fn choose<'a>(
    settings: &'a Settings,
    login: &Login,
) -> Result<Vec<&'a ServerSettings>, String> {
    if !login.all {
        return login
            .servers
            .iter()
            .map(|name| find(settings, name))
            .collect();
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
        return Err("every remote server has a login, or a key of its own".to_owned());
    }
    Ok(servers)
}

fn find<'a>(settings: &'a Settings, name: &str) -> Result<&'a ServerSettings, String> {
    let parsed: Option<ServerName> = name.parse().ok();
    let found = parsed.and_then(|name| settings.server(&name));
    found.ok_or_else(|| {
        let known: Vec<&str> = settings
            .servers
            .iter()
            .map(|it| it.spec.name.as_str())
            .collect();
        format!(
            "error: no server `{name}`\nhint: there are {}",
            known.join(", ")
        )
    })
}

/// Returns true if the login succeeded. The outcome has been printed.
async fn log_in_to_one(
    settings: &Settings,
    server: &ServerSettings,
    login: &Login,
    terminal: &Terminal,
) -> bool {
    let name = &server.spec.name;
    let Some(place) = find_place(settings, server).await else {
        return false;
    };
    let wanted = Wanted {
        file: &place.file,
        url: &place.url,
        headers: place.headers.clone(),
        settings: &place.settings,
        scopes: &login.scopes,
        way: if login.device {
            Way::Device
        } else {
            Way::Browser
        },
    };
    match log_in(wanted, terminal).await {
        Ok(logged_in) => {
            report::say(&describe(name, &logged_in));
            true
        }
        Err(error) => {
            report::say(&explain(name, &error));
            false
        }
    }
}

/// Returns the place of the server's login; `None`, with a printed error, if it cannot have one.
async fn find_place(settings: &Settings, server: &ServerSettings) -> Option<LoginPlace> {
    let name = &server.spec.name;
    let secrets = gateway::resolver(&settings.private_files());
    match LoginPlace::find(&server.spec, &secrets, &settings.private_files()).await {
        Ok(Some(place)) => Some(place),
        Ok(None) => {
            report::say(&format!(
                "error: {name}: there is nothing to log in to: it is started here, or its \
                 `headers` have an `Authorization`"
            ));
            None
        }
        Err(failure) => {
            let hint = failure.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
            report::say(&format!(
                "error: {name}: {failure}{}",
                hint.unwrap_or_default()
            ));
            None
        }
    }
}

fn describe(name: &ServerName, logged_in: &LoggedIn) -> String {
    let issuer = printable::one_line(&logged_in.issuer);
    let scopes = match logged_in.scopes.as_slice() {
        [] => String::new(),
        scopes => format!("; scopes: {}", printable::one_line(&scopes.join(" "))),
    };
    let until = logged_in.expires_at.map(render_time);
    let until = match (until, logged_in.is_renewable) {
        (Some(until), true) => format!("; token until {until}, then renewed by itself"),
        (Some(until), false) => format!("; until {until}"),
        (None, _) => String::new(),
    };
    format!("{name}: logged in at {issuer}{scopes}{until}")
}

fn explain(name: &ServerName, error: &LoginError) -> String {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}"));
    format!("error: {name}: {error}{}", hint.unwrap_or_default())
}

/// Surveys the server's tools; connected clients find them at their next search.
async fn ask_for_tools(
    config: &Config,
    global: &Global,
    servers: Vec<ServerName>,
) -> anyhow::Result<()> {
    let gateway: Arc<Gateway> = Gateway::new(config.gateway.clone())?;
    let asked = reindex::survey(&gateway, servers, global, true).await;
    gateway.stop().await;
    report::print_reindex(&asked?, 0.0, global.json);
    Ok(())
}

/// Logs out of the named servers. The local login is removed whatever the authorization server answers.
pub(super) fn log_out_of(global: &Global, logout: &Logout) -> anyhow::Result<Exit> {
    let Some(config) = read_config(global) else {
        return Ok(Exit::Usage);
    };
    let settings = &config.gateway;
    run_async(async {
        let mut exit = Exit::Success;
        for name in &logout.servers {
            let server = match find(settings, name) {
                Ok(server) => server,
                Err(why) => {
                    report::say(&why);
                    return Ok(Exit::Usage);
                }
            };
            let Some(place) = find_place(settings, server).await else {
                exit = Exit::Nothing;
                continue;
            };
            let told = log_out(&place.file, &place.url, &place.settings, logout.forget).await?;
            report::say(&match told {
                Ok(true) => format!("{name}: logged out"),
                Ok(false) => format!("{name}: nobody was logged in"),
                Err(error) => format!(
                    "{name}: logged out here; its authorization server was not told: {error}"
                ),
            });
        }
        Ok(exit)
    })?
}
