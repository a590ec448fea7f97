//! The secrets that a server contains in clear text.

use printable::{FoundSecret, find_secrets as find_in, find_secrets_in_arguments};

use crate::server::{Secret, SecretPlace, TranslatedServer};

/// Returns the secrets that a server contains in clear text, text by text, in their order.
pub fn find_secrets(server: &TranslatedServer) -> Vec<Secret> {
    let mut secrets = Vec::new();
    let mut note = |place: &SecretPlace, text: &str, found: Vec<FoundSecret>| {
        secrets.extend(found.into_iter().map(|found| Secret {
            place: place.clone(),
            value: text[found.range.clone()].to_owned(),
            range: found.range,
            name: found.name,
        }));
    };
    for (name, value) in &server.env {
        let place = SecretPlace::Env(name.clone());
        note(&place, value, find_in(value, Some(name)));
    }
    for (name, value) in &server.headers {
        let place = SecretPlace::Header(name.clone());
        note(&place, value, find_in(value, Some(name)));
    }
    let found = find_secrets_in_arguments(server.args.iter().map(String::as_str));
    for (index, (arg, found)) in server.args.iter().zip(found).enumerate() {
        note(&SecretPlace::Argument(index), arg, found);
    }
    if let Some(url) = &server.url {
        note(&SecretPlace::Url, url, find_in(url, None));
    }
    secrets
}

#[cfg(test)]
mod tests {
    use super::{TranslatedServer, find_secrets};

    #[test]
    fn secrets_are_found_in_every_text_of_a_server() {
        let pairs = |pairs: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            pairs.iter().map(own).collect::<Vec<_>>()
        };
        let server = TranslatedServer {
            env: pairs(&[
                ("API_TOKEN", "abcdef"),
                ("OTHER", "ghp_0123456789abcdef"),
                ("SSH_KEY", "/home/ada/.ssh/id"),
                ("TOKEN", "${TOKEN}"),
                ("DATABASE_URL", "postgres://ada:lovelace@db/x?token=asdfgh"),
            ]),
            headers: pairs(&[("Authorization", "Bearer abc123"), ("Accept", "text")]),
            args: ["--token", "opensesame", "--header=X-Api-Key: k-1234"]
                .map(str::to_owned)
                .to_vec(),
            url: Some("https://x.dev/mcp?token=${T}&key=qwerty&sig=zxcvbn".to_owned()),
            ..TranslatedServer::default()
        };
        let found = find_secrets(&server);
        let values: Vec<&str> = found.iter().map(|secret| secret.value.as_str()).collect();
        assert_eq!(
            values,
            [
                "abcdef",
                "ghp_0123456789abcdef",
                "lovelace",
                "asdfgh",
                "abc123",
                "opensesame",
                "k-1234",
                "qwerty",
                "zxcvbn"
            ]
        );
        assert!(!format!("{found:?}").contains("sesame"));
    }
}
