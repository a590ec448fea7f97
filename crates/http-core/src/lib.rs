//! The parts that every HTTP server of the program has: the endpoint of `[http]`, the web page, and the
//! address to which a browser is redirected after a login.
//!
//! [`Server`] accepts connections within [`ConnectionLimits`] and passes each request to a [`Handler`].
//! The handler asks a [`Guard`] if the request may come in, reads its body by [`read_body`], and builds its
//! response by [`respond`] or [`html`]. Routes, tokens and the form of errors belong to the handler.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod body;
mod guard;
mod half_close;
mod places;
mod response;
mod server;
mod stall;

pub use body::{BodyError, read_body};
pub use guard::{
    Guard, OwnNames, Refusal, bearer, check_is_json, check_same_site, get_once, has_origin,
    is_address,
};
pub use places::{Entered, Full, HeldPlace, HolderState, PlaceOwner, Places, Serving};
pub use response::{add_headers, escape_html, html, respond};
pub use server::{Arrival, ConnectionLimits, Handler, Problem, ServedBody, Server};
