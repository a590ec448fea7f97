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
    gateway
        .authorizer
        .set_on_always(OnAlways::new(move |allowance| {
            // A log has no use for the hint on the second line.
            let first_line = |why: String| why.lines().next().unwrap_or_default().to_owned();
            write(&file, allowance).map_err(|error| first_line(error.to_string()))
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
