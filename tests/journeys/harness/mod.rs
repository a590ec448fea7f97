//! Tests of the journeys' own tools: the fake server, the house, this folder.

mod declared;
mod fake_catalog;
mod fake_eras;
mod fake_offers;
mod fake_steps;
mod house_itself;
mod soak;
