//! Nodes that join, share their configuration, and nodes that do not belong.

use std::fs;

use journeys::{
    fake::Step,
    house::{House, fake},
    nats::{KEY, Nats},
};
use serde_json::json;

use super::{connected, nats, node, until_found, until_owned, until_state};
use crate::{house_with_daemon, programs};

/// Runs `cluster join` with this token.
async fn join(house: &House, token: &str, args: &[&str]) -> journeys::house::Output {
    let file = house.write("token", token);
    let program = programs().proxy.display().to_string();
    let line = format!(
        "{program} cluster join {} < {}",
        args.join(" "),
        file.display()
    );
    let mut command = house.command(["--version"]);
    let env: Vec<_> = command
        .as_std()
        .get_envs()
        .map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    command = tokio::process::Command::new("sh");
    command.args(["-c", &line]).env_clear();
    for (key, value) in env {
        if let Some(value) = value {
            command.env(key, value);
        }
    }
    let output = command.output().await.unwrap();
    journeys::house::Output {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

/// A node that requires the shared configuration has it without NATS, and calls nothing if it is gone.
async fn rules_are_required(nats: &Nats, two: &House) {
    let call_near = async || {
        two.cli(["daemon", "restart"]).await.ended(0);
        two.cli(["call", "near/echo"]).await
    };
    nats.kill(0);
    call_near().await.ended(0);
    fs::remove_file(two.state().join("cluster/shared.toml")).unwrap();
    let refused = call_near().await;
    assert_ne!(refused.code, Some(0));
    let why = "this node does not have the rules of the cluster yet";
    assert!(refused.stderr.contains(why), "{refused:?}");
    assert_eq!(two.starts("near"), 2);
    nats.begin(0);
    until_state(two, "revision 2 is in effect", |state| {
        state["nodes"][0]["shared_revision"] == 2
    })
    .await;
    two.cli(["call", "near/echo"]).await.ended(0);
}

#[tokio::test]
async fn a_machine_joins_by_one_command_and_gets_the_servers_and_rules_of_all() {
    let nats = nats(1);
    let sole = fake("sole")
        .tool("echo", Step::Echo)
        .tool("wipe", Step::Echo);
    let one = node(&nats, "one", [sole]);
    let text = fs::read_to_string(one.config()).unwrap();
    one.configure(&format!(
        "rules = [{{ tool = \"sole/wipe\", decision = \"deny\", reason = \"never\" }}]\n{text}"
    ));
    connected(&[&one]).await;
    until_owned(&one, "sole").await;
    let pushed = one.cli(["cluster", "push"]).await;
    assert!(pushed.stderr.contains("shared as revision 1"), "{pushed:?}");
    let token = one.cli(["cluster", "join-token"]).await;
    token.ended(0);
    assert!(!token.stdout.contains(KEY), "a token is not plain text");

    let two = house_with_daemon::<journeys::house::Fake>([]);
    let joined = join(&two, &token.stdout, &["--node", "two"]).await;
    assert_eq!(joined.code, Some(0), "{joined:?}");
    let written = fs::read_to_string(two.config()).unwrap();
    assert!(
        !written.contains(KEY) && written.contains("${secret:cluster-key}"),
        "{written}"
    );
    assert!(written.contains("require_shared = true"), "{written}");
    connected(&[&one, &two]).await;
    let client = two.client().await;
    until_found(&client, "sole/echo").await;
    let told = client.execute("sole/echo", json!({"n": 1})).await.good();
    assert_eq!(told, "{\"n\":1}");
    let refused = client.execute("sole/wipe", json!({})).await.bad();
    assert!(refused.contains("never"), "{refused}");

    // A later revision is applied everywhere, and a server of a node's own file stays its own.
    let text = fs::read_to_string(one.config()).unwrap();
    one.configure(&text.replace("never", "not any more"));
    two.add(
        fake("near")
            .tool("echo", Step::text("near"))
            .setting("placement = \"client\""),
    );
    let pushed = one.cli(["cluster", "push"]).await;
    assert!(pushed.stderr.contains("shared as revision 2"), "{pushed:?}");
    until_state(&two, "revision 2 is in effect", |state| {
        state["nodes"][0]["shared_revision"] == 2
    })
    .await;
    let refused = client.execute("sole/wipe", json!({})).await.bad();
    assert!(refused.contains("not any more"), "{refused}");
    until_found(&client, "near/echo").await;
    assert_eq!(client.execute("near/echo", json!({})).await.good(), "near");
    let origin = two.cli(["config", "show", "--origin"]).await;
    assert!(origin.stdout.contains("shared.toml"), "{origin:?}");

    rules_are_required(&nats, &two).await;

    let again = join(&two, &token.stdout, &[]).await;
    assert!(
        again.stderr.contains("part of a cluster already"),
        "{again:?}"
    );
    let garbage = join(&two, "px1.!", &[]).await;
    assert!(
        garbage.stderr.contains("the token is not whole"),
        "{garbage:?}"
    );
    one.stops_clean().await;
    two.stops_clean().await;
}

#[tokio::test]
async fn a_second_node_of_one_name_and_one_with_another_key_are_refused_by_name() {
    let nats = nats(1);
    let sole = || fake("sole").tool("echo", Step::Echo);
    let (one, double, stranger) = (
        node(&nats, "one", [sole()]),
        node(&nats, "one", [sole()]),
        node(&nats, "other", [sole()]),
    );
    let text = fs::read_to_string(stranger.config()).unwrap();
    stranger.configure(&text.replace(KEY, &KEY.to_uppercase()));
    connected(&[&one]).await;
    assert_eq!(until_owned(&one, "sole").await, "one");
    double.cli(["daemon", "start"]).await.ended(0);
    stranger.cli(["daemon", "start"]).await.ended(0);
    let state = until_state(&double, "it says that its name is taken", |state| {
        let trouble = state["trouble"].as_str().unwrap_or_default();
        trouble.contains("another machine is node `one`")
    })
    .await;
    assert_eq!(state["nodes"].as_array().unwrap().len(), 1);
    let told = double.cli(["call", "sole/echo", "n=1"]).await;
    assert_eq!(
        told.ended(0).trim(),
        "{\"n\":1}",
        "it may call all the same"
    );
    assert_eq!(double.starts("sole"), 0);
    for node in [&one, &stranger] {
        until_state(node, "the stranger is named", |state| {
            !state["strangers"].as_array().unwrap().is_empty()
        })
        .await;
    }
    let told = one.cli(["cluster", "status"]).await;
    assert!(
        told.stdout
            .contains("node other has another key and is ignored"),
        "{told:?}"
    );
    let refused = stranger.cli(["call", "sole/echo"]).await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_eq!(stranger.starts("sole"), 0);
    for node in [one, double, stranger] {
        node.stops_clean().await;
    }
}
