//! The configuration: its rules with their hits, and the verdict on a call for `proxy policy test`.

use std::collections::BTreeMap;

use gateway::{
    QuotaStatus,
    api::{TestedCall, Verdict, test_call},
    list_idle_rules,
};
use serde::Serialize;
use serde_json::{Map, Value};
use telemetry::Filter;

use crate::{
    changes::ChangeRow,
    error::ApiError,
    limits::CALLS_COUNTED_MAX,
    routes::{Call, Nothing},
};

/// The configuration as far as a page may see it: no secret, and no command.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Configuration {
    file: String,
    /// The mistakes with their lines, in the words of `proxy config check`.
    mistakes: Option<String>,
    /// The preset that decides if no rule matches.
    policy: &'static str,
    rules: Vec<RuleRow>,
    /// The number of the newest calls in which hits were counted.
    hits_among: usize,
    quotas: Vec<QuotaStatus>,
    /// The changes by pages, the newest first.
    changes: Vec<ChangeRow>,
}

/// A rule.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RuleRow {
    /// Its place, counted from 1.
    number: usize,
    /// As it is written.
    rule: Map<String, Value>,
    hits: u64,
    /// Why it matches nothing, if it does.
    idle: Option<String>,
    next_step: Option<String>,
}

pub(crate) fn read(call: &Call<Nothing, Nothing>) -> Result<Configuration, ApiError> {
    let gateway = &call.page.daemon.gateway;
    let settings = gateway.settings();
    let idle = list_idle_rules(gateway);
    let (mut hits, mut among) = (BTreeMap::<u64, u64>::new(), 0);
    let folder = settings.state_dir.join("audit");
    telemetry::read_newest(&folder, &Filter::default(), |line| {
        among += 1;
        if let Some(rule) = line["rule"].as_u64() {
            *hits.entry(rule).or_default() += 1;
        }
        among < CALLS_COUNTED_MAX
    })?;
    let rules = (1..).zip(settings.policy.written()).map(|(number, rule)| {
        let about = format!("rule {number}");
        let idle = idle.iter().find(|it| it.about == about);
        RuleRow {
            number,
            rule: rule.clone(),
            hits: hits.get(&(number as u64)).copied().unwrap_or(0),
            idle: idle.map(|it| it.found.clone()),
            next_step: idle.map(|it| it.next.clone()),
        }
    });
    Ok(Configuration {
        file: (call.page.daemon.status)().config.display().to_string(),
        mistakes: gateway.config_mistakes(),
        policy: settings.policy.preset().as_str(),
        rules: rules.collect(),
        hits_among: among,
        quotas: gateway.list_quotas(),
        changes: call.page.changes.list(),
    })
}

pub(crate) async fn test(call: Call<Nothing, TestedCall>) -> Result<Verdict, ApiError> {
    let gateway = &call.page.daemon.gateway;
    gateway.survey_new().await;
    Ok(test_call(gateway, call.body).await?)
}
