//! `servers.NAME.oauth`: the login to a remote server.

use std::collections::BTreeMap;

use fleet::{IdentityProviderSpec, LoginSpec};
use oauth::{GrantKind, LoginSettings, Resource};
use serde_json::json;

use super::{
    mistake::Fault,
    raw::RawOauth,
    template::{read_optional, read_plain, read_template},
};

/// Reads the login of a server; `of_callers` if each caller has its own.
pub(super) fn read_login(
    raw: &RawOauth,
    of_callers: bool,
    has_authorization: bool,
) -> Result<LoginSpec, Fault> {
    if of_callers && has_authorization {
        return Err(Fault::new(
            "both `login = \"caller\"` and `headers.Authorization`",
            "a configured header takes the place of every login: remove one of them",
        ));
    }
    if raw.grant == GrantKind::TokenExchange && !of_callers {
        return Err(Fault::new(
            "`oauth.grant = \"token_exchange\"` without `login = \"caller\"`",
            "write `login = \"caller\"`: the token of a caller is exchanged",
        ));
    }
    check_grant(raw)?;
    Ok(LoginSpec {
        client_id: read_optional(raw.client_id.as_ref())?,
        client_secret: read_optional(raw.client_secret.as_ref())?,
        private_key: read_optional(raw.private_key.as_ref())?,
        assertion: read_optional(raw.assertion.as_ref())?,
        identity_provider: read_provider(raw)?,
        is_of_callers: of_callers,
        settings: LoginSettings {
            client_metadata_url: plain("client_metadata_url", raw.client_metadata_url.as_ref())?,
            scopes: raw.scopes.clone(),
            callback_port: raw.callback_port,
            callback_host: raw.callback_host,
            resource: match plain("resource", raw.resource.as_ref())? {
                None => Resource::Found,
                Some(text) if text == "off" => Resource::Off,
                Some(text) => Resource::Named(text),
            },
            issuer: plain("issuer", raw.issuer.as_ref())?,
            grant: raw.grant,
            assumes_pkce: raw.pkce == "assumed",
            assumes_endpoints: raw.endpoints == "assumed",
            private_key_id: plain("private_key_id", raw.private_key_id.as_ref())?,
            parameters: read_parameters(&raw.parameters)?,
            ..LoginSettings::default()
        },
    })
}

/// Checks that the keys of the grant are set, and no others.
fn check_grant(raw: &RawOauth) -> Result<(), Fault> {
    let grant = raw.grant;
    if raw.private_key.is_some() && raw.client_secret.is_some() {
        let what = "both `oauth.private_key` and `oauth.client_secret`";
        return Err(Fault::new(
            what,
            "a client authenticates in one way: remove one of them",
        ));
    }
    let takes_assertion = matches!(grant, GrantKind::JwtBearer | GrantKind::EnterpriseManaged);
    let is_login = grant == GrantKind::AuthorizationCode;
    let is_employee = grant == GrantKind::EnterpriseManaged;
    let is_machine = grant == GrantKind::ClientCredentials;
    let has_proof = raw.client_secret.is_some() || raw.private_key.is_some();
    let lacks = [
        (!is_login && raw.client_id.is_none(), "oauth.client_id"),
        (
            is_machine && !has_proof,
            "oauth.client_secret = \"${secret:NAME}\"",
        ),
        (
            takes_assertion && raw.assertion.is_none(),
            "oauth.assertion = \"${file:PATH}\"",
        ),
        (is_employee && raw.idp_issuer.is_none(), "oauth.idp_issuer"),
        (
            is_employee && raw.idp_client_id.is_none(),
            "oauth.idp_client_id",
        ),
    ];
    let lacking: Vec<&str> = lacks.iter().filter(|it| it.0).map(|it| it.1).collect();
    if !lacking.is_empty() {
        return Err(Fault::new(
            format!("`oauth.grant = {}` requires further keys", json!(grant)),
            format!("write `{}`", lacking.join("` and `")),
        ));
    }
    let of_employee = [&raw.idp_issuer, &raw.idp_client_id, &raw.idp_client_secret];
    let is_idle = !takes_assertion && raw.assertion.is_some()
        || !is_employee && of_employee.iter().any(|it| it.is_some());
    if is_idle {
        return Err(Fault::new(
            "`oauth.assertion` or an identity provider without a grant that uses it",
            "write `oauth.grant = \"jwt_bearer\"` for a machine, `\"enterprise_managed\"` for an \
             employee, or remove them",
        ));
    }
    Ok(())
}

fn read_provider(raw: &RawOauth) -> Result<Option<IdentityProviderSpec>, Fault> {
    let (Some(issuer), Some(client_id)) = (&raw.idp_issuer, &raw.idp_client_id) else {
        return Ok(None);
    };
    Ok(Some(IdentityProviderSpec {
        issuer: plain("idp_issuer", Some(issuer))?.unwrap_or_default(),
        client_id: read_template(client_id)?,
        client_secret: read_optional(raw.idp_client_secret.as_ref())?,
    }))
}

/// Reads a text that is compared with answers of other servers.
fn plain(key: &str, text: Option<&String>) -> Result<Option<String>, Fault> {
    read_plain(&format!("oauth.{key}"), text)
}

/// Parameters that the proxy sets itself cannot be configured.
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
            let what = format!("`oauth.parameters.{name}` is set by the proxy");
            return Err(Fault::new(what, "remove it"));
        }
        let text = plain(&format!("parameters.{name}"), Some(text))?;
        parameters.extend(text.map(|text| (name.clone(), text)));
    }
    Ok(parameters)
}
