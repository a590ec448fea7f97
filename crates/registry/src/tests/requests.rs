//! Example requests: texts of a tool beside its definition.

use std::fs;
use std::sync::Arc;

use tempfile::tempdir;

use super::embedding::MEMORY;
use super::*;
use crate::{MatchKind, Options, RelevanceFeedback};

fn open_with(folder: &Path, embeds: bool, has_requests: bool) -> Registry {
    let options = Options {
        embeds,
        has_requests,
        ..Options::default()
    };
    let registry = Registry::open_with(folder, rules(&["memory", "depot"]), options).unwrap();
    registry.commit(both(&DEPOT), false, 0).unwrap();
    registry.embed_tools(2, &|_, _| true).unwrap();
    registry
}

const DEPOT: [&str; 3] = [
    "op_17: Changes the state of a unit",
    "op_18: Changes the place of a unit",
    "op_19: Lists units",
];

fn both(depot: &[&str]) -> Vec<News> {
    vec![news("memory", &MEMORY), news("depot", depot)]
}

fn teach(registry: &Registry, tool: &str, requests: &[&str]) {
    let entry = registry.generation().unwrap().find(tool).unwrap().clone();
    let requests: Vec<String> = requests.iter().map(ToString::to_string).collect();
    let made = [(entry.at.clone(), entry.tool.digest(), requests)];
    registry.store_requests(&made).unwrap();
    registry.embed_tools(2, &|_, _| true).unwrap();
}

fn first(registry: &Registry, request: &str) -> Option<String> {
    hits(registry, &Query::words(request)).into_iter().next()
}

const NEED: &str = "The zeppelin over Graz is too light";

#[test]
fn a_known_tool_is_found_by_the_requests_of_the_program() {
    let folder = tempdir().unwrap();
    let registry = open_with(folder.path(), true, true);
    let generation = registry.generation().unwrap();
    assert_eq!(generation.with_requests(), 9);
    let found = generation.search(&Query::words("remember that I like tea"));
    assert_eq!(found.kind, MatchKind::Ranked);
    assert_eq!(
        found.hits[0].entry.at.to_string(),
        "memory/add_observations"
    );
}

#[test]
fn a_stored_request_counts_by_its_words_and_by_its_meaning() {
    for embeds in [false, true] {
        let folder = tempdir().unwrap();
        let registry = open_with(folder.path(), embeds, false);
        teach(
            &registry,
            "depot/op_18",
            &[NEED, "Bring ballast to the airship"],
        );
        let wanted = Some("depot/op_18".to_owned());
        assert_eq!(first(&registry, "our zeppelin needs ballast"), wanted);
        if embeds {
            assert_eq!(first(&registry, "the blimp is not heavy enough"), wanted);
        }
        let found = registry.generation().unwrap();
        let found = found.search(&Query::words("zeppelin ballast airship"));
        let same = found.hits.iter().filter(|it| it.entry.at.tool == "op_18");
        assert_eq!(same.count(), 1);
    }
}

#[test]
fn a_request_ends_with_its_definition_and_follows_a_rename() {
    let folder = tempdir().unwrap();
    let registry = open_with(folder.path(), false, false);
    teach(&registry, "depot/op_18", &[NEED]);
    teach(&registry, "depot/op_19", &["How many barges are there"]);
    let count = |registry: &Registry| registry.generation().unwrap().with_requests();
    assert_eq!(count(&registry), 2);

    let changed = ["op_18: Moves a unit", DEPOT[0], DEPOT[2]];
    registry.commit(both(&changed), false, 0).unwrap();
    assert_eq!(count(&registry), 1);

    let (from, to) = (server("depot"), server("yard"));
    registry.adopt_server(&from, &to).unwrap();
    registry.finish_rename(&from, &to).unwrap();
    registry.apply_rules(rules(&["memory", "yard"])).unwrap();
    assert_eq!(count(&registry), 1);
    assert_eq!(first(&registry, "barges").as_deref(), Some("yard/op_19"));

    // The next store forgets the requests of definitions and servers that are gone.
    teach(&registry, "yard/op_18", &["Tow it to Linz"]);
    let stored = fs::read_to_string(folder.path().join("requests.json")).unwrap();
    assert!(
        !stored.contains("depot") && !stored.contains("zeppelin"),
        "{stored}"
    );
}

#[test]
fn a_learned_request_counts_by_its_meaning_until_the_definition_changes() {
    let folder = tempdir().unwrap();
    let registry = open_with(folder.path(), true, false);
    let feedback = Arc::new(RelevanceFeedback::open(folder.path(), true));
    let ask = |whose: &str, text: &str| {
        let learned = crate::Learned {
            feedback: Arc::clone(&feedback),
            whose: whose.to_owned(),
        };
        let query = Query {
            why: true,
            learned: Some(learned),
            ..Query::words(text)
        };
        registry.generation().unwrap().search(&query).hits
    };
    let gain = |hits: &[crate::Hit]| {
        let mut evidence = hits.iter().flat_map(|it| &it.evidence);
        let found = evidence.find(|it| it.label.starts_with("learned: what calls"));
        found.map(|it| it.amount)
    };
    let text = "what about that unit";
    let first = ask("me@here", text)[0].entry.at.tool.clone();
    let mut others = ["op_17", "op_18"].into_iter().filter(|it| *it != first);
    let generation = registry.generation().unwrap();
    let taught = generation
        .find(&format!("depot/{}", others.next().unwrap()))
        .unwrap();
    let lesson = crate::find_lesson(&generation, "and what about that unit").unwrap();
    feedback.learn("me@here", &lesson, taught, true, 0);
    let hits = ask("me@here", text);
    assert_eq!(hits[0].entry.at, taught.at, "{hits:?}");
    assert!(gain(&hits).is_some_and(|it| it > 0.0 && it <= 0.2));
    assert_eq!(ask("you@here", text)[0].entry.at.tool, first);
    // A tool that is clearly better stays first.
    let lesson = crate::find_lesson(&generation, "list the units").unwrap();
    feedback.learn("me@here", &lesson, taught, true, 0);
    assert_eq!(ask("me@here", "list the units")[0].entry.at.tool, "op_19");

    // Embeddings are stored, and no text.
    feedback.flush(std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(RelevanceFeedback::open(folder.path(), true).count(), 2);
    let stored = fs::read_to_string(folder.path().join("learned.json")).unwrap();
    assert!(
        stored.len() > 1_600 && !stored.contains("about"),
        "{stored}"
    );

    let changed = ["op_17: Moves a unit", "op_18: Carries a unit", DEPOT[2]];
    registry.commit(both(&changed), false, 0).unwrap();
    registry.embed_tools(2, &|_, _| true).unwrap();
    assert_eq!(gain(&ask("me@here", text)), None);
}

#[test]
fn requests_are_bounded_and_a_damaged_file_reads_as_empty() {
    let folder = tempdir().unwrap();
    let registry = open_with(folder.path(), false, false);
    let long = "x ".repeat(1_000);
    teach(
        &registry,
        "depot/op_17",
        &["a\nb", &long, "", "c", "d", "e"],
    );
    let path = folder.path().join("requests.json");
    let stored = fs::read_to_string(&path).unwrap();
    assert!(
        stored.contains(r#""a b""#) && !stored.contains(r#""e""#),
        "{stored}"
    );
    assert!(stored.len() < 600);
    fs::write(&path, &stored[..20]).unwrap();
    assert_eq!(registry.generation().unwrap().with_requests(), 0);
}
