//! The official conformance suite's authorization scenarios for clients. The proxy is driven by a
//! script that acts as a person at a terminal (`tests/auth/client.mjs`): it logs in, calls, and
//! logs in again if asked to.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use crate::{programs, real_clients};

/// The scenarios that the revisions 2025-11-25 and 2026-07-28 require of a client.
const REQUIRED: [&str; 25] = [
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "basic-cimd",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
    "resource-mismatch",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
    "metadata-issuer-mismatch",
];

/// Scenarios of an older revision, and of extensions.
const MORE: [&str; 8] = [
    "2025-03-26-oauth-metadata-backcompat",
    "2025-03-26-oauth-endpoint-fallback",
    "client-credentials-basic",
    "client-credentials-jwt",
    "enterprise-managed-authorization",
    "wif-jwt-bearer",
    "dpop",
    "dpop-nonce",
];

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn every_authorization_scenario_passes() {
    let clients = real_clients();
    let mut waiting = REQUIRED.into_iter().chain(MORE);
    let mut running = JoinSet::new();
    loop {
        // Each scenario runs its own Node.js, and starts the proxy several times.
        while running.len() < 2
            && let Some(scenario) = waiting.next()
        {
            let clients = clients.clone();
            let proxy = programs().proxy;
            let name = format!("auth/{scenario}");
            running.spawn(async move { (scenario, clients.authorization(&name, &proxy).await) });
        }
        let Some(ended) = running.join_next().await else {
            break;
        };
        let (scenario, said) = ended.unwrap();
        let passed = said.lines().find(|line| line.starts_with("Passed: "));
        let passed = passed.unwrap_or_else(|| panic!("{scenario}:\n{said}"));
        let is_good = passed.ends_with(", 0 failed, 0 warnings") && !passed.contains(" 0/0");
        assert!(is_good, "{scenario}:\n{said}");
    }
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn no_authorization_scenario_is_forgotten() {
    let there: BTreeSet<String> = real_clients().authorization_scenarios().await;
    let known = REQUIRED.iter().chain(&MORE);
    let known: BTreeSet<String> = known.map(|name| format!("auth/{name}")).collect();
    assert_eq!(known, there);
}
