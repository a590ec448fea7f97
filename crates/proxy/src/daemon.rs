//! One daemon for every client of a configuration.
//!
//! `proxy serve` is a [`relay`]: it finds the daemon's socket ([`place`]), starts the daemon where
//! there is none ([`launch`]), says who it is ([`hello`]) and passes lines. The daemon ([`host`])
//! has the one [`Front`](crate::front::Front) that all sessions share.

pub(crate) mod environment;
pub(crate) mod hello;
pub(crate) mod host;
pub(crate) mod identity;
pub(crate) mod launch;
pub(crate) mod log;
pub(crate) mod place;
pub(crate) mod relay;
pub(crate) mod status;
