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
    let name = text_name(&digest);
    if !bus.has_text(Objects::Lists, &name).await {
        bus.put_text(Objects::Lists, &name, text.as_bytes()).await?;
    }
    for _ in 0..ATTEMPTS_MAX {
        let (known, is_lost) = {
            let ledger = core.ledger.lock();
            let is_lost = ledger.is_lost(&format!("list.{server}"));
            (ledger.lists.get(server).cloned(), is_lost)
        };
        let is_same = known.as_ref().is_some_and(|it| it.digest == digest);
        if is_same && !is_lost {
            return Ok(());
        }
        let record = ListRecord {
            version: known.as_ref().map_or(1, |it| it.version + 1),
            digest: digest.clone(),
            node: core.settings.node.clone(),
        };
        if book::write(core, ClusterRecord::List(server.clone(), record)).await? {
            if let Some(old) = known.filter(|_| !is_same) {
                let old = text_name(&old.digest);
                bus.remove_text(Objects::Lists, &old).await;
            }
            return Ok(());
        }
    }
    Err(BusError(
        "other nodes publish it at the same time".to_owned(),
    ))
}

/// Reads the list that the owner of a server published. `None`: there is none.
pub(crate) async fn read(core: &Core, server: &ServerName) -> Option<Result<Survey, SurveyError>> {
    let digest = core.ledger.lock().lists.get(server)?.digest.clone();
    let bus = core.bus.get()?;
    match bus.read_text(Objects::Lists, &text_name(&digest)).await {
        Ok(text) => Some(parse(&text?, &digest).map_err(fail)),
        Err(error) => Some(Err(fail(format!("its list of tools: {error}")))),
    }
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
