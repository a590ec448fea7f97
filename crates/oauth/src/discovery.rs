//! Discovery: from a server that requires a login to its authorization server.

use http::{HeaderMap, StatusCode};
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;

use crate::{
    address::{shown, with_path},
    challenge::Challenge,
    error::{self, LoginError},
    metadata::Issuer,
    settings::{LoginSettings, Resource},
    web::HttpClient,
};

/// The authorization server of a server, and the parameters of the token request.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) issuer: Issuer,
    /// The `resource` parameter; none: it is not sent.
    pub(crate) resource: Option<String>,
    /// The scopes of the server's challenge; empty if there was none.
    pub(crate) challenged: Vec<String>,
    /// All scopes that the server supports.
    pub(crate) offered: Vec<String>,
    /// True if the server requires tokens that are bound to a key.
    pub(crate) is_bound: bool,
}

/// The protected resource metadata of a server (RFC 9728).
#[derive(Default, Deserialize)]
struct ResourceMetadata {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    dpop_bound_access_tokens_required: bool,
}

/// Asks the server for its authorization server, then requests the metadata of that one. `before` is
/// the server's challenge to an earlier request, for a server that does not challenge `initialize`.
pub(crate) async fn discover(
    web: &HttpClient,
    server: &Url,
    headers: HeaderMap,
    settings: &LoginSettings,
    before: Option<&Challenge>,
) -> Result<Guard, LoginError> {
    let challenge = ask(web, server, headers).await?;
    let challenge = challenge.or_else(|| before.cloned()).unwrap_or_default();
    let metadata = read_resource(web, server, &challenge).await?;
    if let (Some(named), Resource::Found) = (&metadata.resource, &settings.resource) {
        check_resource(named, server)?;
    }
    let issuer = choose_issuer(web, server, &metadata.authorization_servers, settings).await?;
    let resource = match &settings.resource {
        Resource::Off => None,
        Resource::Named(named) => Some(named.clone()),
        Resource::Found => Some(metadata.resource.unwrap_or_else(|| name_of(server))),
    };
    Ok(Guard {
        issuer,
        resource,
        is_bound: challenge.is_bound || metadata.dpop_bound_access_tokens_required,
        challenged: challenge.scopes,
        offered: metadata.scopes_supported,
    })
}

/// Sends an `initialize` request, so that the server responds with its challenge. A server that allows
/// `initialize` to everyone sends none, and its metadata is looked for at the default addresses.
async fn ask(
    web: &HttpClient,
    server: &Url,
    headers: HeaderMap,
) -> Result<Option<Challenge>, LoginError> {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "proxy", "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let answer = web.post_json(server, &initialize, headers).await?;
    let asks = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&answer.status);
    Ok(asks.then(|| Challenge::read(&answer.headers)).flatten())
}

/// Returns empty metadata if the server publishes none.
async fn read_resource(
    web: &HttpClient,
    server: &Url,
    challenge: &Challenge,
) -> Result<ResourceMetadata, LoginError> {
    let named = challenge.resource_metadata.as_deref();
    let named = named.and_then(|text| server.join(text).ok());
    if let Some(url) = &named {
        web.check(url)?;
    }
    for place in named.into_iter().chain(well_known(server)) {
        let Ok(answer) = web.get(&place).await else {
            continue;
        };
        if !answer.status.is_success() {
            continue;
        }
        if let Ok(metadata) = serde_json::from_slice(&answer.body) {
            return Ok(metadata);
        }
    }
    Ok(ResourceMetadata::default())
}

/// Returns the well-known addresses of a server's metadata: with its path, and without.
fn well_known(server: &Url) -> Vec<Url> {
    let prefix = "/.well-known/oauth-protected-resource";
    let path = server.path().trim_end_matches('/');
    let mut paths = vec![format!("{prefix}{path}"), prefix.to_owned()];
    paths.dedup();
    paths.iter().map(|path| with_path(server, path)).collect()
}

