//! Requests to a token endpoint.

use files::clock::now_s;
use http::{HeaderMap, Method};
use jsonwebtoken::Header;
use reqwest::Url;
use serde_json::{Value, json};

use crate::{
    challenge::BOUND,
    error::{LoginError, shown},
    jwt::SigningKey,
    metadata::Issuer,
    proof::{NONCE_WANTED, Prover},
    random::random_text,
    record::{Grant, OAuthClient},
    registration::PRIVATE_KEY,
    scopes,
    web::{HttpClient, HttpResponse},
};

pub(crate) struct TokenResponse {
    access_token: String,
    refresh_token: Option<String>,
    expires_at: Option<u64>,
    scopes: Option<Vec<String>>,
    /// True if the token is valid only with a proof of our key.
    is_bound: bool,
}

/// The longest lifetime of a token in seconds; the value comes from a remote server.
const LIFE_S_MAX: u64 = 10 * 365 * 86_400;

/// A client that requests tokens from an authorization server.
pub(crate) struct TokenClient<'a> {
    pub(crate) web: &'a HttpClient,
    pub(crate) issuer: &'a str,
    pub(crate) client: &'a OAuthClient,
    pub(crate) resource: Option<&'a str>,
    /// The prover of the key to which tokens are to be bound.
    pub(crate) prover: Option<&'a Prover>,
}

/// The lifetime in seconds of an assertion of our identity; it is used at once.
const ASSERTION_LIFE_S: u64 = 60;

const ASSERTION_KIND: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

impl TokenClient<'_> {
    /// Requests a token. `form` holds the parameters of the grant; the client and the resource are
    /// added.
    pub(crate) async fn request_token(
        &self,
        url: &Url,
        form: &[(&str, &str)],
    ) -> Result<TokenResponse, LoginError> {
        let given = read(&self.post(url, form).await?)?;
        if given.is_bound && self.prover.is_none() {
            let why = "it is bound to an unknown key".to_owned();
            return Err(LoginError::NoToken(why));
        }
        Ok(given)
    }

    /// Sends the same request, and returns the response unread. If the proof lacks a nonce, the request
    /// is sent once more with the nonce of the response.
    pub(crate) async fn post(
        &self,
        url: &Url,
        form: &[(&str, &str)],
    ) -> Result<HttpResponse, LoginError> {
        let answer = self.post_once(url, form).await?;
        let is_new = self.prover.is_some_and(|it| it.note_nonce(&answer.headers));
        if is_new && answer.error_code().as_deref() == Some(NONCE_WANTED) {
            return self.post_once(url, form).await;
        }
        Ok(answer)
    }

    async fn post_once(
        &self,
        url: &Url,
        form: &[(&str, &str)],
    ) -> Result<HttpResponse, LoginError> {
        let client = self.client;
        let mut form = form.to_vec();
        form.extend(self.resource.map(|resource| ("resource", resource)));
        let secret = client.secret.as_deref();
        let assertion;
        let login = match (client.method.as_str(), secret) {
            ("client_secret_basic", Some(secret)) => Some((client.id.as_str(), secret)),
            (PRIVATE_KEY, Some(key)) => {
                assertion = self.assert_client(key)?;
                form.push(("client_id", &client.id));
                form.push(("client_assertion_type", ASSERTION_KIND));
                form.push(("client_assertion", &assertion));
                None
            }
            (_, secret) => {
                form.push(("client_id", &client.id));
                form.extend(secret.map(|secret| ("client_secret", secret)));
                None
            }
        };
        let mut headers = HeaderMap::new();
        if let Some(prover) = self.prover {
            headers.extend([prover.prove(&Method::POST, url, None)?]);
        }
        self.web.post_form(url, &form, login, headers).await
    }

    /// Signs an assertion of our identity, for this authorization server alone.
    fn assert_client(&self, key: &str) -> Result<String, LoginError> {
        let (id, now) = (&self.client.id, now_s());
        let head = Header {
            kid: self.client.key_id.clone(),
            ..Header::default()
        };
        let claims = json!({
            "iss": id, "sub": id, "aud": self.issuer, "jti": random_text()?,
            "iat": now, "exp": now + ASSERTION_LIFE_S,
        });
        SigningKey::of_pem(key)?.sign(head, &claims)
    }

    /// Requests a token of this type for use at another authorization server (RFC 8693).
    pub(crate) async fn exchange_token(
        &self,
        url: &Url,
        form: &[(&str, &str)],
        kind: &str,
    ) -> Result<String, LoginError> {
        let answer = self.post(url, form).await?;
        let object = answer.object().unwrap_or_default();
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let token = text("access_token").filter(|_| text("issued_token_type") == Some(kind));
        match token {
            Some(token) if answer.status.is_success() => Ok(token.to_owned()),
            _ if answer.status.is_success() => {
                let why = format!("{} exchanged no token", shown(self.issuer));
                Err(LoginError::NoToken(why))
            }
            _ => {
                let why = format!("{}: {}", shown(self.issuer), answer.explain());
                Err(LoginError::NoToken(why))
            }
        }
    }
}

