//! Handles `always`, the answer to a question about a call: it adds a rule to the configuration, which
//! is then reloaded like any other change.

use std::path::Path;

use ::policy::Allowance;
use config::{
    Environment, Overrides,
    edit::{EditError, change},
};
use gateway::Gateway;

/// Makes the gateway write allowed calls as rules into this file.
pub(crate) fn follow(gateway: &Gateway, file: &Path) {
    let file = file.to_owned();
    gateway.authorizer.set_on_always(move |allowance| {
        // The hint on the second line is of no use in a log.
        let first_line = |why: String| why.lines().next().unwrap_or_default().to_owned();
        write(&file, allowance).map_err(|error| first_line(error.to_string()))
    });
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
