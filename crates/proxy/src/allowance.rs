//! What a person allows for good, when asked about a call: written into the configuration, which is
//! then taken in like any other change.

use std::path::Path;

use config::edit::{AllowRule, Document};
use gateway::{Allowance, Gateway, OnAlways};

/// Has the gateway write what is allowed into this file.
pub(crate) fn follow(gateway: &Gateway, file: &Path) {
    let file = file.to_owned();
    gateway.on_always(OnAlways::new(move |allowance| {
        write(&file, allowance).map_err(|error| error.to_string())
    }));
}

fn write(file: &Path, allowance: &Allowance) -> Result<(), config::edit::EditError> {
    let Allowance {
        key,
        server,
        name,
        client,
    } = allowance;
    let mut document = Document::read(file)?;
    let client = (!client.is_empty()).then_some(client.as_str());
    let rule = AllowRule {
        key,
        server,
        name,
        client,
    };
    if document.allow(&rule) {
        document.write()?;
    }
    Ok(())
}