/// Returns the configured issuer, if the server names it or names none; else the first issuer that
/// answers. A server of a revision before 2025-06 names none, and is its own issuer.
async fn choose_issuer(
    web: &HttpClient,
    server: &Url,
    named: &[String],
    settings: &LoginSettings,
) -> Result<Issuer, LoginError> {
    if let Some(pinned) = &settings.issuer {
        if !named.is_empty() && !named.contains(pinned) {
            let others: Vec<String> = named.iter().map(|it| error::shown(it)).collect();
            return Err(LoginError::Metadata(format!(
                "the authorization server is {}, but `oauth.issuer` is {pinned}",
                others.join(", ")
            )));
        }
        return Issuer::discover(web, pinned).await;
    }
    if named.is_empty() {
        let origin = server.origin().ascii_serialization();
        let own = Issuer::discover(web, &origin).await;
        if let (Err(LoginError::Metadata(_)), true) = (&own, settings.assumes_endpoints) {
            return Issuer::assume(web, &origin);
        }
        return own.map_err(|error| match error {
            LoginError::Metadata(_) => LoginError::NoAuthorizationServer(shown(server)),
            other => other,
        });
    }
    let mut failed = None;
    for issuer in named.iter().take(ISSUERS_MAX) {
        match Issuer::discover(web, issuer).await {
            Ok(issuer) => return Ok(issuer),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    Err(failed.unwrap_or_else(|| LoginError::NoAuthorizationServer(shown(server))))
}

/// The most issuers that are asked, of those that a server names.
const ISSUERS_MAX: usize = 4;

/// Checks the name that a server gives itself as the audience of tokens. It must be the address that we
/// use, or one above it in the path.
fn check_resource(named: &str, server: &Url) -> Result<(), LoginError> {
    let is_above = Url::parse(named).is_ok_and(|url| {
        let (above, path) = (url.path().trim_end_matches('/'), server.path());
        let rest = path.strip_prefix(above);
        url.origin() == server.origin()
            && url.fragment().is_none()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if is_above {
        return Ok(());
    }
    Err(LoginError::Metadata(format!(
        "{} names {} as its resource: a token for that would be another server's",
        shown(server),
        error::shown(named)
    )))
}

/// Returns the address of a server as the audience of a token: without query and fragment, and without
/// the slash if that is the whole path.
fn name_of(server: &Url) -> String {
    let text = with_path(server, server.path()).to_string();
    match server.path() {
        "/" => text.trim_end_matches('/').to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{check_resource, name_of, well_known};

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_server_may_name_itself_and_what_is_above_it() {
        let check = |named: &str, is_own: bool| {
            let checked = check_resource(named, &url("https://x.example/a/mcp?b=c"));
            assert_eq!(checked.is_ok(), is_own, "{named}");
        };
        for own in [
            "https://x.example",
            "https://x.example/",
            "https://x.example/a",
            "https://x.example/a/mcp",
            "https://x.example/a/mcp/",
        ] {
            check(own, true);
        }
        for other in [
            "https://y.example/a/mcp",
            "http://x.example/a/mcp",
            "https://x.example:8443/a/mcp",
            "https://x.example/a/m",
            "https://x.example/a/mcp/other",
            "https://x.example/a#b",
            "nothing",
        ] {
            check(other, false);
        }
    }

    #[test]
    fn the_audience_has_no_query_and_no_bare_slash() {
        assert_eq!(
            name_of(&url("https://x.example/?codemode=on")),
            "https://x.example"
        );
        assert_eq!(
            name_of(&url("https://x.example/mcp#a")),
            "https://x.example/mcp"
        );
        let paths = well_known(&url("https://x.example/a/mcp?b"));
        let paths: Vec<&str> = paths.iter().map(Url::path).collect();
        let known = "/.well-known/oauth-protected-resource";
        assert_eq!(paths, [format!("{known}/a/mcp"), known.to_owned()]);
    }
}
