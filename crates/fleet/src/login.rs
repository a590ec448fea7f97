//! The login of a remote server, where it asks for one.

use std::sync::Arc;

use futures::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use oauth::{Assertion, Credential, GrantKind, Login, LoginMethod, LoginSettings, RecordFile};
use secrets::{PrivateFiles, Resolver, Secret};

use crate::{
    KnownCallers, Launch, LoginNeeded, ServerSpec, Surroundings, Template, Variables,
    awaited::Awaited,
    environment::expand,
    error::{Denied, Failure},
    secrets_named::with_secrets,
    taken::{CALLER, templates},
};

/// A remote server as a login sees it.
#[derive(Debug)]
pub struct LoginPlace {
    /// The file that stores the login.
    pub file: RecordFile,
    /// The file that stores our registration; callers share one.
    pub registration: RecordFile,
    /// The settings of the configuration, with variables and secrets filled in.
    pub settings: LoginSettings,
    /// Headers that each of its requests carries.
    pub headers: HeaderMap,
}

impl LoginPlace {
    /// Returns the place of this server's login. Returns `None` for a child, for a server with a configured
    /// `Authorization` header, and if no logins are kept.
    pub(crate) fn of(
        spec: &ServerSpec,
        variables: &Variables,
        surroundings: &Surroundings,
    ) -> Result<Option<Self>, Failure> {
        let Some(files) = &surroundings.private else {
            return Ok(None);
        };
        let (Some(url), Launch::Remote { headers, .. }) = (login_url(spec), &spec.launch) else {
            return Ok(None);
        };
        let url = expand(url, variables)?;
        let caller = caller_of(spec, variables);
        let assertion = spec.login.assertion.as_ref().map(|template| {
            let (template, variables) = (template.clone(), variables.clone());
            read_again(template, variables, surroundings.secrets.clone())
        });
        let exchanges = spec.login.settings.grant == GrantKind::TokenExchange;
        let settings = LoginSettings {
            assertion: if exchanges {
                Some(token_of(caller, Arc::clone(&surroundings.callers)))
            } else {
                assertion
            },
            ..spec.login.fill(|template| expand(template, variables))?
        };
        let header = |(name, value): &(String, Template)| {
            let mut value = HeaderValue::try_from(expand(value, variables).ok()?).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name.as_str()).ok()?, value))
        };
        let shared = RecordFile::of(files, spec.name.as_str(), &url);
        let (file, registration) = match caller {
            Some(caller) => (shared.of_caller(caller), shared.of_caller(ALL_CALLERS)),
            None => (shared.clone(), shared),
        };
        Ok(Some(Self {
            file,
            registration,
            headers: headers.iter().filter_map(header).collect(),
            settings,
        }))
    }

    /// Returns the file alone, without reading a secret of the client.
    pub fn find_file(
        spec: &ServerSpec,
        variables: &Variables,
        files: &PrivateFiles,
    ) -> Option<RecordFile> {
        let url = login_url(spec)?;
        let url = expand(url, variables).ok()?;
        let file = RecordFile::of(files, spec.name.as_str(), &url);
        let of_caller = caller_of(spec, variables).map(|it| file.of_caller(it));
        Some(of_caller.unwrap_or(file))
    }

    /// Does the same as [`LoginPlace::of`] with variables that have no secrets yet.
    pub(crate) async fn resolve(
        spec: &ServerSpec,
        values: &Variables,
        surroundings: &Surroundings,
    ) -> Result<Option<Self>, Failure> {
        let resolver = surroundings.secrets.as_deref();
        let variables = with_secrets(templates(spec), values, resolver).await?;
        Self::of(spec, &variables, surroundings)
    }

    /// Returns the place of the login, with variables and secrets of this process.
    pub async fn find(
        spec: &ServerSpec,
        secrets: &Arc<Resolver>,
        files: &PrivateFiles,
    ) -> Result<Option<Self>, Failure> {
        let surroundings = Surroundings {
            private: Some(files.clone()),
            secrets: Some(Arc::clone(secrets)),
            ..Surroundings::default()
        };
        Self::resolve(spec, &Variables::of_process(), &surroundings).await
    }

    /// Returns a login here, which requests `scopes` besides those that are found.
    pub fn login<'a>(&'a self, way: LoginMethod, scopes: &'a [String]) -> Login<'a> {
        Login {
            file: &self.file,
            registration: &self.registration,
            headers: self.headers.clone(),
            settings: &self.settings,
            scopes,
            way,
        }
    }

    /// Returns the credential that sends the login's token with each request.
    pub(crate) fn credential(self) -> Arc<Credential> {
        Credential::new(self.file, self.settings)
    }
}

