//! OAuth 2.1 logins to remote servers, as MCP specifies them: discovery of the authorization server,
//! client registration, tokens and their renewal.
//!
//! This crate knows no MCP message, no configuration file and no terminal. Everything that it reads
//! comes from remote servers: addresses are checked before a request is sent, texts before they are
//! shown.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod attempt;
mod authorization;
mod browser;
mod challenge;
mod credential;
mod device;
mod discovery;
mod error;
mod introspection;
mod jwt;
mod listener;
mod login;
mod machine;
mod metadata;
mod person;
mod proof;
mod random;
mod record;
mod registration;
mod scopes;
mod settings;
mod store;
mod token;
mod verifier;
mod web;

pub use browser::{can_open_browser, open_browser};
pub use challenge::Challenge;
pub use credential::{Bearer, Credential, CredentialError};
pub use error::LoginError;
pub use introspection::IntrospectionClient;
pub use listener::Redirect;
pub use login::{Login, log_in, log_out};
pub use person::{AddressReceiver, HostedRedirects, LoginMethod, Person};
pub use record::{Grant, Record};
pub use settings::{Assertion, CallbackHost, GrantKind, IdentityProvider, LoginSettings, Resource};
pub use store::{RecordFile, RenamedLogins, StoreError};
pub use verifier::{Verified, Verifier, VerifyError};
