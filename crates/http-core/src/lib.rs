//! The parts of HTTP that several crates need.
//!
//! Every server of the program has them in common: the endpoint of `[http]`, the web page, and the address
//! to which a browser is redirected after a login.
//!
//! [`Server`] accepts connections within [`ConnectionLimits`] and passes each request to a [`Handler`].
//! The handler asks a [`Guard`] if the request may come in, reads its body by [`read_body`], and builds its
//! response by [`respond`] or [`html`]. Routes, tokens and the form of errors belong to the handler.
//!
//! Requests to other servers are made by a client of [`client_builder_for`]. A [`Fetcher`] reads documents:
//! the metadata of authorization servers, and the lists of registries.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod body;
mod fetch;
mod guard;
mod half_close;
mod places;
mod response;
mod server;
mod stall;
mod trust;

pub use body::{BodyError, read_body};
pub use fetch::{
    Document, Fetcher, ReadError, client_builder_for, describe, is_loopback, read_response,
    stays_at_origin,
};
pub use guard::{
    Guard, OwnNames, Refusal, bearer, check_is_json, check_same_site, get_once, has_origin,
    is_address,
};
pub use places::{Entered, Full, HeldPlace, HolderState, PlaceOwner, Places, Serving};
pub use response::{add_headers, escape_html, html, respond};
pub use server::{Arrival, ConnectionLimits, Handler, Problem, ServedBody, Server};
pub use trust::http_client_builder;
