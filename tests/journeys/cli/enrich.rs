//! `proxy enrich` has a program write example requests, and a search finds tools by them.

use journeys::{
    fake::Step,
    house::{Fake, House, fake},
};

use serde_json::json;

use crate::house;

fn two_tools() -> Fake {
    fake("first")
        .tool("alpha", Step::Echo)
        .tool("beta", Step::Echo)
}

/// Creates a house whose `search.enrich` runs this shell script.
fn house_with_writer(script: &str) -> House {
    let house = house([two_tools()]);
    let path = house.write("writer.sh", script);
    house.configure_more(&format!("[search]\nenrich = \"sh '{}'\"\n", path.display()));
    house
}

/// Writes requests for the first tool, and for one that does not exist; keeps its prompt.
const WRITER: &str = "cat > \"$(dirname \"$0\")/prompt\"\n\
    printf 'Sure:\\n1\\tThe zeppelin over Graz needs ballast\\n9\\tnothing\\n'\n";

#[tokio::test]
async fn a_tool_is_found_by_the_requests_that_a_program_wrote() {
    let house = house_with_writer(WRITER);
    house.cli(["reindex"]).await.ended(0);
    house.cli(["search", "zeppelin", "ballast"]).await.ended(1);

    let enriched = house.cli(["enrich", "--yes", "--json"]).await;
    assert_eq!(
        enriched.ended(3),
        "{\n  \"enriched\": 1,\n  \"left\": 1\n}\n"
    );
    let prompt = std::fs::read_to_string(house.path("prompt")).unwrap();
    assert!(
        prompt.contains("1. alpha:") && prompt.contains("2. beta:"),
        "{prompt}"
    );

    let after = house.cli(["search", "zeppelin", "ballast"]).await;
    assert!(after.ended(0).contains("first/alpha"), "{}", after.stdout);
    assert!(!after.stdout.contains("zeppelin"), "{}", after.stdout);

    // A tool that has requests is left out of the next prompt, until its definition changes.
    let open = house.cli(["enrich", "--print"]).await;
    assert!(!open.stdout.contains("alpha"), "{}", open.stdout);
    house.rewrite(
        fake("first")
            .tool_as(
                json!({"name": "alpha", "description": "sends telegrams"}),
                Step::Echo,
            )
            .tool("beta", Step::Echo),
    );
    house.cli(["reindex"]).await.ended(0);
    let open = house.cli(["enrich", "--print"]).await;
    assert!(
        open.ended(0).contains("alpha: sends telegrams"),
        "{}",
        open.stdout
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn nothing_is_sent_unconfirmed_and_a_writer_that_fails_is_named() {
    let house = house_with_writer("echo 'no credit left' >&2; exit 7\n");
    house.cli(["reindex"]).await.ended(0);
    let unconfirmed = house.cli(["enrich"]).await;
    unconfirmed.ended(2);
    assert!(
        unconfirmed.stderr.contains("about 300 tokens")
            && unconfirmed.stderr.contains("nothing was sent"),
        "{}",
        unconfirmed.stderr
    );
    let failed = house.cli(["enrich", "--yes"]).await;
    failed.ended(1);
    assert!(
        failed.stderr.contains("no credit left"),
        "{}",
        failed.stderr
    );
    house.stops_clean().await;
}
