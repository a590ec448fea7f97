use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::tempdir;

use super::*;
use crate::{MatchKind, Options};

fn understanding(folder: &Path, names: &[&str]) -> Registry {
    let options = Options {
        embeds: true,
        ..Options::default()
    };
    Registry::open_with(folder, rules(names), options).unwrap()
}

fn understand(registry: &Registry) -> usize {
    registry.embed_tools(2, &|_, _| true).unwrap()
}

const REPO: [&str; 2] = [
    "status: Show the working tree state of files",
    "push: Upload commits to the remote",
];
const PLAYER: [&str; 2] = [
    "next: Skip to the following song",
    "louder: Turn the volume up",
];

fn both() -> Vec<News> {
    vec![news("repo", &REPO), news("player", &PLAYER)]
}

#[test]
fn a_request_finds_its_tool_without_a_word_in_common() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["repo", "player"]);
    registry.commit(both(), false, 0).unwrap();
    assert_eq!(understand(&registry), 4);
    for (request, wanted) in [
        ("upload what I committed", "repo/push"),
        ("make the music stronger", "player/louder"),
    ] {
        let found = hits(&registry, &Query::words(request));
        assert_eq!(found.first().map(String::as_str), Some(wanted), "{request}");
    }
    let words = open(folder.path(), &["repo", "player"]);
    let found = words
        .generation()
        .unwrap()
        .search(&Query::words("make the music stronger"));
    assert_eq!(found.kind, MatchKind::Nearest);
}

const FOREIGN: [&str; 3] = [
    "book a flight to Lisbon",
    "frobnicate the widget",
    "what does this mole mean for my health",
];

#[test]
fn of_a_small_catalogue_the_nearest_tools_are_shown_where_none_fits() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["repo", "player"]);
    registry.commit(both(), false, 0).unwrap();
    understand(&registry);
    for request in FOREIGN {
        let found = registry
            .generation()
            .unwrap()
            .search(&Query::words(request));
        assert_eq!(found.kind, MatchKind::Nearest, "{request}");
        assert_eq!((found.hits.len(), found.total), (3, 3), "{request}");
        assert!(found.is_guess && found.hits.iter().all(|hit| hit.is_guess));
    }
}

#[test]
fn the_only_tool_of_a_request_is_sure_among_many_others() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["papers", "many"]);
    let many: Vec<String> = (0..200)
        .map(|at| format!("song_{at}: Play song number {at}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let papers = ["read_paper: Read the text of a paper on arXiv"];
    let news = vec![news("papers", &papers), news("many", &many)];
    registry.commit(news, false, 0).unwrap();
    understand(&registry);
    let generation = registry.generation().unwrap();
    let found = generation.search(&Query::words("read arXiv 1706.03762"));
    assert_eq!((found.kind, found.is_guess), (MatchKind::Ranked, false));
}

#[test]
fn of_a_large_catalogue_what_is_not_near_is_named_and_not_shown() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["repo", "player", "many"]);
    let many: Vec<String> = (0..100)
        .map(|at| format!("song_{at}: Play song number {at}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let news = both().into_iter().chain([news("many", &many)]).collect();
    registry.commit(news, false, 0).unwrap();
    understand(&registry);
    let generation = registry.generation().unwrap();
    let found = generation.search(&Query::words("what does this mole mean for my health"));
    assert_eq!((found.kind, found.nearest.len()), (MatchKind::Nothing, 3));
}

pub(super) const MEMORY: [&str; 9] = [
    "create_entities: Create multiple new entities in the knowledge graph",
    "create_relations: Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
    "add_observations: Add new observations to existing entities in the knowledge graph",
    "delete_entities: Delete multiple entities and their associated relations from the knowledge graph",
    "delete_observations: Delete specific observations from entities in the knowledge graph",
    "delete_relations: Delete multiple relations from the knowledge graph",
    "read_graph: Read the entire knowledge graph",
    "search_nodes: Search for nodes in the knowledge graph based on a query",
    "open_nodes: Open specific nodes in the knowledge graph by their names",
];

#[test]
fn a_plain_need_of_the_only_server_is_not_refused() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["memory"]);
    registry
        .commit(vec![news("memory", &MEMORY)], false, 0)
        .unwrap();
    understand(&registry);
    for (request, wanted) in [
        ("remember that I like tea", "memory/add_observations"),
        ("remember something", "memory/add_observations"),
        ("store a fact about the user", "memory/add_observations"),
        ("save a note about the project", "memory/add_observations"),
        ("forget that", "memory/delete_observations"),
        ("wipe what I said", "memory/delete_observations"),
    ] {
        let found = hits(&registry, &Query::words(request));
        assert!(found.contains(&wanted.to_owned()), "{request}: {found:?}");
        // The first uncertain hit is not destructive.
        assert!(!found[0].contains("/delete_"), "{request}: {found:?}");
    }
    // A sure one may be.
    let generation = registry.generation().unwrap();
    let found = generation.search(&Query::words("forget what I told you"));
    assert!(!found.is_guess && found.hits[0].entry.is_destructive());
}

