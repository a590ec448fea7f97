//! One daemon for all clients of a configuration.

mod approvals;
mod clients_apart;
mod crowd;
mod figures;
mod http;
mod limits_of_callers;
mod live_config;
mod lost_between;
mod ownership;
mod page;
mod page_people;
mod scope;
mod sharing;
mod two_clients;
mod variables;
