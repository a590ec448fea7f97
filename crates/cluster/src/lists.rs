//! The lists of tools that owners publish: a text in the bucket of objects, by its digest, and a record that
//! names the digest.

use bytes::Bytes;
use fleet::{Failure, Survey, SurveyError};
use sha2::{Digest as _, Sha256};
use tool::ServerName;

use crate::{
    book,
    bus::{BusError, Objects},
    core::Core,
    ledger::{ClusterRecord, ListRecord},
};

/// The attempts to publish against other nodes that do so as well.
const ATTEMPTS_MAX: usize = 4;

/// Publishes the list that this node read from a server.
pub(crate) async fn publish(core: &Core, server: &ServerName, survey: &Survey) {
    let text = survey.snapshot_text();
    if let Err(error) = try_publish(core, server, &text).await {
        tracing::warn!(server = %server, %error, "its list of tools was not published");
    }
}

async fn try_publish(core: &Core, server: &ServerName, text: &str) -> Result<(), BusError> {
    let Some(bus) = core.bus.get() else {
        return Ok(());
    };
    let digest = hex::encode(Sha256::digest(text.as_bytes()));
    let mut is_stored = false;
    for _ in 0..ATTEMPTS_MAX {
        let known = {
            let ledger = core.ledger.lock();
            let known = ledger.lists.get(server);
            known.map(|it| (it.record.clone(), it.is_lost))
        };
        let is_lost = known.as_ref().is_some_and(|(_, is_lost)| *is_lost);
        let known = known.map(|(record, _)| record);
        let name = text_name(&digest);
        if !is_stored && !bus.has_text(Objects::Lists, &name).await {
            bus.put_text(Objects::Lists, &name, text.as_bytes()).await?;
        }
        is_stored = true;
        if !is_lost && known.as_ref().is_some_and(|it| it.digest == digest) {
            return Ok(());
        }
        let old = known.as_ref().filter(|it| it.digest != digest);
        let old = old.map(|it| text_name(&it.digest));
        let record = ListRecord {
            version: known.map_or(1, |it| it.version + 1),
            digest: digest.clone(),
            node: core.settings.node.clone(),
        };
        if book::write(core, ClusterRecord::List(server.clone(), record)).await? {
            if let Some(old) = old {
                bus.remove_text(Objects::Lists, &old).await;
            }
            return Ok(());
        }
    }
    Err(BusError(
        "other nodes publish it at the same time".to_owned(),
    ))
}

/// Returns true if the list of a server was published.
pub(crate) fn is_known(core: &Core, server: &ServerName) -> bool {
    core.ledger.lock().lists.contains_key(server)
}

/// Reads the list that the owner of a server published. `None`: there is none.
pub(crate) async fn read(core: &Core, server: &ServerName) -> Option<Result<Survey, SurveyError>> {
    let record = {
        let ledger = core.ledger.lock();
        ledger.lists.get(server)?.record.clone()
    };
    let bus = core.bus.get()?;
    let read = bus
        .read_text(Objects::Lists, &text_name(&record.digest))
        .await;
    let text = match read {
        Ok(Some(text)) => text,
        Ok(None) => return None,
        Err(error) => return Some(Err(fail(format!("its list of tools: {error}")))),
    };
    Some(parse(&text, &record.digest).map_err(fail))
}

fn parse(text: &Bytes, digest: &str) -> Result<Survey, String> {
    if hex::encode(Sha256::digest(text)) != digest {
        return Err("its list of tools does not have the published digest".to_owned());
    }
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    Survey::of_snapshot(text)
}

fn text_name(digest: &str) -> String {
    format!("list-{digest}")
}

pub(crate) fn fail(why: String) -> SurveyError {
    SurveyError {
        failure: Failure::new(why),
    }
}
