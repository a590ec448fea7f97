//! Parts of the journeys: a server that does as a script says
//! ([`fake`]), a client that keeps every byte ([`client`]), a house to live in
//! ([`house`]), and servers nobody here wrote ([`real`]).

pub mod bridge;
pub mod client;
pub mod collector;
pub mod fake;
pub mod guarded;
pub mod house;
pub mod processes;
pub mod real;
pub mod real_clients;
pub mod real_recipes;
pub mod site;
pub mod soak;
pub mod web;
