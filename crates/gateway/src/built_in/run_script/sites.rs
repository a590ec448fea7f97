//! Checks the argument names in a script against the schema of their tool before it runs.

use registry::Entry;
use script::CallSite;
use serde_json::Value;

use crate::envelope::INPUT_ALIASES;

/// Describes the mistakes in a call that the script's source shows; `None` if there are none, or the
/// arguments are not known.
pub(super) fn check(site: &CallSite, entry: &Entry) -> Option<String> {
    let given = site.arguments.as_ref()?;
    // An envelope is removed when the call is made.
    if matches!(given.as_slice(), [one] if INPUT_ALIASES.contains(&one.as_str())) {
        return None;
    }
    let schema = entry.input_schema();
    let parameters = tool::parameters(&schema);
    let names = || parameters.iter().map(|it| it.name.as_str());
    let mut mistakes = Vec::new();
    for name in given {
        if names().any(|known| known == name) || name.starts_with("proxy/") {
            continue;
        }
        match tool::near(name, names(), 1).first() {
            Some(near) if !given.iter().any(|it| it == near) => {
                mistakes.push(format!("{name}: no such argument; did you mean {near}?"));
            }
            _ if is_closed(&schema) => mistakes.push(format!("{name}: no such argument")),
            _ => {}
        }
    }
    if mistakes.is_empty() {
        let required = parameters.iter().filter(|it| it.required);
        let missing = required.filter(|it| !given.contains(&it.name));
        mistakes.extend(missing.map(|it| format!("{}: missing", it.name)));
    }
    (!mistakes.is_empty()).then(|| {
        let list = mistakes.join("; ");
        format!("{list}. Expected {}{}", entry.at, entry.signature())
    })
}

fn is_closed(schema: &str) -> bool {
    let root: Value = serde_json::from_str(schema).unwrap_or_default();
    root.get("additionalProperties") == Some(&Value::Bool(false))
}
