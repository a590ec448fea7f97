//! The command line and its configuration.

mod config_mistakes;
mod demo;
mod doctor;
mod edit;
mod enrich;
mod lock;
mod moving_in;
mod newcomers;
mod plugin;
mod registry;
mod reindex;
mod shell;
mod verbs;
