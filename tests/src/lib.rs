//! Parts of the journeys: a server that runs a script ([`fake`]), a client that keeps every byte
//! ([`client`]), a house for the processes ([`house`]), and third-party servers ([`real`]).

pub mod bridge;
pub mod client;
pub mod collector;
pub mod documents;
pub mod fake;
pub mod guarded;
pub mod house;
pub mod nats;
pub mod page;
pub mod port;
pub mod processes;
pub mod real;
pub mod real_apps;
pub mod real_clients;
pub mod real_page;
pub mod real_recipes;
pub mod real_schemathesis;
pub mod site;
pub mod soak;
pub mod web;
