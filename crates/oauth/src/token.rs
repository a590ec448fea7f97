//! Requests to a token endpoint.

use reqwest::Url;
use serde_json::Value;

use crate::{
    clock::now,
    error::LoginError,
    metadata::Issuer,
    random::random_text,
    record::{Client, Grant},
    web::{Answer, Web},
};

/// A token as it was given.
pub(crate) struct Given {
    access_token: String,
    refresh_token: Option<String>,
    expires_at: Option<u64>,
    scopes: Option<Vec<String>>,
}

/// A token for more than this many seconds ends nobody's lifetime; the number comes from a stranger.
const LIFE_S_MAX: u64 = 10 * 365 * 86_400;

/// Asks for a token. `form` says what for; who we are and the resource are added.
pub(crate) async fn ask(
    web: &Web,
    endpoint: &Url,
    client: &Client,
    resource: Option<&str>,
    form: &[(&str, &str)],
) -> Result<Given, LoginError> {
    let answer = post(web, endpoint, client, resource, form).await?;
    read(&answer)
}

/// The same request, and the answer as it came.
pub(crate) async fn post(
    web: &Web,
    endpoint: &Url,
    client: &Client,
    resource: Option<&str>,
    form: &[(&str, &str)],
) -> Result<Answer, LoginError> {
    let mut form = form.to_vec();
    form.extend(resource.map(|resource| ("resource", resource)));
    let secret = client.secret.as_deref();
    let login = match (client.method.as_str(), secret) {
        ("client_secret_basic", Some(secret)) => Some((client.id.as_str(), secret)),
        (_, secret) => {
            form.push(("client_id", &client.id));
            form.extend(secret.map(|secret| ("client_secret", secret)));
            None
        }
    };
    web.post_form(endpoint, &form, login).await
}

pub(crate) fn read(answer: &Answer) -> Result<Given, LoginError> {
    if !answer.status.is_success() {
        let why = answer.explain();
        // A server that is in trouble has not said no.
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
    let object = object.ok_or_else(|| LoginError::NoToken("the answer is no JSON".to_owned()))?;
    read_given(&object).ok_or_else(|| {
        let why = object.get("error").and_then(Value::as_str);
        let why = why.map_or_else(
            || "there is none in the answer".to_owned(),
            crate::error::shown,
        );
        LoginError::NoToken(why)
    })
}

fn read_given(object: &Value) -> Option<Given> {
    let text = |key: &str| {
        let value = object.get(key)?.as_str()?;
        (!value.is_empty()).then(|| value.to_owned())
    };
    let kind = text("token_type");
    if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return None;
    }
    let access_token = text("access_token")?;
    // It goes into a header.
    if !access_token.chars().all(|c| c.is_ascii_graphic()) {
        return None;
    }
    // Some write the number as a text.
    let life = object.get("expires_in");
    let life = life.and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok()));
    Some(Given {
        access_token,
        refresh_token: text("refresh_token"),
        expires_at: life.map(|life| now() + life.min(LIFE_S_MAX)),
        scopes: text("scope").map(|all| all.split_whitespace().map(str::to_owned).collect()),
    })
}

/// A login that was just made. Where the answer names no scopes, they are those that were asked for.
pub(crate) fn grant(
    given: Given,
    issuer: &Issuer,
    client: &Client,
    resource: Option<String>,
    asked: &[String],
) -> Result<Grant, LoginError> {
    Ok(Grant {
        id: random_text()?,
        issuer: issuer.said.issuer.clone(),
        scopes: given.scopes.unwrap_or_else(|| asked.to_vec()),
        expires_at: given.expires_at,
        obtained_at: now(),
        ended: None,
        access_token: given.access_token,
        refresh_token: given.refresh_token,
        token_endpoint: issuer.token.to_string(),
        revocation_endpoint: issuer.revocation.as_ref().map(Url::to_string),
        resource,
        client: client.clone(),
    })
}

/// Renews a login: the one that it was, with new tokens.
pub(crate) async fn renew(web: &Web, grant: &Grant) -> Result<Grant, LoginError> {
    let bad = || LoginError::Metadata("its token endpoint is no address".to_owned());
    let endpoint = Url::parse(&grant.token_endpoint).map_err(|_| bad())?;
    let refresh = grant.refresh_token.as_deref();
    let refresh = refresh.ok_or_else(|| LoginError::Ended("it cannot be renewed".to_owned()))?;
    let form = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
    let given = ask(
        web,
        &endpoint,
        &grant.client,
        grant.resource.as_deref(),
        &form,
    )
    .await?;
    Ok(Grant {
        scopes: given.scopes.unwrap_or_else(|| grant.scopes.clone()),
        expires_at: given.expires_at,
        obtained_at: now(),
        access_token: given.access_token,
        // One that is not replaced goes on.
        refresh_token: given.refresh_token.or_else(|| grant.refresh_token.clone()),
        ..grant.clone()
    })
}

/// Has the authorization server forget a token, where it can (RFC 7009).
pub(crate) async fn revoke(web: &Web, grant: &Grant) -> Result<(), LoginError> {
    let endpoint = grant.revocation_endpoint.as_deref();
    let Some(endpoint) = endpoint.and_then(|it| Url::parse(it).ok()) else {
        return Ok(());
    };
    let refresh = grant.refresh_token.as_deref();
    let tokens = refresh.map(|it| (it, "refresh_token")).into_iter();
    for (token, kind) in tokens.chain([(grant.access_token.as_str(), "access_token")]) {
        let form = [("token", token), ("token_type_hint", kind)];
        let answer = post(web, &endpoint, &grant.client, None, &form).await?;
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
    use crate::{LoginError, clock::now, web::Answer};

    #[test]
    fn tokens_are_read_as_servers_write_them() {
        let given = read_given(&json!({
            "access_token": "a", "token_type": "bearer", "expires_in": "60", "scope": "x y",
        }));
        let given = given.unwrap();
        assert!(given.expires_at.unwrap() >= now() + 59);
        assert_eq!(given.scopes.unwrap(), ["x", "y"]);
        let endless = json!({"access_token": "a", "expires_in": u64::MAX});
        assert!(read_given(&endless).unwrap().expires_at.is_some());
        assert!(
            read_given(&json!({"access_token": "a"}))
                .unwrap()
                .expires_at
                .is_none()
        );
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
        let answer = |status: u16, code: &str| Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: json!({"error": code}).to_string().into_bytes(),
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
