//! A state folder that other users can write to is not used, and no link in one is followed.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
};

use journeys::{
    fake::Step,
    house::{Fake, House, Output, fake},
};

use crate::house_with_daemon;

fn any() -> Fake {
    fake("any").tool("echo", Step::Echo)
}

/// Creates a house whose state folder has this mode and contains links of another user in place of
/// our logs.
fn house_with_links(mode: u32) -> (House, PathBuf, PathBuf) {
    let house = house_with_daemon([any()]);
    let (state, victim) = (house.path("state"), house.write("victim", ""));
    fs::create_dir_all(state.join("logs")).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(mode)).unwrap();
    for name in ["daemon.log", "logs/any.log", "lock"] {
        symlink(&victim, state.join(name)).unwrap();
    }
    (house, state, victim)
}

async fn run(house: &House, verb: &[&str]) -> Output {
    let state = house.path("state").display().to_string();
    let args = ["--state-dir", state.as_str(), "--log", "debug"];
    house.cli(args.iter().chain(verb)).await
}

#[tokio::test]
async fn a_folder_that_others_write_to_is_refused_with_the_next_step() {
    let (house, state, victim) = house_with_links(0o777);
    let verbs: [&[&str]; 5] = [
        &["serve", "--standalone"],
        &["serve"],
        &["daemon", "start"],
        &["reindex"],
        &["call", "any/echo"],
    ];
    for verb in verbs {
        let refused = run(&house, verb).await;
        assert_ne!(refused.code, Some(0), "{verb:?}");
        let next = format!(
            "lets others write to it (mode 0777); try `chmod 700 {}`",
            state.display()
        );
        assert!(
            refused.stderr.contains(&next),
            "{verb:?}: {}",
            refused.stderr
        );
    }
    assert_eq!(fs::read_to_string(victim).unwrap(), "");
    assert!(!state.join("catalog.json").exists());
    house.stops_clean().await;
}

#[tokio::test]
async fn no_line_goes_through_a_link() {
    let (house, _, victim) = house_with_links(0o700);
    run(&house, &["daemon", "start"]).await.ended(0);
    run(&house, &["call", "any/echo"]).await;
    run(&house, &["daemon", "stop"]).await.ended(0);
    assert_eq!(fs::read_to_string(victim).unwrap(), "");
    house.stops_clean().await;
}
