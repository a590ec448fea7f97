//! `always`, the answer to a question about a call: a rule in the configuration, which is then read
//! like any other change.

use std::path::Path;

use ::policy::Allowance;
use config::{
    Environment, Overrides,
    edit::{EditError, change},
};
use gateway::{Gateway, OnAlways};

/// Has the gateway write what is allowed into this file.
pub(crate) fn follow(gateway: &Gateway, file: &Path) {
    let file = file.to_owned();
    gateway.on_always(OnAlways::new(move |allowance| {
        write(&file, allowance).map_err(|error| error.to_string())
    }));
}

fn write(file: &Path, allowance: &Allowance) -> Result<(), EditError> {
    let env = Environment::of_process();
    let overrides = Overrides {
        config: Some(file.to_owned()),
        ..Overrides::default()
    };
    change(&overrides, &env, |document| {
        document.allow(allowance, &overrides, &env)
    })?;
    Ok(())
}
