use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::tempdir;

use super::*;
use crate::{MatchKind, plan};

const SERVERS: [&str; 3] = ["mail", "files", "cal"];
const NAMES: [&str; 5] = [
    "send_email",
    "list_files",
    "read_file",
    "createEvent",
    "delete.all",
];
const TEXTS: [&str; 4] = [
    "Send a mail",
    "Files of a folder",
    "An event in the calendar",
    "",
];

/// Generates one server and its tools, each a name and a text.
fn some_news() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (
        0..SERVERS.len(),
        vec((0..NAMES.len(), 0..TEXTS.len()), 0..5),
    )
}

fn lines(tools: &[(usize, usize)]) -> Vec<Value> {
    tools
        .iter()
        .map(|(name, text)| tool(&format!("{}: {}", NAMES[*name], TEXTS[*text])))
        .collect()
}

fn parsed(tools: &[(usize, usize)]) -> Vec<Tool> {
    let first = |at: &usize| tools.iter().find(|(name, _)| name == at).copied();
    let once: Vec<(usize, usize)> = (0..NAMES.len()).filter_map(|at| first(&at)).collect();
    lines(&once)
        .iter()
        .map(|json| Tool::parse(&json.to_string()).unwrap())
        .collect()
}

/// Returns every number that a reader can see.
fn answers(registry: &Registry) -> Vec<String> {
    let generation = registry.generation().unwrap();
    let queries = [
        "send mail",
        "file",
        "calender event",
        "delete all",
        "files +folder",
        "nonsense",
    ];
    let answer = |text: &&str| {
        let found = generation.search(&Query {
            limit: 20,
            ..Query::words(*text)
        });
        let hits: Vec<String> = found
            .hits
            .iter()
            .map(|hit| format!("{} {:.4}", hit.entry.at, hit.score))
            .collect();
        format!(
            "{text}: {hits:?} {} {:?} {:?}",
            found.total, found.unknown_words, found.nearest
        )
    };
    queries.iter().map(answer).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_series_of_commits_searches_like_a_fresh_index(series in vec(some_news(), 1..6)) {
        let (folder, fresh) = (tempdir().unwrap(), tempdir().unwrap());
        let registry = open(folder.path(), &SERVERS);
        let mut last = std::collections::BTreeMap::new();
        for (server, tools) in &series {
            let news = news_of(SERVERS[*server], &lines(tools));
            last.insert(*server, news.clone());
            registry.commit(vec![news], true, 1).unwrap();
        }
        let all = open(fresh.path(), &SERVERS);
        all.commit(last.into_values().collect(), false, 1).unwrap();
        prop_assert_eq!(held(&registry), held(&all));
        prop_assert_eq!(answers(&registry), answers(&all));
    }
}

proptest! {
    #[test]
    fn a_plan_leads_from_old_to_new(old in some_news(), new in some_news()) {
        let (old, new) = (parsed(&old.1), parsed(&new.1));
        let plan = plan(&old, &new);
        let mut kept: Vec<&str> = old.iter().map(Tool::name).collect();
        kept.retain(|name| !plan.removed.iter().any(|gone| gone == name));
        let mut after: Vec<&str> = kept.clone();
        after.extend(plan.added.iter().map(String::as_str));
        after.sort_unstable();
        let mut names: Vec<&str> = new.iter().map(Tool::name).collect();
        names.sort_unstable();
        prop_assert_eq!(after, names);
        for tool in &new {
            let before = old.iter().find(|known| known.name() == tool.name());
            let is_same = before.is_some_and(|known| known.digest() == tool.digest());
            prop_assert_eq!(plan.same.iter().any(|name| name == tool.name()), is_same);
        }
        prop_assert_eq!(plan.same.len() + plan.changed.len(), kept.len());
    }

    #[test]
    fn no_query_is_an_error(text in "\\PC{0,80}", filter in proptest::option::of("\\PC{0,8}")) {
        let registry = garden();
        let generation = registry.generation().unwrap();
        let query = Query { category: filter, ..Query::words(text) };
        let found = generation.search(&query);
        prop_assert!(found.hits.len() <= found.total);
        prop_assert_eq!(found.kind == MatchKind::Nothing, found.hits.is_empty());
        prop_assert_eq!(found.by_server.iter().map(|(_, tools)| tools).sum::<usize>(), found.total);
    }
}

fn garden() -> Registry {
    static GARDEN: std::sync::OnceLock<(tempfile::TempDir, Registry)> = std::sync::OnceLock::new();
    let (_, registry) = GARDEN.get_or_init(|| {
        let folder = tempdir().unwrap();
        let registry = open(folder.path(), &SERVERS);
        let tools = lines(&[(0, 0), (1, 1), (2, 1), (3, 2)]);
        registry
            .commit(vec![news_of("mail", &tools)], false, 1)
            .unwrap();
        (folder, registry)
    });
    registry.clone()
}
