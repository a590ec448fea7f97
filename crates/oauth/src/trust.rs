//! The certificates that HTTP clients trust, read once: the clients of many callers would each read and
//! keep all of them.

use std::sync::OnceLock;

use reqwest::{Client, ClientBuilder};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Begins an HTTP client that trusts what the system trusts. All clients share the certificates that the
/// first one read.
pub fn http_client_builder() -> ClientBuilder {
    static CONFIG: OnceLock<Option<ClientConfig>> = OnceLock::new();
    let builder = Client::builder();
    match CONFIG.get_or_init(read_config) {
        Some(config) => builder.tls_backend_preconfigured(config.clone()),
        // The client reports the reason when it is built.
        None => builder,
    }
}

fn read_config() -> Option<ClientConfig> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into());
    let config = config.with_safe_default_protocol_versions().ok()?;
    let config = config.with_platform_verifier().ok()?;
    Some(config.with_no_client_auth())
}