pub(crate) fn read(answer: &HttpResponse) -> Result<TokenResponse, LoginError> {
    if !answer.status.is_success() {
        let why = answer.explain();
        // A server error or a rate limit is not a refusal.
        if answer.status.is_server_error() || answer.status.as_u16() == 429 {
            let url = "the token endpoint".to_owned();
            return Err(LoginError::Http { url, why });
        }
        return Err(match answer.error_code().as_deref() {
            Some("invalid_grant" | "invalid_client" | "unauthorized_client") => {
                LoginError::Ended(why)
            }
            _ => LoginError::NoToken(why),
        });
    }
    let object = answer.object();
    let object =
        object.ok_or_else(|| LoginError::NoToken("the response is not JSON".to_owned()))?;
    read_given(&object).ok_or_else(|| {
        let why = object.get("error").and_then(Value::as_str);
        let why = why.map_or_else(
            || "the response contains none".to_owned(),
            crate::error::shown,
        );
        LoginError::NoToken(why)
    })
}

fn read_given(object: &Value) -> Option<TokenResponse> {
    let text = |key: &str| {
        let value = object.get(key)?.as_str()?;
        (!value.is_empty()).then(|| value.to_owned())
    };
    let kind = text("token_type");
    let is = |name: &str| {
        kind.as_ref()
            .is_some_and(|kind| kind.eq_ignore_ascii_case(name))
    };
    let is_bound = is(BOUND);
    if kind.is_some() && !is_bound && !is("bearer") {
        return None;
    }
    let access_token = text("access_token")?;
    // The token is sent in a header.
    if !access_token.chars().all(|c| c.is_ascii_graphic()) {
        return None;
    }
    // Some servers write the number as text. A token that expires at once would be renewed before each
    // request: 0 is read as unknown, and a token that has expired is refused by its server.
    let life = object.get("expires_in");
    let life = life.and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok()));
    let life = life.filter(|life| *life > 0);
    Some(TokenResponse {
        is_bound,
        access_token,
        refresh_token: text("refresh_token"),
        expires_at: life.map(|life| now_s() + life.min(LIFE_S_MAX)),
        scopes: text("scope").map(|all| scopes::split(&all)),
    })
}

/// Makes the grant of a new login. If the response names no scopes, the requested ones apply; the key
/// is the one that signed the proofs of the request.
pub(crate) fn grant(
    given: TokenResponse,
    issuer: &Issuer,
    client: &OAuthClient,
    resource: Option<String>,
    asked: &[String],
    proof_key: Option<&str>,
) -> Result<Grant, LoginError> {
    let mut scopes = given.scopes.unwrap_or_else(|| asked.to_vec());
    scopes::bound(&mut scopes);
    Ok(Grant {
        id: random_text()?,
        issuer: issuer.metadata.issuer.clone(),
        scopes,
        expires_at: given.expires_at,
        obtained_at: now_s(),
        ended: None,
        access_token: given.access_token,
        refresh_token: given.refresh_token,
        token_endpoint: issuer.token.to_string(),
        revocation_endpoint: issuer.revocation.as_ref().map(Url::to_string),
        resource,
        client: client.clone(),
        proof_key: proof_key.filter(|_| given.is_bound).map(str::to_owned),
    })
}

fn token_client<'a>(
    web: &'a HttpClient,
    grant: &'a Grant,
    prover: Option<&'a Prover>,
) -> TokenClient<'a> {
    TokenClient {
        web,
        issuer: &grant.issuer,
        client: &grant.client,
        resource: grant.resource.as_deref(),
        prover,
    }
}

