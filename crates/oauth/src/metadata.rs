//! The metadata of an authorization server (RFC 8414, `OpenID` Connect Discovery).

use reqwest::Url;
use serde::Deserialize;

use crate::{
    address::{shown, with_path},
    error::{self, LoginError},
    web::HttpClient,
};

/// The metadata of one authorization server, checked: its issuer is the requested one, and requests may
/// be sent to its addresses.
#[derive(Debug, Clone)]
pub(crate) struct Issuer {
    pub(crate) metadata: ServerMetadata,
    /// None if the issuer serves machines alone.
    pub(crate) authorization: Option<Url>,
    pub(crate) token: Url,
    pub(crate) registration: Option<Url>,
    pub(crate) revocation: Option<Url>,
    pub(crate) device: Option<Url>,
    introspection: Option<Url>,
    keys: Option<Url>,
}

/// The document as it was received.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct ServerMetadata {
    pub(crate) issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    jwks_uri: Option<String>,
    introspection_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
    code_challenge_methods_supported: Option<Vec<String>>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) dpop_signing_alg_values_supported: Vec<String>,
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl Issuer {
    /// Requests the metadata of this issuer, at each address where it may be published.
    pub(crate) async fn discover(web: &HttpClient, issuer: &str) -> Result<Self, LoginError> {
        let named = error::shown(issuer);
        let bad = || LoginError::Metadata(format!("`{named}` is not a valid issuer"));
        let base = Url::parse(issuer).map_err(|_| bad())?;
        web.check(&base)?;
        let mut failed = None;
        for place in places(&base) {
            let answer = match web.get(&place).await {
                Ok(answer) => answer,
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            let metadata: Option<ServerMetadata> = serde_json::from_slice(&answer.body).ok();
            if let (true, Some(metadata)) = (answer.status.is_success(), metadata) {
                return Self::read(web, issuer, metadata);
            }
        }
        Err(failed.unwrap_or_else(|| {
            let base = shown(&base);
            LoginError::Metadata(format!(
                "{base} publishes no metadata of an authorization server"
            ))
        }))
    }

    /// Returns the metadata of an issuer of a revision before 2025-06 that publishes none, with the
    /// endpoints at the paths which that revision specifies.
    pub(crate) fn assume(web: &HttpClient, origin: &str) -> Result<Self, LoginError> {
        let at = |path: &str| Some(format!("{origin}{path}"));
        let metadata = ServerMetadata {
            issuer: origin.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..ServerMetadata::default()
        };
        Self::read(web, origin, metadata)
    }

    fn read(web: &HttpClient, issuer: &str, metadata: ServerMetadata) -> Result<Self, LoginError> {
        if !is_same_issuer(&metadata.issuer, issuer) {
            return Err(LoginError::Metadata(format!(
                "the metadata of {} names another issuer, {}",
                error::shown(issuer),
                error::shown(&metadata.issuer)
            )));
        }
        let endpoint = |name: &str, text: &Option<String>| {
            let Some(text) = text else { return Ok(None) };
            let bad = || LoginError::Metadata(format!("its `{name}` is not a valid address"));
            let url = Url::parse(text).map_err(|_| bad())?;
            web.check(&url)?;
            Ok::<_, LoginError>(Some(url))
        };
        let token = endpoint("token_endpoint", &metadata.token_endpoint)?;
        Ok(Self {
            authorization: endpoint("authorization_endpoint", &metadata.authorization_endpoint)?,
            token: token.ok_or_else(|| lacking(issuer, "token_endpoint"))?,
            registration: endpoint("registration_endpoint", &metadata.registration_endpoint)?,
            revocation: endpoint("revocation_endpoint", &metadata.revocation_endpoint)?,
            device: endpoint(
                "device_authorization_endpoint",
                &metadata.device_authorization_endpoint,
            )?,
            keys: endpoint("jwks_uri", &metadata.jwks_uri)?,
            introspection: endpoint("introspection_endpoint", &metadata.introspection_endpoint)?,
            metadata,
        })
    }

    /// Returns the authorization endpoint. Fails if the issuer has none, or does not say that it checks
    /// PKCE.
    pub(crate) fn authorization(&self, assumes_pkce: bool) -> Result<&Url, LoginError> {
        let issuer = &self.metadata.issuer;
        let methods = self.metadata.code_challenge_methods_supported.as_ref();
        let is_checked = methods.map_or(assumes_pkce, |all| all.iter().any(|it| it == "S256"));
        if !is_checked {
            return Err(LoginError::NoPkce(error::shown(issuer)));
        }
        let found = self.authorization.as_ref();
        found.ok_or_else(|| lacking(issuer, "authorization_endpoint"))
    }

    pub(crate) fn keys(&self) -> Result<&Url, LoginError> {
        let found = self.keys.as_ref();
        found.ok_or_else(|| lacking(&self.metadata.issuer, "jwks_uri"))
    }

    pub(crate) fn introspection(&self) -> Result<&Url, LoginError> {
        let found = self.introspection.as_ref();
        found.ok_or_else(|| lacking(&self.metadata.issuer, "introspection_endpoint"))
    }

    /// Returns true if clients may authenticate by this method at its token endpoint. If the metadata
    /// names no methods, the default of the standard applies.
    pub(crate) fn takes(&self, method: &str) -> bool {
        match &self.metadata.token_endpoint_auth_methods_supported {
            Some(methods) => methods.iter().any(|it| it == method),
            None => method == "client_secret_basic",
        }
    }

    pub(crate) fn says_methods(&self) -> bool {
        self.metadata
            .token_endpoint_auth_methods_supported
            .is_some()
    }
}

fn lacking(issuer: &str, what: &str) -> LoginError {
    let issuer = error::shown(issuer);
    LoginError::Metadata(format!("the metadata of {issuer} has no `{what}`"))
}

/// Compares byte for byte, except for a slash that is the whole path: many issuers write it in one
/// place and omit it in the other, with the same meaning.
fn is_same_issuer(one: &str, other: &str) -> bool {
    let bare = |text: &str| match Url::parse(text) {
        Ok(url) if url.path() == "/" => text.trim_end_matches('/').to_owned(),
        _ => text.to_owned(),
    };
    bare(one) == bare(other)
}

/// Returns the well-known addresses of the metadata, in the order of the specification.
fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
    ];
    paths.dedup();
    paths.iter().map(|path| with_path(issuer, path)).collect()
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{Issuer, ServerMetadata, is_same_issuer, places};
    use crate::web::HttpClient;

    #[test]
    fn metadata_is_looked_for_where_the_standards_put_it() {
        let texts = |issuer: &str| -> Vec<String> {
            let all = places(&Url::parse(issuer).unwrap());
            all.iter().map(|url| url.path().to_owned()).collect()
        };
        let oauth = "/.well-known/oauth-authorization-server";
        let openid = "/.well-known/openid-configuration";
        assert_eq!(texts("https://as.example"), [oauth, openid]);
        let (at_oauth, at_openid) = (format!("{oauth}/a/b"), format!("{openid}/a/b"));
        let behind = format!("/a/b{openid}");
        assert_eq!(
            texts("https://as.example/a/b"),
            [at_oauth, at_openid, behind]
        );
    }

    #[test]
    fn an_issuer_is_compared_as_a_text() {
        assert!(is_same_issuer("https://as.example", "https://as.example/"));
        assert!(!is_same_issuer(
            "https://as.example/a",
            "https://as.example/a/"
        ));
        assert!(!is_same_issuer(
            "https://AS.example/a",
            "https://as.example/a"
        ));
        assert!(!is_same_issuer(
            "https://as.example:443/a",
            "https://as.example/a"
        ));
    }

    #[tokio::test]
    async fn a_document_of_another_issuer_or_without_pkce_is_refused() {
        let web = HttpClient::of(&Url::parse("https://1.1.1.1/mcp").unwrap())
            .await
            .unwrap();
        let metadata = ServerMetadata {
            issuer: "https://8.8.8.8".to_owned(),
            token_endpoint: Some("https://8.8.8.8/token".to_owned()),
            authorization_endpoint: Some("https://8.8.8.8/authorize".to_owned()),
            ..ServerMetadata::default()
        };
        assert!(Issuer::read(&web, "https://9.9.9.9", metadata.clone()).is_err());
        let issuer = Issuer::read(&web, "https://8.8.8.8", metadata.clone()).unwrap();
        assert!(issuer.authorization(false).is_err());
        assert!(issuer.authorization(true).is_ok());
        let plain = ServerMetadata {
            code_challenge_methods_supported: Some(vec!["plain".to_owned()]),
            ..metadata.clone()
        };
        let plain = Issuer::read(&web, "https://8.8.8.8", plain).unwrap();
        assert!(plain.authorization(true).is_err());
        let inward = ServerMetadata {
            token_endpoint: Some("https://10.0.0.1/token".to_owned()),
            ..metadata
        };
        assert!(Issuer::read(&web, "https://8.8.8.8", inward).is_err());
    }
}
