//! What a person allows for good, when asked about a call: written into the configuration, which is
//! then taken in like any other change.

use std::path::Path;

use config::{
    Environment, Overrides,
    edit::{AllowRule, EditError, change},
};
use gateway::{Allowance, Gateway, OnAlways};

/// Has the gateway write what is allowed into this file.
pub(crate) fn follow(gateway: &Gateway, file: &Path) {
    let file = file.to_owned();
    gateway.on_always(OnAlways::new(move |allowance| {
        write(&file, allowance).map_err(|error| error.to_string())
    }));
}

fn write(file: &Path, allowance: &Allowance) -> Result<(), EditError> {
    let Allowance {
        key,
        server,
        name,
        client,
    } = allowance;
    let client = (!client.is_empty()).then_some(client.as_str());
    let rule = AllowRule {
        key,
        server,
        name,
        client,
    };
    let overrides = Overrides {
        config: Some(file.to_owned()),
        ..Overrides::default()
    };
    change(&overrides, &Environment::of_process(), |document| {
        Ok(document.allow(&rule))
    })?;
    Ok(())
}
