//! Bounded lists of scopes from remote servers. They are bounded because they are stored, and the file
//! of a login has a size limit.

/// The most scopes in one list, and the largest scope in bytes. Servers with many scopes list about
/// fifty.
const SCOPES_MAX: usize = 256;
const SCOPE_BYTES_MAX: usize = 256;

/// Reads scopes that are separated by spaces.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut scopes: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    bound(&mut scopes);
    scopes
}

/// Removes everything that exceeds the bounds.
pub(crate) fn bound(scopes: &mut Vec<String>) {
    scopes.retain(|scope| scope.len() <= SCOPE_BYTES_MAX);
    scopes.truncate(SCOPES_MAX);
}

/// Adds the scopes that are new. If there are too many, the oldest are removed.
pub(crate) fn add(scopes: &mut Vec<String>, more: Vec<String>) {
    for scope in more {
        if scope.len() <= SCOPE_BYTES_MAX && !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes.drain(..scopes.len().saturating_sub(SCOPES_MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_wants_ever_more_scopes_fills_no_file() {
        let mut scopes = vec!["read".to_owned()];
        add(&mut scopes, vec!["read".to_owned(), "write".to_owned()]);
        assert_eq!(scopes, ["read", "write"]);
        for number in 0..10_000 {
            add(&mut scopes, vec![format!("s{number}")]);
        }
        assert_eq!(scopes.len(), SCOPES_MAX);
        assert_eq!(scopes.last().unwrap(), "s9999");
        add(&mut scopes, vec!["x".repeat(SCOPE_BYTES_MAX + 1)]);
        assert_eq!(scopes.last().unwrap(), "s9999");
    }

    #[test]
    fn a_list_is_read_within_its_bounds() {
        let long = "x".repeat(SCOPE_BYTES_MAX + 1);
        assert_eq!(split(&format!(" a {long}  b ")), ["a", "b"]);
        assert_eq!(split(&"a ".repeat(10_000)).len(), SCOPES_MAX);
    }
}
