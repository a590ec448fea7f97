//! Tokens that need no person: for the client's own secret or key, for the identity of a machine, and
//! for an employee's identity as a company's identity provider asserts it.

use reqwest::Url;

use crate::{
    attempt::Attempt,
    error::LoginError,
    metadata::Issuer,
    record::{Grant, OAuthClient},
    registration::{by_hand, known},
    settings::{GrantKind, IdentityProvider, LoginSettings},
    store::RecordFile,
    token::TokenClient,
    web::HttpClient,
};

/// The grant type of assertions (RFC 7523).
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The grant type of token exchange (RFC 8693), and the types of the two tokens.
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Requests a token for a machine.
pub(crate) async fn machine_grant(
    file: &RecordFile,
    url: &str,
    settings: &LoginSettings,
) -> Result<Grant, LoginError> {
    let headers = http::HeaderMap::new();
    let attempt = Attempt::begin(file, url, headers, settings, &[]).await?;
    attempt.as_machine().await
}

impl Attempt<'_> {
    pub(crate) async fn as_machine(&self) -> Result<Grant, LoginError> {
        let client = known(self.issuer(), self.settings, None, "");
        let client = client.ok_or_else(|| lacking("oauth.client_id"))?;
        let scope = self.scopes.join(" ");
        let assertion = match self.settings.grant {
            GrantKind::JwtBearer => Some(self.assertion().await?),
            GrantKind::EnterpriseManaged => Some(self.exchange_id_token(&scope).await?),
            GrantKind::ClientCredentials | GrantKind::AuthorizationCode => None,
        };
        let mut form = match &assertion {
            Some(assertion) => vec![
                ("grant_type", JWT_BEARER),
                ("assertion", assertion.as_str()),
            ],
            None if client.secret.is_none() => return Err(lacking("oauth.client_secret")),
            None => vec![("grant_type", "client_credentials")],
        };
        form.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        self.exchange(&client, &form).await
    }

    /// Reads the assertion that the configuration names.
    async fn assertion(&self) -> Result<String, LoginError> {
        let assertion = self.settings.assertion.as_ref();
        let assertion = assertion.ok_or_else(|| lacking("oauth.assertion"))?;
        let read = assertion.read().await;
        let read = read.map_err(|why| LoginError::Metadata(format!("`oauth.assertion`: {why}")))?;
        Ok(read.expose().trim().to_owned())
    }

    /// Exchanges the employee's ID token at the company's identity provider for an assertion to this
    /// authorization server.
    async fn exchange_id_token(&self, scope: &str) -> Result<String, LoginError> {
        let provider = self.settings.identity_provider.as_ref();
        let provider = provider.ok_or_else(|| lacking("oauth.idp_issuer"))?;
        let id_token = self.assertion().await?;
        // The person names the provider, so its addresses are checked against the provider's own
        // network.
        let bad = || LoginError::Metadata("`oauth.idp_issuer` is not a valid address".to_owned());
        let web = HttpClient::of(&Url::parse(&provider.issuer).map_err(|_| bad())?).await?;
        let issuer = Issuer::discover(&web, &provider.issuer).await?;
        let client = client_at(provider, &issuer);
        let token_client = TokenClient {
            web: &web,
            issuer: &issuer.metadata.issuer,
            client: &client,
            resource: self.guard.resource.as_deref(),
            prover: None,
        };
        let mut form = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("subject_token", id_token.as_str()),
            ("subject_token_type", ID_TOKEN),
            ("audience", self.issuer().metadata.issuer.as_str()),
        ];
        form.extend((!scope.is_empty()).then_some(("scope", scope)));
        token_client
            .exchange_token(&issuer.token, &form, ID_JAG)
            .await
    }
}

fn client_at(provider: &IdentityProvider, issuer: &Issuer) -> OAuthClient {
    let secret = provider.client_secret.as_ref();
    by_hand(
        issuer,
        &provider.client_id,
        secret.map(|it| it.expose().to_owned()),
    )
}

fn lacking(key: &str) -> LoginError {
    LoginError::Metadata(format!("the configuration lacks `{key}`"))
}
