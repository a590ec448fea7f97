//! What journeys are made of does as it says: the fake server, the house, this folder.

mod declared;
mod fake_catalog;
mod fake_eras;
mod fake_offers;
mod fake_steps;
mod house_itself;
mod soak;
