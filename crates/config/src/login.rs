//! `servers.NAME.oauth`: how a remote server is logged in to.

use std::collections::BTreeMap;

use fleet::LoginSpec;
use oauth::{CallbackHost, GrantKind, Resource, Settings};

use super::{mistake::Fault, raw::RawOauth, template::read_template};

pub(super) fn read_login(raw: &RawOauth) -> Result<LoginSpec, Fault> {
    let template = |text: &Option<String>| text.as_deref().map(read_template).transpose();
    let grant = match raw.grant.as_str() {
        "client_credentials" => GrantKind::ClientCredentials,
        _ => GrantKind::AuthorizationCode,
    };
    if grant == GrantKind::ClientCredentials
        && (raw.client_id.is_none() || raw.client_secret.is_none())
    {
        return Err(Fault::new(
            "`oauth.grant = \"client_credentials\"` without a client and its secret",
            "write `oauth.client_id` and `oauth.client_secret = \"${secret:NAME}\"`",
        ));
    }
    Ok(LoginSpec {
        client_id: template(&raw.client_id)?,
        client_secret: template(&raw.client_secret)?,
        settings: Settings {
            client_metadata_url: read_plain(
                "client_metadata_url",
                raw.client_metadata_url.as_ref(),
            )?,
            scopes: raw.scopes.clone(),
            callback_port: raw.callback_port,
            callback_host: match raw.callback_host.as_str() {
                "localhost" => CallbackHost::Name,
                _ => CallbackHost::Address,
            },
            resource: match read_plain("resource", raw.resource.as_ref())? {
                None => Resource::Found,
                Some(text) if text == "off" => Resource::Off,
                Some(text) => Resource::Named(text),
            },
            issuer: read_plain("issuer", raw.issuer.as_ref())?,
            grant,
            assumes_pkce: raw.pkce == "assumed",
            parameters: read_parameters(&raw.parameters)?,
            ..Settings::default()
        },
    })
}

/// A text that is compared with what strangers say: nothing is filled in.
fn read_plain(key: &str, text: Option<&String>) -> Result<Option<String>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let plain = read_template(text)?.plain();
    let what = || format!("`oauth.{key}` is filled in from nowhere");
    plain
        .map(Some)
        .ok_or_else(|| Fault::new(what(), "write it without `${`"))
}

/// Parameters that are ours cannot be another's.
const OURS: [&str; 8] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "state",
    "code_challenge",
    "code_challenge_method",
    "scope",
    "resource",
];

fn read_parameters(raw: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, Fault> {
    let mut parameters = Vec::new();
    for (name, text) in raw {
        if OURS.contains(&name.as_str()) {
            let what = format!("`oauth.parameters.{name}` is set by the protocol");
            return Err(Fault::new(what, "leave it out"));
        }
        let text = read_plain(&format!("parameters.{name}"), Some(text))?;
        parameters.extend(text.map(|text| (name.clone(), text)));
    }
    Ok(parameters)
}
