//! The endpoint with its secrets: tokens read, the certificate loaded.

use std::{path::Path, sync::Arc};

use fleet::Template;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    settings::{Limits, Listen, Settings, TOKEN_HINT, Tls},
    tokens::Tokens,
};

/// Everything that is needed to listen. Holding one means that it may be done.
#[derive(Clone)]
pub struct Endpoint {
    pub(super) listen: Listen,
    pub(super) tokens: Tokens,
    pub(super) allowed_hosts: Vec<String>,
    pub(super) allowed_origins: Vec<String>,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) sessions: bool,
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
    /// Reads what the configuration names. `listen` goes before what stands there. The error is
    /// for people, with the next step.
    pub fn new(http: &Settings, listen: Option<Listen>) -> Result<Self, String> {
        let listen = listen.or(http.listen).ok_or(
            "no address to listen on: write `proxy serve --http 127.0.0.1:7331`, or `listen` under \
             `[http]`",
        )?;
        http.admits(listen)
            .map_err(|why| format!("{why}\n    hint: {TOKEN_HINT}"))?;
        let tls = http.tls.as_ref().map(acceptor).transpose()?;
        if tls.is_none() && !listen.is_loopback() {
            tracing::warn!(%listen, "tokens travel in the clear: set `http.tls_cert` and `http.tls_key`");
        }
        Ok(Self {
            listen,
            tokens: tokens(&http.tokens, &http.token_files)?,
            allowed_hosts: http.allowed_hosts.clone(),
            allowed_origins: http.allowed_origins.clone(),
            tls,
            sessions: http.sessions,
            limits: http.limits,
        })
    }
}

type Named = [(String, Template)];

fn tokens(written: &Named, files: &Named) -> Result<Tokens, String> {
    let mut tokens = Tokens::default();
    for (name, template) in written {
        tokens.add(name, &filled(template, &format!("http.tokens.{name}"))?)?;
    }
    for (name, template) in files {
        let path = filled(template, &format!("http.token_files.{name}"))?;
        let token = read(Path::new(&path), &format!("http.token_files.{name}"))?;
        tokens.add(name, &token)?;
    }
    Ok(tokens)
}

fn filled(template: &Template, key: &str) -> Result<String, String> {
    let value = template.expand(|name| std::env::var(name).ok());
    value.map_err(|unset| format!("{key}: {unset}\n    hint: set it, or correct the name"))
}

fn read(path: &Path, key: &str) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("{key}: cannot read `{}`: {error}", path.display()))
}

/// TLS 1.2 and newer with the person's certificate, HTTP/1.1 on top.
fn acceptor(files: &Tls) -> Result<TlsAcceptor, String> {
    let bad = |key: &str, why: String| format!("http.{key}: {why}\n    hint: name a PEM file");
    let cert = filled(&files.cert, "http.tls_cert")?;
    let chain = CertificateDer::pem_file_iter(&cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| bad("tls_cert", format!("cannot read `{cert}`: {error}")))?;
    if chain.is_empty() {
        return Err(bad("tls_cert", format!("no certificate in `{cert}`")));
    }
    let key = filled(&files.key, "http.tls_key")?;
    let private = PrivateKeyDer::from_pem_file(&key)
        .map_err(|error| bad("tls_key", format!("cannot read `{key}`: {error}")))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|it| it.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| bad("tls_key", error.to_string()))?;
    let mut config = config;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
