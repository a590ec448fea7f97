//! The endpoint with resolved secrets: tokens and certificate.

use std::{path::Path, sync::Arc};

use fleet::{Failure, Template, Variables, with_secrets};
use http_core::{Guard, OwnNames};
use oauth::IntrospectionClient;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use secrets::{Resolver, Secret};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::{
    gate::Gate,
    guarding::Guarding,
    settings::{HttpSettings, Limits, Listen, TOKEN_HINT, Tls},
    tokens::Tokens,
};

/// The resolved settings of the endpoint. They were checked: it may listen at its address.
#[derive(Clone)]
pub struct Endpoint {
    pub(super) listen: Listen,
    pub(super) gate: Gate,
    pub(super) tls: Option<TlsAcceptor>,
    /// Signs the ids of sessions; none: the key of the state folder does.
    pub(super) session_key: Option<[u8; 32]>,
    pub(super) metrics: bool,
    pub(super) limits: Limits,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("listen", &self.listen)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Resolves the configured values: templates are expanded from `variables` and `secrets`. `listen`
    /// overrides the configured address. The error contains the next step.
    pub async fn new(
        http: &HttpSettings,
        listen: Option<Listen>,
        variables: &Variables,
        secrets: &Resolver,
    ) -> Result<Self, String> {
        let listen = listen.or(http.listen).ok_or(
            "not an address to listen on: write `proxy serve --http 127.0.0.1:7331`, or `listen` under \
             `[http]`",
        )?;
        http.admits(listen)
            .map_err(|why| format!("{why}\n    hint: {TOKEN_HINT}"))?;
        let variables = &with_secrets(http.templates(), variables, Some(secrets))
            .await
            .map_err(|failure| explain(&failure))?;
        let tls = http.tls.as_ref();
        let tls = tls.map(|tls| acceptor(tls, variables)).transpose()?;
        if tls.is_none() && !listen.is_loopback() {
            tracing::warn!(%listen, "tokens are sent unencrypted: set `http.tls_cert` and `http.tls_key`");
        }
        Ok(Self {
            listen,
            gate: Gate {
                guard: Guard {
                    names: OwnNames::AddressAnd(http.allowed_hosts.clone()),
                    scheme: if tls.is_some() { "https://" } else { "http://" },
                    origins: http.allowed_origins.clone(),
                    public_origin: http.public_origin().map(Into::into),
                },
                tokens: tokens(http, variables)?,
                guarding: guarding(http, variables)?,
            },
            tls,
            session_key: session_key(http, variables)?,
            metrics: http.metrics,
            limits: http.limits,
        })
    }
}

fn explain(failure: &Failure) -> String {
    let hint = failure.hint.as_deref().unwrap_or("look at `[http]`");
    format!("http: {failure}\n    hint: {hint}")
}

fn guarding(http: &HttpSettings, variables: &Variables) -> Result<Option<Arc<Guarding>>, String> {
    let Some(guard) = &http.oauth else {
        return Ok(None);
    };
    let client = guard.introspection.as_ref().map(|it| {
        let key = |name: &str| format!("http.oauth.introspection_{name}");
        Ok::<_, String>(IntrospectionClient {
            id: filled(&it.client_id, &key("client_id"), variables)?,
            secret: Secret::new(filled(&it.client_secret, &key("client_secret"), variables)?),
        })
    });
    let guarding = Guarding::new(guard.clone(), client.transpose()?);
    Ok(Some(Arc::new(guarding)))
}

fn tokens(http: &HttpSettings, variables: &Variables) -> Result<Tokens, String> {
    let mut tokens = Tokens::default();
    for (name, template) in &http.tokens {
        let token = filled(template, &format!("http.tokens.{name}"), variables)?;
        tokens.add(name, &token)?;
    }
    for (name, template) in &http.token_files {
        let path = filled(template, &format!("http.token_files.{name}"), variables)?;
        let token = read(Path::new(&path), &format!("http.token_files.{name}"))?;
        tokens.add(name, &token)?;
    }
    Ok(tokens)
}

/// Derives the key that signs the ids of sessions on all nodes of a cluster.
fn session_key(http: &HttpSettings, variables: &Variables) -> Result<Option<[u8; 32]>, String> {
    let Some((cluster, key)) = &http.cluster else {
        return Ok(None);
    };
    let key = filled(key, "cluster.key", variables)?;
    let text = format!("proxy sessions over HTTP\n{cluster}\n{key}");
    Ok(Some(Sha256::digest(text).into()))
}

fn filled(template: &Template, key: &str, variables: &Variables) -> Result<String, String> {
    let value = template.expand(|name| variables.get(name).map(str::to_owned));
    value.map_err(|unset| format!("{key}: {unset}\n    hint: set it, or correct the name"))
}

fn read(path: &Path, key: &str) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("{key}: cannot read `{}`: {error}", path.display()))
}

/// Makes an acceptor for TLS 1.2 and newer with the configured certificate, and HTTP/1.1.
fn acceptor(files: &Tls, variables: &Variables) -> Result<TlsAcceptor, String> {
    let bad = |key: &str, why: String| format!("http.{key}: {why}\n    hint: name a PEM file");
    let cert = filled(&files.cert, "http.tls_cert", variables)?;
    let chain = CertificateDer::pem_file_iter(&cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| bad("tls_cert", format!("cannot read `{cert}`: {error}")))?;
    if chain.is_empty() {
        return Err(bad("tls_cert", format!("no certificate in `{cert}`")));
    }
    let key = filled(&files.key, "http.tls_key", variables)?;
    let private = PrivateKeyDer::from_pem_file(&key)
        .map_err(|error| bad("tls_key", format!("cannot read `{key}`: {error}")))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|it| it.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| bad("tls_key", error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
