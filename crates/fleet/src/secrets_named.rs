//! The secrets that templates refer to, resolved when a server starts.

use secrets::Resolver;

use crate::{Template, Variables, awaited::Awaited, error::Failure, taken::CALLER};

/// Returns the variables with every secret that the templates refer to. A variable of a client with the
/// same name is replaced. A secret of a caller is that of the caller of the variables.
pub async fn with_secrets<'a>(
    templates: impl IntoIterator<Item = &'a Template>,
    variables: &Variables,
    resolver: Option<&Resolver>,
) -> Result<Variables, Failure> {
    let mut filled = variables.clone();
    for (text, reference) in templates.into_iter().flat_map(Template::references) {
        let resolver = resolver.ok_or_else(|| Failure::new("no secrets are kept here"))?;
        let was = resolver.store().changed_at();
        let caller = variables.get(CALLER);
        let secret = resolver.resolve(reference, caller).await;
        let secret = secret.map_err(|error| Failure {
            hint: error.hint,
            awaited: Some(Box::new(Awaited::secrets(resolver.store().clone(), was))),
            ..Failure::new(error.why).lasting()
        })?;
        filled.set(text, secret.expose());
    }
    Ok(filled)
}

/// Makes the commands of these templates that have printed a secret run again. Returns true if there is
/// such a command.
pub(crate) fn forget_printed<'a>(
    templates: impl IntoIterator<Item = &'a Template>,
    resolver: Option<&Resolver>,
) -> bool {
    let named = templates.into_iter().flat_map(Template::references);
    let forgotten = named.filter(|(_, it)| resolver.is_some_and(|all| all.forget(it)));
    forgotten.count() > 0
}

/// Returns true if these templates name a command that has printed a secret.
pub(crate) fn have_printed<'a>(
    templates: impl IntoIterator<Item = &'a Template>,
    resolver: Option<&Resolver>,
) -> bool {
    let mut named = templates.into_iter().flat_map(Template::references);
    named.any(|(_, it)| resolver.is_some_and(|all| all.has_printed(it)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use secrets::{Resolver, Secret, Store};

    use super::with_secrets;
    use crate::{Template, Variables};

    #[tokio::test]
    async fn what_a_client_calls_a_secret_is_none() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::in_state(state.path());
        let resolver = Resolver::new(store.clone(), Arc::default());
        let url = Template::parse("https://example.com/${secret:a}").unwrap();
        let of_client = [("secret:a".to_owned(), "theirs".to_owned())];
        let of_client: Variables = of_client.into_iter().collect();
        let missing = with_secrets([&url], &of_client, Some(&resolver)).await;
        let missing = missing.unwrap_err();
        assert!(missing.is_lasting, "{missing}");
        assert_eq!(missing.hint.as_deref(), Some("proxy secret set a"));
        store
            .set(&"a".parse().unwrap(), &Secret::new("ours"))
            .unwrap();
        let filled = with_secrets([&url], &of_client, Some(&resolver)).await;
        assert_eq!(filled.unwrap().get("secret:a"), Some("ours"));
    }
}
