//! Definitions that changed since they were accepted.

use std::borrow::Cow;

use registry::{DecideError, Review, ShownDefinition, Subject};
use serde::{Deserialize, Serialize};
use tool::ServerName;

use super::error::ApiError;
use crate::gateway::Gateway;

/// A selection of definitions.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReviewsQuery {
    /// Only those of this server.
    pub server: Option<String>,
}

/// Definitions to review.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewList {
    /// The definitions, by server.
    pub reviews: Vec<ReviewRow>,
    /// The number of resources that are listed after these are decided.
    pub more: usize,
    /// The reason why nothing counts as accepted, if so.
    pub trouble: Option<String>,
}

/// A definition to review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewRow {
    /// `SERVER/TOOL`, or `SERVER` and the subject.
    pub name: String,
    /// Its server.
    pub server: String,
    /// `tool`, `prompt`, `resource`, `template` or `instructions`.
    pub kind: String,
    /// The kind, and the name on the server.
    pub subject: String,
    /// The full name, of a tool.
    pub tool: Option<String>,
    /// Its digest, 64 hexadecimal digits.
    pub digest: String,
    /// `changed`, `new` or `refused`.
    pub state: Cow<'static, str>,
    /// True if models do not get the current definition until it is accepted.
    pub held: bool,
    /// The accepted definition.
    pub before: Option<String>,
    /// The current one.
    pub now: String,
    /// The parts that may be intended to steer a model.
    pub signs: Vec<String>,
}

/// A decision about definitions: all of them are decided, or none.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReviewDecision {
    /// The definitions.
    pub definitions: Vec<DecidedDefinition>,
    /// True: accepted; false: refused.
    pub accept: bool,
}

/// A definition as it was shown: another one is not decided on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DecidedDefinition {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub digest: String,
}

impl From<&Review> for ReviewRow {
    fn from(review: &Review) -> Self {
        let ShownDefinition {
            server,
            subject,
            digest,
        } = &review.shown;
        let kind = subject.to_string();
        let kind = kind.split(' ').next().unwrap_or_default().to_owned();
        Self {
            name: review.shown.name(),
            server: server.to_string(),
            kind,
            subject: subject.to_string(),
            tool: matches!(subject, Subject::Tool(_)).then(|| review.shown.name()),
            digest: digest.clone(),
            state: Cow::Borrowed(match (review.is_refused, review.is_changed) {
                (true, _) => "refused",
                (false, true) => "changed",
                (false, false) => "new",
            }),
            held: review.is_held,
            before: review.before.clone(),
            now: review.now.clone(),
            signs: review.signs.clone(),
        }
    }
}

/// Lists the definitions to review. Blocks.
pub fn list_reviews(gateway: &Gateway, asked: &ReviewsQuery) -> Result<ReviewList, ApiError> {
    let server = asked.server.as_deref().map(str::parse::<ServerName>);
    let server = server.transpose();
    let server = server.map_err(|error| ApiError::bad(error.to_string()).at("server"))?;
    let registry = &gateway.catalog.registry;
    let reviews = registry.list_reviews(server.as_ref());
    Ok(ReviewList {
        reviews: reviews.list.iter().map(ReviewRow::from).collect(),
        more: reviews.more,
        trouble: registry.pin_trouble().map(|it| it.to_string()),
    })
}

/// Accepts or refuses definitions. Returns a sentence. Blocks.
pub fn decide(gateway: &Gateway, decision: ReviewDecision) -> Result<String, ApiError> {
    let registry = &gateway.catalog.registry;
    let current = registry.list_reviews(None).list;
    let (mut shown, mut changed) = (Vec::new(), Vec::new());
    for asked in decision.definitions {
        let mut found = current.iter().map(|it| &it.shown);
        match found.find(|it| it.digest == asked.digest && it.name() == asked.name) {
            Some(found) => shown.push(found.clone()),
            None => changed.push(asked.name),
        }
    }
    if !changed.is_empty() {
        return Err(explain_changed(&changed));
    }
    let accept = decision.accept;
    match registry.decide(&shown, accept) {
        Ok(()) => {
            let past = if accept { "accepted" } else { "refused" };
            let names: Vec<String> = shown.iter().map(ShownDefinition::name).collect();
            Ok(format!("{past}: {}", names.join(", ")))
        }
        Err(DecideError::Changed(names)) => Err(explain_changed(&names)),
        Err(DecideError::Pins(trouble)) => {
            let why = format!("nothing was decided: {trouble}");
            Err(ApiError::conflict(why).next("`proxy doctor` prints the fix"))
        }
        Err(DecideError::Registry(error)) => Err(anyhow::Error::from(error).into()),
    }
}

fn explain_changed(names: &[String]) -> ApiError {
    let names = names.join(", ");
    let why = format!("nothing was decided: {names} changed or was decided since it was shown");
    ApiError::conflict(why).next("`proxy review` prints the present definitions")
}
