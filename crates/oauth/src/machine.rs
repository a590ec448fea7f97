//! Tokens that need no person: for the client's own secret or key, for the identity of a machine, and
//! for an employee's identity as a company's identity provider asserts it.

use reqwest::Url;

use crate::{
    attempt::Attempt,
    error::LoginError,
    metadata::Issuer,
    record::{Grant, OAuthClient},
    registration::{by_hand, known, with_secret},
    settings::{GrantKind, LoginSettings},
    store::RecordFile,
    token::{self, TokenClient},
    web::HttpClient,
};

/// The grant type of assertions (RFC 7523).
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The grant type of token exchange (RFC 8693), and the types of the two tokens.
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Requests a token for a machine, or for a caller whose own token is exchanged. `before` is the last
/// one: a caller's next token comes from the same endpoint, so the server is not discovered again.
pub(crate) async fn machine_grant(
    file: &RecordFile,
    settings: &LoginSettings,
    before: Option<&Grant>,
) -> Result<Grant, LoginError> {
    if let Some(before) = before.filter(|_| settings.grant == GrantKind::TokenExchange) {
        let token = read_token_of_caller(settings).await?;
        let scope = before.scopes.join(" ");
        let server = Url::parse(&file.url)
            .map_err(|_| LoginError::Metadata("`url` is not a valid address".to_owned()))?;
        let web = HttpClient::of(&server).await?;
        let client = before.client.clone();
        let before = with_secret(before, settings);
        match token::request_again(&web, &before, &exchange_form(&token, &scope)).await {
            // The endpoint may have moved.
            Err(error) if !error.is_passing() => {}
            again => {
                return again.map(|grant| Grant {
                    client,
                    ..without_renewal(grant)
                });
            }
        }
    }
    let attempt = Attempt::begin(file, file, http::HeaderMap::new(), settings, &[]).await?;
    attempt.as_machine().await
}

impl Attempt<'_> {
    pub(crate) async fn as_machine(&self) -> Result<Grant, LoginError> {
        let client = known(self.issuer(), self.settings, None, "");
        let client = client.ok_or_else(|| lacking("oauth.client_id"))?;
        let scope = self.scopes.join(" ");
        if self.settings.grant == GrantKind::TokenExchange {
            return self.exchange_token_of_caller(&client, &scope).await;
        }
        let assertion = match self.settings.grant {
            GrantKind::JwtBearer => Some(self.assertion().await?),
            GrantKind::EnterpriseManaged => Some(self.exchange_id_token(&scope).await?),
            GrantKind::ClientCredentials
            | GrantKind::AuthorizationCode
            | GrantKind::TokenExchange => None,
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

    /// Exchanges the token of a caller for one that the server accepts.
    async fn exchange_token_of_caller(
        &self,
        client: &OAuthClient,
        scope: &str,
    ) -> Result<Grant, LoginError> {
        let token = read_token_of_caller(self.settings).await?;
        let form = exchange_form(&token, scope);
        self.exchange(client, &form).await.map(without_renewal)
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
        let secret = provider.client_secret.as_ref();
        let client = by_hand(&issuer, &provider.client_id, secret);
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

async fn read_token_of_caller(settings: &LoginSettings) -> Result<String, LoginError> {
    let token = settings.assertion.as_ref();
    let token = token.ok_or_else(|| lacking("login = \"caller\""))?;
    let token = token.read().await.map_err(LoginError::NoToken)?;
    Ok(token.expose().to_owned())
}

/// Returns the grant of a caller: it is renewed by another exchange, as long as the caller has a token.
fn without_renewal(grant: Grant) -> Grant {
    Grant {
        refresh_token: None,
        ..grant
    }
}

/// The form that exchanges a caller's token (RFC 8693, section 2.1).
fn exchange_form<'a>(token: &'a str, scope: &'a str) -> Vec<(&'static str, &'a str)> {
    let mut form = vec![
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", ACCESS_TOKEN),
        ("subject_token", token),
        ("subject_token_type", ACCESS_TOKEN),
    ];
    form.extend((!scope.is_empty()).then_some(("scope", scope)));
    form
}

fn lacking(key: &str) -> LoginError {
    LoginError::Metadata(format!("the configuration lacks `{key}`"))
}
