//! Third-party servers, clients and lists of tools.

mod apps;
mod authorization;
mod callers;
mod catalogue;
mod clients;
mod conformance;
mod forty_calls;
mod killed;
mod logins;
mod logins_told;
mod page;
mod passing;
mod recipes;
mod servers;
mod servers_alone;
mod skills;
mod tokens;
mod transcripts;
