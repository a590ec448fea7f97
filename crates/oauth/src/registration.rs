//! Our client at an authorization server: registered by hand, described by a document, or registered
//! dynamically, in this order.

use files::clock::now_s;
use http::HeaderMap;
use secrets::Secret;
use serde::Deserialize;
use serde_json::json;

use crate::{
    error::LoginError,
    metadata::Issuer,
    record::{Grant, OAuthClient, Registration},
    settings::LoginSettings,
    web::HttpClient,
};

/// The grant type of devices (RFC 8628).
pub(crate) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The authentication method of a client with a key (RFC 7523).
pub(crate) const PRIVATE_KEY: &str = "private_key_jwt";

/// Returns our client if it is known without a request, or `None` if we have to register.
pub(crate) fn known(
    issuer: &Issuer,
    settings: &LoginSettings,
    kept: Option<&Registration>,
    redirect_uri: &str,
) -> Option<OAuthClient> {
    if let Some(id) = &settings.client_id {
        if let Some(key) = &settings.private_key {
            return Some(OAuthClient {
                id: id.clone(),
                secret: Some(key.expose().to_owned()),
                method: PRIVATE_KEY.to_owned(),
                key_id: settings.private_key_id.clone(),
            });
        }
        return Some(by_hand(issuer, id, settings.client_secret.as_ref()));
    }
    let document = settings.client_metadata_url.as_ref();
    if let Some(url) = document.filter(|_| issuer.metadata.client_id_metadata_document_supported) {
        return Some(OAuthClient {
            id: url.clone(),
            secret: None,
            method: "none".to_owned(),
            key_id: None,
        });
    }
    let is_good = |it: &&Registration| {
        it.issuer == issuer.metadata.issuer
            && it.redirect_uri == redirect_uri
            && !it.is_doubtful
            && it.secret_expires_at.is_none_or(|at| now_s() < at)
    };
    kept.filter(is_good).map(|it| it.client.clone())
}

/// Returns the grant with the secret from the configuration, which is not stored with the grant.
pub(crate) fn with_secret(grant: &Grant, settings: &LoginSettings) -> Grant {
    let mut grant = grant.clone();
    if settings.client_id.as_ref() == Some(&grant.client.id) {
        let key = settings.private_key.as_ref();
        let secret = key.or(settings.client_secret.as_ref());
        grant.client.secret = secret.map(|it| it.expose().to_owned());
    }
    grant
}

/// A client that was registered by hand.
pub(crate) fn by_hand(issuer: &Issuer, id: &str, secret: Option<&Secret>) -> OAuthClient {
    let method = match secret {
        None => "none",
        Some(_) => method_with_secret(issuer),
    };
    OAuthClient {
        id: id.to_owned(),
        secret: secret.map(|it| it.expose().to_owned()),
        method: method.to_owned(),
        key_id: None,
    }
}

fn method_with_secret(issuer: &Issuer) -> &'static str {
    let (basic, post) = ("client_secret_basic", "client_secret_post");
    if issuer.takes(post) && !issuer.takes(basic) {
        post
    } else {
        basic
    }
}

/// Registers our client (RFC 7591): as a public client if the issuer allows that, else as one with a
/// secret.
pub(crate) async fn register(
    web: &HttpClient,
    issuer: &Issuer,
    redirect_uri: &str,
    with_device: bool,
) -> Result<Registration, LoginError> {
    let shown = crate::error::shown(&issuer.metadata.issuer);
    let Some(endpoint) = &issuer.registration else {
        return Err(LoginError::NoRegistration(shown));
    };
    let method = if issuer.takes("none") || !issuer.says_methods() {
        "none"
    } else {
        method_with_secret(issuer)
    };
    let mut grants = vec!["authorization_code", "refresh_token"];
    grants.extend(with_device.then_some(DEVICE_GRANT));
    // Requests no scopes: some servers refuse scopes that they do not list, and a login may need more
    // later.
    let asked = json!({
        "client_name": "proxy",
        "application_type": application_type(redirect_uri),
        "redirect_uris": [redirect_uri],
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    });
    let answer = web.post_json(endpoint, &asked, HeaderMap::new()).await?;
    if !answer.status.is_success() {
        let why = answer.explain();
        return Err(LoginError::RegistrationRefused { issuer: shown, why });
    }
    let given: Option<RegistrationResponse> = serde_json::from_slice(&answer.body).ok();
    let given = given.ok_or_else(|| LoginError::RegistrationRefused {
        issuer: shown,
        why: "its response contains no client".to_owned(),
    })?;
    Ok(given.read(issuer, redirect_uri))
}

/// Returns `native` for a client whose browsers are redirected to their own machine (Dynamic Client
/// Registration of `OpenID` Connect, section 2).
fn application_type(redirect_uri: &str) -> &'static str {
    let url = reqwest::Url::parse(redirect_uri).ok();
    let is_plain = url.is_none_or(|it| it.scheme() == "http");
    if is_plain { "native" } else { "web" }
}

#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

impl RegistrationResponse {
    fn read(self, issuer: &Issuer, redirect_uri: &str) -> Registration {
        let is_ours = |it: &String| {
            ["none", "client_secret_basic", "client_secret_post"].contains(&it.as_str())
        };
        let usual = match self.client_secret {
            Some(_) => method_with_secret(issuer),
            None => "none",
        };
        let method = self.token_endpoint_auth_method.filter(is_ours);
        let method = method.unwrap_or_else(|| usual.to_owned());
        Registration {
            issuer: issuer.metadata.issuer.clone(),
            client: OAuthClient {
                id: self.client_id,
                secret: self.client_secret.filter(|_| method != "none"),
                method,
                key_id: None,
            },
            redirect_uri: redirect_uri.to_owned(),
            // 0 means never.
            secret_expires_at: self.client_secret_expires_at.filter(|at| *at > 0),
            is_doubtful: false,
        }
    }
}
