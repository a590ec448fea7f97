//! The connection to NATS: TLS, client certificates, credentials, and servers that are too old.

use std::fs;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use journeys::{
    fake::Step,
    house::{Fake, House, fake},
    nats::{KEY, Nats},
};
use nkeys::KeyPair;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair as TlsKey,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use super::{connected, nats_program, until_state};
use crate::house_with_daemon;

fn far() -> Fake {
    fake("far").tool("echo", Step::Echo).setting("on = \"one\"")
}

/// Creates a node with these further keys in `[cluster]`.
fn node(name: &str, address: &str, keys: &str) -> House {
    let house = house_with_daemon([far()]);
    let rest = fs::read_to_string(house.config()).unwrap();
    house.configure(&format!(
        "[cluster]\nnode = \"{name}\"\nnats = [\"{address}\"]\nkey = \"{KEY}\"\n{keys}\n\n{rest}"
    ));
    house
}

/// Calls a server of one node from another.
async fn call_from_two_to_one(one: House, two: House) {
    connected(&[&one, &two]).await;
    let told = two.cli(["call", "far/echo", "n=1"]).await;
    assert_eq!(told.ended(0).trim(), "{\"n\":1}");
    assert_eq!(two.starts("far"), 0);
    one.stops_clean().await;
    two.stops_clean().await;
}

/// A node that NATS does not admit says why, and serves what is its own.
async fn is_refused(house: House, why: &str) {
    house.cli(["daemon", "start"]).await.ended(0);
    let state = until_state(&house, "it says why", |state| {
        let trouble = state["trouble"].as_str().unwrap_or_default();
        trouble.contains(why)
    })
    .await;
    assert_ne!(state["link"], "connected", "{state:#}");
    let told = house.cli(["call", "far/echo", "n=1"]).await;
    assert_eq!(told.ended(0).trim(), "{\"n\":1}");
    house.stops_clean().await;
}

/// An authority of certificates, and files that it signed.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, TlsKey>,
}

impl Authority {
    fn new() -> Self {
        let mut about = CertificateParams::new(Vec::new()).unwrap();
        about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = TlsKey::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let certificate = about.self_signed(&key).unwrap();
        fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        let issuer = Issuer::new(about, key);
        Self { folder, issuer }
    }

    fn sign(&self, name: &str) {
        let mut about = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        about.distinguished_name.push(DnType::CommonName, name);
        about.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = TlsKey::generate().unwrap();
        let signed = about.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.path(&format!("{name}.pem")), signed.pem()).unwrap();
        fs::write(self.path(&format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    }

    fn path(&self, file: &str) -> String {
        self.folder.path().join(file).to_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn nodes_and_nats_prove_themselves_to_each_other_by_certificates() {
    let (ours, other) = (Authority::new(), Authority::new());
    ours.sign("nats");
    ours.sign("node");
    other.sign("node");
    let nats = nats_program().start_with(&format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}",
        ours.path("nats.pem"),
        ours.path("nats-key.pem"),
        ours.path("ca.pem")
    ));
    let address = nats.urls()[0].replace("nats:", "tls:");
    let keys = |ca: &Authority, node: &Authority| {
        format!(
            "tls_ca = {:?}\ntls_cert = {:?}\ntls_key = {:?}",
            ca.path("ca.pem"),
            node.path("node.pem"),
            node.path("node-key.pem")
        )
    };
    let good = keys(&ours, &ours);
    call_from_two_to_one(node("one", &address, &good), node("two", &address, &good)).await;
    let stranger = node("one", &address, &keys(&ours, &other));
    is_refused(stranger, "there is no connection to NATS yet").await;
    let distrusting = node("one", &address, &keys(&other, &ours));
    is_refused(distrusting, "invalid peer certificate").await;
}

/// A text that NATS accepts as the word of this key about another.
fn sign(by: &KeyPair, about: &KeyPair, claims: &Value) -> String {
    let part = |json: Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let head = part(json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let body = part(json!({
        "jti": "journeys", "iat": 1_700_000_000, "iss": by.public_key(), "name": "journeys",
        "sub": about.public_key(), "nats": claims,
    }));
    let text = format!("{head}.{body}");
    let signature = URL_SAFE_NO_PAD.encode(by.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

/// NATS with one account, and the credentials of a user of that account.
fn nats_with_credentials() -> (Nats, String) {
    let (operator, user) = (KeyPair::new_operator(), KeyPair::new_user());
    let (account, system) = (KeyPair::new_account(), KeyPair::new_account());
    let operator_text = sign(
        &operator,
        &operator,
        &json!({"type": "operator", "version": 2}),
    );
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
    });
    let claims = json!({"type": "account", "version": 2, "limits": limits});
    let account_text = sign(&operator, &account, &claims);
    let system_text = sign(
        &operator,
        &system,
        &json!({"type": "account", "version": 2}),
    );
    let user_text = sign(
        &account,
        &user,
        &json!({"type": "user", "version": 2, "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1}),
    );
    let nats = nats_program().start_with(&format!(
        "operator: {operator_text}\nsystem_account: {}\nresolver: MEMORY\n\
         resolver_preload {{ {}: {system_text}, {}: {account_text} }}\n",
        system.public_key(),
        system.public_key(),
        account.public_key()
    ));
    let credentials = format!(
        "-----BEGIN NATS USER JWT-----\n{user_text}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        user.seed().unwrap()
    );
    (nats, credentials)
}

#[tokio::test]
async fn nodes_log_in_to_nats_with_credentials_from_a_file() {
    let (nats, credentials) = nats_with_credentials();
    let (_other, foreign) = nats_with_credentials();
    let address = &nats.urls()[0];
    let folder = tempfile::tempdir().unwrap();
    let node = |name: &str, credentials: &str| {
        let file = folder.path().join("node.creds");
        fs::write(&file, credentials).unwrap();
        let keys = format!("credentials = \"${{file:{}}}\"", file.display());
        node(name, address, &keys)
    };
    call_from_two_to_one(node("one", &credentials), node("two", &credentials)).await;
    is_refused(node("one", &foreign), "authorization violation").await;
}

/// Speaks as much of NATS as a client needs to believe that it is connected.
async fn speak(stream: TcpStream, version: &str) {
    let (read, mut write) = stream.into_split();
    let about = json!({
        "server_id": "OLD", "server_name": "old", "version": version, "go": "go1.19", "host": "127.0.0.1",
        "port": 4222, "headers": true, "max_payload": 1_048_576, "jetstream": true, "proto": 1, "client_id": 1,
    });
    let mut said = write
        .write_all(format!("INFO {about}\r\n").as_bytes())
        .await;
    let mut lines = BufReader::new(read).lines();
    while let (Ok(()), Ok(Some(line))) = (&said, lines.next_line().await) {
        if line == "PING" {
            said = write.write_all(b"PONG\r\n").await;
        }
    }
}

#[tokio::test]
async fn a_nats_server_that_loses_data_is_refused_with_its_version() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("nats://{}", listener.local_addr().unwrap());
    let old = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(speak(stream, "2.9.10"));
        }
    });
    let why = "the NATS server has version 2.9.10, and older than 2.10.23 loses data";
    is_refused(node("one", &address, ""), why).await;
    old.abort();
}
