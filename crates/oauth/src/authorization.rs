//! One login in a browser: the authorization request, and the check that a response belongs to it.

use reqwest::Url;

use crate::{
    error::{LoginError, shown},
    metadata::Issuer,
    random::{challenge_of, random_text},
    record::OAuthClient,
    settings::LoginSettings,
};

/// A login that waits for its browser.
pub(crate) struct Authorization {
    pub(crate) url: Url,
    pub(crate) redirect_uri: String,
    pub(crate) verifier: String,
    state: String,
    /// Stored before the browser is opened: the response of any other issuer is rejected.
    issuer: String,
    names_issuer: bool,
}

/// The reason why an address is not the expected response.
#[derive(Debug)]
pub(crate) enum Rejected {
    /// It belongs to another login, or to none. This login continues.
    Foreign(LoginError),
    /// It belongs to this login, and ends it.
    Final(LoginError),
}

impl Authorization {
    pub(crate) fn begin(
        issuer: &Issuer,
        client: &OAuthClient,
        redirect_uri: &str,
        resource: Option<&str>,
        scopes: &[String],
        settings: &LoginSettings,
    ) -> Result<Self, LoginError> {
        let (state, verifier) = (random_text()?, random_text()?);
        let mut url = issuer.authorization(settings.assumes_pkce)?.clone();
        let scope = scopes.join(" ");
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", redirect_uri)
                .append_pair("state", &state)
                .append_pair("code_challenge", &challenge_of(&verifier))
                .append_pair("code_challenge_method", "S256");
            if !scope.is_empty() {
                query.append_pair("scope", &scope);
            }
            if scopes.iter().any(|it| it == "offline_access") {
                // OpenID Connect requires the person to consent to that each time.
                query.append_pair("prompt", "consent");
            }
            if let Some(resource) = resource {
                query.append_pair("resource", resource);
            }
            query.extend_pairs(&settings.parameters);
        }
        Ok(Self {
            url,
            redirect_uri: redirect_uri.to_owned(),
            verifier,
            state,
            issuer: issuer.metadata.issuer.clone(),
            names_issuer: issuer
                .metadata
                .authorization_response_iss_parameter_supported,
        })
    }

    /// Returns the code in the address to which a browser was redirected. Checks `state` first, then
    /// the issuer (RFC 9207), and only then reads the result: nothing of a response to another login is
    /// shown.
    pub(crate) fn read(&self, came_back: &Url) -> Result<String, Rejected> {
        let get = |name: &str| {
            let mut pairs = came_back.query_pairs();
            pairs
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        if get("state").as_deref() != Some(&self.state) {
            let why = "its `state` does not match".to_owned();
            return Err(Rejected::Foreign(LoginError::Foreign(why)));
        }
        let is_its_issuer = match get("iss") {
            Some(issuer) => issuer == self.issuer,
            None => !self.names_issuer,
        };
        if !is_its_issuer {
            let why = format!("it does not come from {}", shown(&self.issuer));
            return Err(Rejected::Final(LoginError::Foreign(why)));
        }
        if let Some(code) = get("error") {
            let more = get("error_description").map(|it| format!(": {}", shown(&it)));
            let why = shown(&code) + &more.unwrap_or_default();
            return Err(Rejected::Final(LoginError::Refused(why)));
        }
        get("code").filter(|code| !code.is_empty()).ok_or_else(|| {
            let why = "it contains neither a code nor an error".to_owned();
            Rejected::Final(LoginError::Foreign(why))
        })
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{Authorization, Rejected};
    use crate::LoginError;

    fn authorization(names_issuer: bool) -> Authorization {
        Authorization {
            url: Url::parse("https://as.example/authorize").unwrap(),
            redirect_uri: String::new(),
            verifier: String::new(),
            state: "s".to_owned(),
            issuer: "https://as.example".to_owned(),
            names_issuer,
        }
    }

    fn read(names_issuer: bool, query: &str) -> Result<String, Rejected> {
        let url = Url::parse(&format!("http://127.0.0.1/callback?{query}")).unwrap();
        authorization(names_issuer).read(&url)
    }

    #[test]
    fn an_answer_must_have_its_state_and_come_from_its_issuer() {
        assert_eq!(read(false, "code=c&state=s").unwrap(), "c");
        let iss = "iss=https%3A%2F%2Fas.example";
        assert_eq!(read(true, &format!("code=c&state=s&{iss}")).unwrap(), "c");
        assert!(matches!(read(false, "code=c"), Err(Rejected::Foreign(_))));
        assert!(matches!(
            read(false, "code=c&state=t"),
            Err(Rejected::Foreign(_))
        ));
        for foreign in [
            "code=c&state=s&iss=https%3A%2F%2Fas.example%2F",
            "error=access_denied&state=s&iss=https%3A%2F%2Fevil.example",
            "state=s",
        ] {
            let rejected = read(false, foreign);
            let is_foreign = matches!(rejected, Err(Rejected::Final(LoginError::Foreign(_))));
            assert!(is_foreign, "{foreign}: {rejected:?}");
        }
        assert!(matches!(
            read(true, "code=c&state=s"),
            Err(Rejected::Final(LoginError::Foreign(_)))
        ));
    }

    #[test]
    fn a_refusal_is_told_and_hides_nothing() {
        let refused = read(
            false,
            "error=access_denied&error_description=no%1b%5b2J&state=s",
        );
        let Err(Rejected::Final(LoginError::Refused(why))) = refused else {
            panic!("{refused:?}");
        };
        assert!(why.starts_with("access_denied: no"), "{why}");
        assert!(!why.contains('\u{1b}'), "{why}");
    }
}
