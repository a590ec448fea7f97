//! The variables that name a network proxy, and the password that some of them hold.

use std::ops::Range;

use percent_encoding::percent_decode_str;

/// The variables that a child behind a company's proxy needs to connect.
pub(crate) const VARIABLES: [&str; 6] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "all_proxy",
    "https_proxy",
    "http_proxy",
];

/// Removes the name and password from the address of a proxy, for a server to which the variable was
/// not configured.
pub(crate) fn without_login(address: &str) -> String {
    let mut address = address.to_owned();
    if let Some(login) = login(&address) {
        address.replace_range(login.start..=login.end, "");
    }
    address
}

/// Returns the secrets of this process's proxies: each name with its password, and the password alone.
pub(crate) fn secrets() -> Vec<String> {
    let values = VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
    values.flat_map(|value| secrets_of(&value)).collect()
}

fn secrets_of(address: &str) -> Vec<String> {
    let Some(login) = login(address).map(|range| &address[range]) else {
        return Vec::new();
    };
    let password = login.split_once(':').map(|(_, password)| password);
    let given = [Some(login), password].into_iter().flatten();
    let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    given.flat_map(|it| [it.to_owned(), decode(it)]).collect()
}

/// Finds the range of `name:password`, before an `@`. It extends to the last `@`, because people write
/// passwords without encoding them.
fn login(address: &str) -> Option<Range<usize>> {
    let begin = address.find("://").map_or(0, |at| at + 3);
    let end = address[begin..].rfind('@')? + begin;
    Some(begin..end)
}

#[cfg(test)]
mod tests {
    use super::{secrets_of, without_login};

    #[test]
    fn a_login_is_left_out_and_is_secret() {
        let check = |address: &str, left: &str, secrets: &[&str]| {
            assert_eq!(without_login(address), left);
            assert_eq!(secrets_of(address), secrets, "{address}");
        };
        let bare = "http://proxy.example.com:3128";
        check(bare, bare, &[]);
        check(
            "http://me:p%40ss@proxy.example.com:3128/",
            "http://proxy.example.com:3128/",
            &["me:p%40ss", "me:p@ss", "p%40ss", "p@ss"],
        );
        check(
            "me:a/b@c@host:1",
            "host:1",
            &["me:a/b@c", "me:a/b@c", "a/b@c", "a/b@c"],
        );
        check("socks5://token@host", "socks5://host", &["token", "token"]);
        check("", "", &[]);
    }
}
