//! Definitions that changed since they were accepted.

use std::sync::Arc;

use registry::{DecideError, Review, ShownDefinition, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::Done;
use crate::{
    error::ApiError,
    routes::{Call, Nothing},
};

/// Definitions to review.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReviewList {
    reviews: Vec<ReviewRow>,
    /// The number of resources that are listed after these are decided.
    more: usize,
}

/// A definition to review, as `proxy review --json` prints it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewRow {
    name: String,
    server: String,
    /// `tool`, `prompt`, `resource`, `template` or `instructions`.
    kind: String,
    tool: Option<String>,
    digest: String,
    /// `changed`, `new` or `refused`.
    state: &'static str,
    before: Option<String>,
    now: String,
    /// The parts that may be intended to steer a model.
    signs: Vec<String>,
}

/// A decision about one definition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewDecision {
    /// The name as it was shown.
    name: String,
    /// The digest as it was shown: another definition is not decided on.
    digest: String,
    accept: bool,
}

/// Returns a review as `proxy review --json` prints it.
pub fn review_json(review: &Review) -> ReviewRow {
    let ShownDefinition {
        server,
        subject,
        digest,
    } = &review.shown;
    let kind = subject.to_string();
    let kind = kind.split(' ').next().unwrap_or_default().to_owned();
    ReviewRow {
        name: review.shown.name(),
        server: server.to_string(),
        kind,
        tool: matches!(subject, Subject::Tool(_)).then(|| review.shown.name()),
        digest: digest.clone(),
        state: match (review.is_refused, review.is_changed) {
            (true, _) => "refused",
            (false, true) => "changed",
            (false, false) => "new",
        },
        before: review.before.clone(),
        now: review.now.clone(),
        signs: review.signs.clone(),
    }
}

pub(crate) async fn list(call: Call<Nothing, Nothing>) -> Result<ReviewList, ApiError> {
    let gateway = Arc::clone(&call.page.daemon.gateway);
    let reading = tokio::task::spawn_blocking(move || {
        let reviews = gateway.catalog.registry.list_reviews(None);
        ReviewList {
            reviews: reviews.list.iter().map(review_json).collect(),
            more: reviews.more,
        }
    });
    Ok(reading.await.map_err(anyhow::Error::from)?)
}

pub(crate) async fn decide(call: Call<Nothing, ReviewDecision>) -> Result<Done, ApiError> {
    let gateway = Arc::clone(&call.page.daemon.gateway);
    let deciding = tokio::task::spawn_blocking(move || {
        let ReviewDecision {
            name,
            digest,
            accept,
        } = call.body;
        let registry = &gateway.catalog.registry;
        let reviews = registry.list_reviews(None).list.into_iter();
        let mut shown = reviews.map(|it| it.shown).filter(|it| it.name() == name);
        let changed =
            || ApiError::conflict(format!("{name} changed or was decided since it was shown"));
        let shown = shown.find(|it| it.digest == digest).ok_or_else(changed)?;
        match registry.decide(&[shown], accept) {
            Ok(()) => {
                let past = if accept { "accepted" } else { "refused" };
                Ok(Done::new(format!("{past}: {name}")))
            }
            Err(DecideError::Changed(_)) => Err(changed()),
            Err(DecideError::Pins(trouble)) => {
                let why = format!("nothing was decided: {trouble}");
                Err(ApiError::conflict(why).next("proxy doctor"))
            }
            Err(DecideError::Registry(error)) => Err(anyhow::Error::from(error).into()),
        }
    });
    deciding.await.map_err(anyhow::Error::from)?
}
