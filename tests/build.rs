//! Sets `cfg(offline)` for `PROXY_TESTS_OFFLINE=1`: tests that call real programs are then counted
//! as ignored.

const OFFLINE: &str = "PROXY_TESTS_OFFLINE";

fn main() {
    println!("cargo::rerun-if-env-changed={OFFLINE}");
    println!("cargo::rustc-check-cfg=cfg(offline)");
    if std::env::var(OFFLINE).is_ok_and(|set| set == "1") {
        println!("cargo::rustc-cfg=offline");
    }
}
