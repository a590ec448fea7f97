//! A login on another device (RFC 8628): a code is shown here and entered there.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use tokio::time::sleep;

use crate::{
    error::{LoginError, shown},
    metadata::Issuer,
    registration::DEVICE_GRANT,
    token::{self, TokenClient, TokenResponse},
    web::HttpClient,
};

/// The polling interval if the authorization server names none.
const INTERVAL_S: u64 = 5;

/// The increase of the polling interval after each `slow_down`.
const SLOWER_S: u64 = 5;

/// The longest polling interval, whatever the authorization server asks for.
const INTERVAL_S_MAX: u64 = 60;

/// A login that waits for the person to enter the code.
#[derive(Deserialize)]
pub(crate) struct Waiting {
    device_code: String,
    pub(crate) user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    interval: Option<u64>,
}

/// Requests a code.
pub(crate) async fn begin(
    token_client: &TokenClient<'_>,
    issuer: &Issuer,
    scopes: &[String],
) -> Result<Waiting, LoginError> {
    let Some(endpoint) = &issuer.device else {
        return Err(LoginError::Metadata(format!(
            "{} does not support device codes (`--device`)",
            shown(&issuer.metadata.issuer)
        )));
    };
    let scope = scopes.join(" ");
    let form = (!scope.is_empty()).then_some(("scope", scope.as_str()));
    let answer = token_client.post(endpoint, form.as_slice()).await?;
    if !answer.status.is_success() {
        return Err(LoginError::Refused(answer.explain()));
    }
    let waiting: Option<Waiting> = serde_json::from_slice(&answer.body).ok();
    waiting.ok_or_else(|| LoginError::Refused("its response contains no code".to_owned()))
}

impl Waiting {
    /// Returns the address where the person enters the code, checked like any other address.
    pub(crate) fn url(&self, web: &HttpClient) -> Result<Url, LoginError> {
        let text = self.verification_uri_complete.as_ref();
        let text = text.unwrap_or(&self.verification_uri);
        let bad = || LoginError::Metadata("its verification address is not valid".to_owned());
        let url = Url::parse(text).map_err(|_| bad())?;
        web.check(&url)?;
        Ok(url)
    }

    /// Polls until the person has entered the code.
    pub(crate) async fn wait(
        &self,
        token_client: &TokenClient<'_>,
        issuer: &Issuer,
    ) -> Result<TokenResponse, LoginError> {
        let mut interval_s = self.interval.unwrap_or(INTERVAL_S).clamp(1, INTERVAL_S_MAX);
        let form = [
            ("grant_type", DEVICE_GRANT),
            ("device_code", self.device_code.as_str()),
        ];
        loop {
            sleep(Duration::from_secs(interval_s)).await;
            let answer = match token_client.post(&issuer.token, &form).await {
                Ok(answer) => answer,
                // The network may work again in a moment, and the code is valid for longer than that.
                Err(error) if error.is_passing() => continue,
                Err(error) => return Err(error),
            };
            match answer.error_code().as_deref() {
                Some("authorization_pending") => {}
                Some("slow_down") => interval_s = (interval_s + SLOWER_S).min(INTERVAL_S_MAX),
                Some("access_denied" | "expired_token") => {
                    return Err(LoginError::Refused(answer.explain()));
                }
                _ => return token::read(&answer),
            }
        }
    }
}
