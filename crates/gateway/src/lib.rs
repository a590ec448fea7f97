//! The MCP server: a session, the three tools and the built-in ones, for any number of clients.
//!
//! This crate knows no socket, no configuration file and no terminal.
//!
//! The command line uses the same [`Gateway`] as a client does, so both get the same answers.

#![warn(missing_docs)]

pub mod api;
mod app_use;
mod apps;
mod arguments;
mod authorize;
mod built_in;
mod call_context;
mod caller;
mod catalog;
mod client_tasks;
pub mod clients;
mod definitions;
mod dispatcher;
mod elicitation;
mod envelope;
mod error;
pub mod exported;
mod find;
mod forward;
mod gateway;
mod idle_rules;
mod instructions;
mod json_text;
mod kept_secrets;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod log_level;
mod logins;
mod metrics;
mod out;
mod person_questions;
pub mod policy;
mod project;
mod quotas;
mod recent_searches;
mod redaction_count;
mod render;
mod reply;
mod running_calls;
mod saved_scripts;
mod saved_skills;
mod scrapes;
mod script_caller;
mod script_turns;
mod sent_instructions;
mod session;
mod settings;
pub mod state_dir;
pub mod stdio;
pub mod survey;
mod surveys;
mod tools;
mod trace_parent;
mod traces;
pub mod upkeep;
mod used_up_quota;
mod wire;

#[cfg(test)]
mod tests;

pub use authorize::refusal::{CallRefusal, RefusalReason};
pub use authorize::{Authorizer, Thing};
pub use call_context::CallContext;
pub use catalog::{Catalog, SearchAnswer, list_offered};
pub use clients::Connection;
pub use definitions::{DESCRIBE, EXECUTE, SEARCH, TOOLS, count_ours};
pub use definitions::{count_definition, estimate_definition};
pub use elicitation::CallAsker;
pub use error::{Audience, OtherThing, ToolError};
pub use forward::announces_resources;
pub use gateway::{Gateway, resolver, spawner, surroundings};
pub use idle_rules::{IdleRule, IdleRuleStatus, find_idle_rules, list_idle_rules};
pub use instructions::instructions;
pub use logins::{LoginStatus, describe_login};
pub use out::{
    Out, ResponseSender, ResponseStream, ServerEvent, StreamRouter, response_stream,
    single_response,
};
pub use person_questions::{PersonQuestion, PersonQuestions};
pub use project::{PROJECT_FILE, ProjectRule};
pub use quotas::{QuotaStatus, QuotaUse};
pub use recent_searches::RecentSearches;
pub use render::error::shorten_home_paths;
pub use reply::ToolReply;
pub use reply::{LOST_CALL, answer_lost_call};
pub use running_calls::{RunningCall, RunningCalls};
pub use saved_scripts::{FileMistake, SavedScripts};
pub use saved_skills::SavedSkills;
pub use session::{
    Announcement, Ended, INVALID_ID, Session, explain_not_served, is_gone_in_stateless, refuse,
    serve,
};
pub use settings::{
    AuditSettings, KeptArguments, SearchSettings, ServerSettings, Settings, ToolLimits,
    TraceSettings,
};
pub use state_dir::{has_log, logs, marker};
pub use surveys::LeftOut;
pub use tools::{describe_as_json, describe_json, search_json, search_text};
pub use wire::Opening;