/// Renews a login: returns the same grant with new tokens.
pub(crate) async fn renew(web: &HttpClient, grant: &Grant) -> Result<Grant, LoginError> {
    let refresh = grant.refresh_token.as_deref();
    let refresh = refresh.ok_or_else(|| LoginError::Ended("it cannot be renewed".to_owned()))?;
    let form = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
    request_again(web, grant, &form).await
}

/// Requests new tokens with this form where those of a grant came from: returns the same grant with them.
pub(crate) async fn request_again(
    web: &HttpClient,
    grant: &Grant,
    form: &[(&str, &str)],
) -> Result<Grant, LoginError> {
    let bad = || LoginError::Metadata("its token endpoint is not a valid address".to_owned());
    let endpoint = Url::parse(&grant.token_endpoint).map_err(|_| bad())?;
    let prover = grant.proof_key.as_deref().and_then(Prover::of_text);
    let given = token_client(web, grant, prover.as_ref())
        .request_token(&endpoint, form)
        .await?;
    Ok(Grant {
        scopes: given.scopes.unwrap_or_else(|| grant.scopes.clone()),
        expires_at: given.expires_at,
        obtained_at: now_s(),
        access_token: given.access_token,
        // A refresh token that is not replaced stays valid.
        refresh_token: given.refresh_token.or_else(|| grant.refresh_token.clone()),
        ..grant.clone()
    })
}

/// Revokes a token at the authorization server, if it supports that (RFC 7009).
pub(crate) async fn revoke(web: &HttpClient, grant: &Grant) -> Result<(), LoginError> {
    let endpoint = grant.revocation_endpoint.as_deref();
    let Some(endpoint) = endpoint.and_then(|it| Url::parse(it).ok()) else {
        return Ok(());
    };
    let token_client = TokenClient {
        resource: None,
        ..token_client(web, grant, None)
    };
    let refresh = grant.refresh_token.as_deref();
    let tokens = refresh.map(|it| (it, "refresh_token")).into_iter();
    for (token, kind) in tokens.chain([(grant.access_token.as_str(), "access_token")]) {
        let form = [("token", token), ("token_type_hint", kind)];
        let answer = token_client.post(&endpoint, &form).await?;
        if !answer.status.is_success() {
            return Err(LoginError::NoToken(answer.explain()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use serde_json::json;

    use super::{read, read_given};
    use files::clock::now_s;

    use crate::{LoginError, web::HttpResponse};

    #[test]
    fn tokens_are_read_as_servers_write_them() {
        let given = read_given(&json!({
            "access_token": "a", "token_type": "bearer", "expires_in": "60", "scope": "x y",
        }));
        let given = given.unwrap();
        assert!(given.expires_at.unwrap() >= now_s() + 59);
        assert_eq!(given.scopes.unwrap(), ["x", "y"]);
        let endless = json!({"access_token": "a", "expires_in": u64::MAX});
        assert!(read_given(&endless).unwrap().expires_at.is_some());
        assert!(
            read_given(&json!({"access_token": "a"}))
                .unwrap()
                .expires_at
                .is_none()
        );
        for at_once in [json!(0), json!("0")] {
            let given = read_given(&json!({"access_token": "a", "expires_in": at_once}));
            assert_eq!(given.unwrap().expires_at, None);
        }
        for none in [
            json!({}),
            json!({"access_token": ""}),
            json!({"access_token": "a\nX-Other: b"}),
            json!({"access_token": "a", "token_type": "mac"}),
        ] {
            assert!(read_given(&none).is_none(), "{none}");
        }
    }

    #[test]
    fn a_refusal_that_lasts_is_told_from_one_that_passes() {
        let answer = |status: u16, code: &str| HttpResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: json!({"error": code}).to_string().into(),
            sent: printable::Redactor::default(),
        };
        let refused = |status, code| read(&answer(status, code)).err().unwrap();
        assert!(matches!(
            refused(400, "invalid_grant"),
            LoginError::Ended(_)
        ));
        assert!(matches!(
            refused(401, "invalid_client"),
            LoginError::Ended(_)
        ));
        assert!(matches!(
            refused(400, "invalid_request"),
            LoginError::NoToken(_)
        ));
        assert!(refused(503, "invalid_grant").is_passing());
        assert!(refused(429, "slow_down").is_passing());
    }
}
