//! The web page in a real browser, as a person uses it.

use std::path::Path;

use journeys::{
    fake::Step,
    house::{Fake, fake},
    page::Tab,
    real_schemathesis::Schemathesis,
};

use crate::{house, house_with_daemon, programs, real_page};

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_person_uses_every_page_by_mouse_and_by_keyboard() {
    let house = house::<Fake>([]);
    let page = real_page();
    let home = house.path("web");
    page.visit(&programs().proxy, home.parent().unwrap()).await;
    assert!(
        house.all_gone().await.is_ok(),
        "a program of the visit is left"
    );
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn the_files_of_the_page_have_the_right_types_and_sizes() {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/page/assets");
    real_page().check_files(&assets).await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn the_api_keeps_to_its_description_whatever_is_sent() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let schemathesis = Schemathesis::ready(target);
    let notes = fake("notes")
        .tool("add_note", Step::Echo)
        .tool("wipe", Step::Echo);
    let house = house_with_daemon([notes]);
    house.cli(["reindex"]).await.ended(0);
    let tab = Tab::open(&house).await;
    schemathesis.check(&tab, &house.path("schemathesis")).await;
    house.stops_clean().await;
}