/// Has the registration that the logins of all callers use. No caller has this name.
const ALL_CALLERS: &str = "";

/// Returns the caller whose login these variables use.
fn caller_of<'a>(spec: &ServerSpec, variables: &'a Variables) -> Option<&'a str> {
    variables.get(CALLER).filter(|_| spec.login.is_of_callers)
}

/// Returns the URL of a server that may need a login.
fn login_url(spec: &ServerSpec) -> Option<&Template> {
    let Launch::Remote { url, headers } = &spec.launch else {
        return None;
    };
    let is_own = |name: &str| name.eq_ignore_ascii_case(header::AUTHORIZATION.as_str());
    let has_own = headers.iter().any(|(name, _)| is_own(name));
    (!has_own).then_some(url)
}

/// Returns an assertion that is filled in for each use: its source is replaced before it expires.
fn read_again(
    template: Template,
    variables: Variables,
    resolver: Option<Arc<Resolver>>,
) -> Assertion {
    Assertion::new(move || {
        let (template, variables) = (template.clone(), variables.clone());
        let resolver = resolver.clone();
        async move {
            let filled = with_secrets([&template], &variables, resolver.as_deref()).await;
            let text = filled.and_then(|variables| expand(&template, &variables));
            text.map(Secret::new).map_err(|failure| failure.why)
        }
        .boxed()
    })
}

/// Returns the token of the caller's last request, which is exchanged for one of the server.
fn token_of(caller: Option<&str>, callers: Arc<KnownCallers>) -> Assertion {
    let caller = caller.map(str::to_owned);
    Assertion::new(move || {
        let found = caller.as_deref().and_then(|it| callers.find(it));
        let token = found.and_then(|it| it.token().map(Secret::new));
        let token =
            token.ok_or_else(|| "only a caller over HTTP has a token to exchange".to_owned());
        futures::future::ready(token).boxed()
    })
}

/// Returns the failure of a server that denied access. If a login may help, the failure says so, and the
/// server's rest ends when the login changes.
///
/// A login does not help at a server that gets configured headers and does not ask for a token: its
/// key is wrong.
pub(crate) fn denial(
    Denied { why, is_unknown }: Denied,
    credential: Option<&Arc<Credential>>,
    has_headers: bool,
) -> Failure {
    let Some(credential) = credential.filter(|it| !it.is_machine()) else {
        return Failure::denial(why);
    };
    let file = credential.file().clone();
    let login = file.read_id();
    let record = file.read().unwrap_or_default();
    let wants_token = record.grant.is_some() || record.was_challenged() || !has_headers;
    if !wants_token || !is_unknown && record.wanted_scopes.is_empty() {
        return Failure::denial(why);
    }
    let server = &record.server;
    let hint = if record.grant.is_some() {
        format!("proxy login {server}")
    } else {
        format!("proxy login {server}, or set `headers.Authorization` where it takes a key")
    };
    let scopes = if is_unknown {
        Vec::new()
    } else {
        record.wanted_scopes
    };
    let needed = LoginNeeded {
        again: record.grant.is_some(),
        scopes,
        address: None,
    };
    Failure {
        awaited: Some(Box::new(Awaited::login(file, login, needed))),
        ..Failure::denial(why).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use oauth::Challenge;

    use super::*;

    #[tokio::test]
    async fn a_key_that_is_wrong_is_told_from_a_login_that_is_missing() {
        let state = tempfile::tempdir().unwrap();
        let files = PrivateFiles::plain(state.path());
        let place = || {
            let file = RecordFile::of(&files, "any", "https://x.example/mcp");
            Credential::new(file, LoginSettings::default())
        };
        let refused = |has_headers| {
            let why = "whatever it says".to_owned();
            let denied = Denied {
                why,
                is_unknown: true,
            };
            denial(denied, Some(&place()), has_headers)
        };
        assert!(refused(false).login().is_some());
        assert!(refused(true).login().is_none());
        place().note_challenge(Challenge::default()).await;
        let failure = refused(true);
        assert!(failure.login().is_some_and(|it| !it.again));
        let awaited = failure.awaited.unwrap();
        assert!(!awaited.has_come());
        // The text of a response does not decide its meaning.
        let forbid = || Denied {
            why: "HTTP 403 Forbidden: no HTTP 401".to_owned(),
            is_unknown: false,
        };
        let forbidden = denial(forbid(), Some(&place()), false);
        assert!(forbidden.login().is_none());
        place().want_scopes(vec!["admin".to_owned()]).await;
        let forbidden = denial(forbid(), Some(&place()), false);
        assert_eq!(forbidden.login().unwrap().scopes, ["admin"]);
    }
}