#[test]
fn a_guess_elsewhere_does_not_hide_what_is_nearest_where_the_asker_looks() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["memory", "repo"]);
    let all = vec![news("memory", &MEMORY), news("repo", &REPO)];
    registry.commit(all, false, 0).unwrap();
    understand(&registry);
    let within = |server: &str, text: &str| {
        let query = Query {
            server: Some(server.to_owned()),
            ..Query::words(text)
        };
        registry.generation().unwrap().search(&query)
    };
    let found = within("memory", "remember that I like tea");
    assert!(!found.without_filter && found.is_guess);
    let found = within("memory", "upload commits to the remote");
    assert!(found.without_filter, "{found:?}");
}

#[test]
fn nothing_is_encoded_twice_and_what_is_gone_is_forgotten() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["repo", "player"]);
    registry.commit(both(), false, 0).unwrap();
    assert_eq!(understand(&registry), 4);
    assert_eq!(understand(&registry), 0);
    let size = fs::metadata(folder.path().join("meaning.bin"))
        .unwrap()
        .len();
    let changed = [REPO[0], "push: Send commits to the server"];
    registry
        .commit(vec![news("repo", &changed)], true, 0)
        .unwrap();
    assert!(registry.generation().unwrap().unembedded() > 0);
    assert_eq!(understand(&registry), 1);
    assert_eq!(registry.generation().unwrap().unembedded(), 0);
    assert_eq!(
        fs::metadata(folder.path().join("meaning.bin"))
            .unwrap()
            .len(),
        size
    );
}

#[test]
fn another_handle_sees_what_was_understood_at_its_next_question() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["repo", "player"]);
    let other = understanding(folder.path(), &["repo", "player"]);
    registry.commit(both(), false, 0).unwrap();
    assert!(other.generation().unwrap().unembedded() > 0);
    understand(&registry);
    assert_eq!(other.generation().unwrap().unembedded(), 0);
}

#[test]
fn it_can_be_ended_between_two_batches_and_taken_up_again() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["repo", "player"]);
    let many = (0..70).map(|at| format!("tool_{at}: Do the thing number {at}"));
    let many: Vec<String> = many.collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    registry
        .commit(vec![news("repo", &many)], false, 0)
        .unwrap();
    let heard = AtomicUsize::new(0);
    let made = registry.embed_tools(1, &|done, all| {
        assert_eq!(all, 70);
        heard.store(done, Ordering::Relaxed);
        false
    });
    let made = made.unwrap();
    assert!((1..70).contains(&made), "{made}");
    assert_eq!(heard.load(Ordering::Relaxed), made);
    let embedded = registry.generation().unwrap().embedded();
    assert_eq!(embedded, Some((made, 70)));
    assert_eq!(understand(&registry), 70 - made);
}

#[test]
fn an_encoder_that_was_let_go_comes_back() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["repo", "player"]);
    registry.commit(both(), false, 0).unwrap();
    understand(&registry);
    crate::let_encoder_go(std::time::Duration::ZERO);
    let found = hits(&registry, &Query::words("make the music stronger"));
    assert_eq!(found.first().map(String::as_str), Some("player/louder"));
}

#[test]
fn what_a_recipe_says_of_a_server_helps_to_find_it() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["memory", "archive"]);
    let same = ["open_nodes: Open nodes by their names"];
    let news = vec![news("memory", &same), news("archive", &same)];
    registry.commit(news, false, 0).unwrap();
    // Two tools, and the recipe's description of one server.
    assert_eq!(understand(&registry), 3);
    let found = hits(
        &registry,
        &Query::words("open nodes, recall what I remember"),
    );
    assert_eq!(found.first().map(String::as_str), Some("memory/open_nodes"));
}

#[test]
fn a_required_word_and_a_filter_hold_whatever_a_tool_means() {
    let folder = tempdir().unwrap();
    let registry = understanding(folder.path(), &["repo", "player"]);
    registry.commit(both(), false, 0).unwrap();
    understand(&registry);
    let found = hits(&registry, &Query::words("make it louder +song"));
    assert_eq!(found, ["player/next"]);
    let query = Query {
        server: Some("repo".to_owned()),
        ..Query::words("upload what I committed")
    };
    let found = hits(&registry, &query);
    assert_eq!(found.first().map(String::as_str), Some("repo/push"));
    assert!(found.iter().all(|name| name.starts_with("repo/")));
}
