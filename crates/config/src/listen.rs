//! `[http]`: addresses to listen on, access, and limits.

use std::collections::BTreeMap;

use fleet::Template;
use http_server::{Guard, HttpSettings, Introspection, Limits, Listen, NoAddress, TOKEN_HINT, Tls};

use super::{
    mistake::{Fault, shown, shown_address},
    paths::Folders,
    raw::{RawCluster, RawGuard, RawHttp},
    template::{read_pairs, read_plain, read_template},
};

pub(super) fn check(text: &str) -> Result<(), Fault> {
    let listen = text.parse::<Listen>().map(drop);
    listen.map_err(|error| explain_listen(&error))
}

fn explain_listen(error: &NoAddress) -> Fault {
    let what = format!("not an address to listen on: `{}`", shown_address(&error.0));
    Fault::new(what, NoAddress::HINT)
}

pub(super) fn check_host(text: &str) -> Result<(), Fault> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if text.chars().all(is_part) {
        return Ok(());
    }
    let what = format!("not a host name: `{}`", shown_address(text));
    Err(Fault::new(
        what,
        "write the host without scheme and path: `tools.example.com`",
    ))
}

pub(super) fn check_origin(text: &str) -> Result<(), Fault> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && check_host(rest).is_ok()) {
        return Ok(());
    }
    let what = format!("not an origin: `{}`", shown_address(text));
    Err(Fault::new(
        what,
        "write scheme, host and port, without a path: `https://chat.example.com`",
    ))
}

/// Returns the settings of the table, or the key that contradicts others.
pub(super) fn read_http(
    raw: &RawHttp,
    cluster: Option<&RawCluster>,
    folders: &Folders<'_>,
) -> Result<HttpSettings, (&'static str, Fault)> {
    let listen = raw.listen.as_deref().map(str::parse).transpose();
    let lower = |texts: &[String]| texts.iter().map(|text| text.to_lowercase()).collect();
    let http = HttpSettings {
        listen: listen.map_err(|why| ("listen", explain_listen(&why)))?,
        tokens: read_pairs(&raw.tokens).map_err(|fault| ("tokens", fault))?,
        token_files: read_files(&raw.token_files, folders)
            .map_err(|fault| ("token_files", fault))?,
        oauth: read_guard(&raw.oauth).map_err(|fault| ("oauth", fault))?,
        public_url: read_plain("public_url", raw.public_url.as_ref())
            .map_err(|fault| ("public_url", fault))?,
        allowed_hosts: lower(&raw.allowed_hosts),
        allowed_origins: lower(&raw.allowed_origins),
        tls: read_tls(raw, folders)?,
        cluster: read_cluster_key(cluster).map_err(|fault| ("listen", fault))?,
        metrics: raw.metrics,
        limits: Limits {
            body_bytes_max: raw.max_body_kib << 10,
            sessions_max: raw.max_sessions,
            ..Limits::default()
        },
    };
    match http.listen.map(|listen| http.admits(listen)) {
        Some(Err(why)) => Err(("listen", Fault::new(why, TOKEN_HINT))),
        _ => Ok(http),
    }
}

/// Returns the name and key of a cluster, which signs the ids of sessions.
fn read_cluster_key(raw: Option<&RawCluster>) -> Result<Option<(String, Template)>, Fault> {
    let named = raw.and_then(|raw| Some((raw.name.clone(), raw.key.as_ref()?)));
    let read = |(name, key): (String, &String)| Ok((name, read_template(key)?));
    named.map(read).transpose()
}

fn read_tls(raw: &RawHttp, folders: &Folders<'_>) -> Result<Option<Tls>, (&'static str, Fault)> {
    match (&raw.tls_cert, &raw.tls_key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some(Tls {
            cert: folders.read(cert).map_err(|fault| ("tls_cert", fault))?,
            key: folders.read(key).map_err(|fault| ("tls_key", fault))?,
        })),
        (Some(_), None) => Err(("tls_cert", explain_alone("tls_key"))),
        (None, Some(_)) => Err(("tls_key", explain_alone("tls_cert"))),
    }
}

fn read_guard(raw: &RawGuard) -> Result<Option<Guard>, Fault> {
    let (Some(issuer), Some(audience)) = (&raw.issuer, &raw.audience) else {
        if *raw == RawGuard::default() {
            return Ok(None);
        }
        let hint = "write both, or remove the keys of `http.oauth`";
        return Err(Fault::new("requires both `issuer` and `audience`", hint));
    };
    let is_odd = |c: char| !c.is_ascii_graphic() || "\"\\".contains(c);
    if let Some(bad) = raw.scopes.iter().find(|scope| scope.contains(is_odd)) {
        let what = format!("not a scope: `{}`", shown(bad));
        return Err(Fault::new(
            what,
            "a scope is one word, such as `tools:read`",
        ));
    }
    let plain = |text: &str| {
        let plain = read_template(text)?.plain();
        let is_header = |it: &String| it.chars().all(|c| c.is_ascii_graphic() && c != '"');
        plain.filter(is_header).ok_or_else(|| {
            let what = format!("not a plain address: `{}`", shown_address(text));
            Fault::new(what, "write it without `${` and whitespace")
        })
    };
    Ok(Some(Guard {
        issuer: plain(issuer)?,
        audience: plain(audience)?,
        scopes: raw.scopes.clone(),
        introspection: read_introspection(raw)?,
    }))
}

fn read_introspection(raw: &RawGuard) -> Result<Option<Introspection>, Fault> {
    match (
        &raw.introspection_client_id,
        &raw.introspection_client_secret,
    ) {
        (Some(client_id), Some(client_secret)) => Ok(Some(Introspection {
            client_id: read_template(client_id)?,
            client_secret: read_template(client_secret)?,
        })),
        (None, None) => Ok(None),
        _ => Err(Fault::new(
            "introspection requires a client ID and its secret",
            "write both `oauth.introspection_client_id` and `oauth.introspection_client_secret`, or \
             remove both",
        )),
    }
}

fn explain_alone(other: &str) -> Fault {
    Fault::new(
        format!("requires `{other}`"),
        format!("add `{other}`, or remove both"),
    )
}

fn read_files(
    written: &BTreeMap<String, String>,
    folders: &Folders<'_>,
) -> Result<Vec<(String, Template)>, Fault> {
    let file = |(name, path): (&String, &String)| Ok((name.clone(), folders.read(path)?));
    written.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::{check_host, check_origin};

    #[test]
    fn hosts_and_origins_are_told_from_addresses() {
        assert!(check_host("tools.example.com:8443").is_ok() && check_host("[::1]").is_ok());
        assert!(check_host("https://example.com").is_err());
        assert!(check_origin("https://chat.example.com").is_ok());
        for bad in ["chat.example.com", "https://", "https://a/b", "null"] {
            assert!(check_origin(bad).is_err(), "{bad}");
        }
    }
}
