//! The three tools: calls, arguments, names, eras.

mod apps;
mod asked_crowd;
mod call_many;
mod commands;
mod eras;
mod hostile_definitions;
mod kept_secrets;
mod limits;
mod limits_of_callers;
mod line_breaks;
mod lists_that_change;
mod odd_tools;
mod overlays;
mod pins;
pub(crate) mod questions;
mod remote;
mod rules;
mod saved_scripts;
mod scripts;
mod secrets;
mod sessions;
mod skills;
mod tasks;
mod three_tools;
mod traces;
mod trust;
mod untrusted;
