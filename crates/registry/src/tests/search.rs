use std::sync::OnceLock;

use tempfile::{TempDir, tempdir};

use super::*;
use crate::{FindError, MatchKind, QueryText};

fn town() -> &'static Registry {
    static TOWN: OnceLock<(TempDir, Registry)> = OnceLock::new();
    let (_, registry) = TOWN.get_or_init(|| {
        let folder = tempdir().unwrap();
        let names = [
            "github",
            "ripgrep",
            "twilio",
            "stripe",
            "filesystem",
            "serena",
            "widgets",
            "media",
        ];
        let registry = open(folder.path(), &names);
        registry.commit(tools_of_the_town(), false, 1).unwrap();
        (folder, registry)
    });
    registry
}

fn tools_of_the_town() -> Vec<News> {
    let mut delete = tool("delete_file: Delete a file");
    delete["annotations"] = json!({"destructiveHint": true});
    let mut inspect = tool("inspect_file: Inspect a file");
    inspect["annotations"] = json!({"readOnlyHint": true});
    let read = tool("read_file: Read the complete contents of a file");
    let schema = json!({"type": "object", "properties": {
        "body": {"type": "string", "description": "Markdown of the ticket"},
        "state": {"enum": ["triaged", "blocked"]}}});
    let mut create = tool("create_issue: Create a new issue in a repository");
    create["inputSchema"] = schema;
    vec![
        news_of(
            "github",
            &[
                create,
                tool("list_issues: List issues"),
                tool("search_code: Search code in repositories"),
            ],
        ),
        news(
            "ripgrep",
            &["rg: Search within the code of a folder with regular expressions"],
        ),
        news(
            "twilio",
            &[
                "send_sms: Send an sms and await an acknowledgement",
                "send_email: Send a message by email",
            ],
        ),
        news(
            "stripe",
            &[
                "find_customer: Find one customer by name",
                "list_invoices: List invoices",
            ],
        ),
        news_of("filesystem", &[read.clone(), delete, inspect]),
        news_of("serena", &[read]),
        news("widgets", &["list: List every widget"]),
        news(
            "media",
            &[
                "convertImage: Wandelt Bilder um, für Café-Fotos",
                "搜索图片: 使用必应搜索图片",
            ],
        ),
    ]
}

/// Checks the first hits, in order.
#[track_caller]
fn check(query: &str, expected: &[&str]) {
    let hits = hits(town(), &Query::words(query));
    let first = &hits[..hits.len().min(expected.len())];
    assert_eq!(first, expected, "all: {hits:?}");
}

fn search(query: &Query) -> crate::SearchResult {
    town().generation().unwrap().search(query)
}

#[test]
fn scene_1_a_tool_that_searches_code_is_found_and_described_by_its_server() {
    let hits = hits(town(), &Query::words("Which tool can search within code?"));
    assert!(hits.contains(&"ripgrep/rg".to_owned()), "{hits:?}");
    check("ripgrep", &["ripgrep/rg"]);
    let generation = town().generation().unwrap();
    assert_eq!(generation.find("ripgrep").unwrap().at.tool, "rg");
}

#[test]
fn scene_2_words_match_words_and_not_their_beginnings() {
    check("look up a customer", &["stripe/find_customer"]);
    check("emails", &["twilio/send_email"]);
}

#[test]
fn scene_5_two_servers_may_have_one_name() {
    let generation = town().generation().unwrap();
    assert_eq!(
        generation.find("serena/read_file").unwrap().at.server,
        server("serena")
    );
    assert_eq!(
        generation.find("filesystem__read_file").unwrap().at.server,
        server("filesystem")
    );
    let Err(FindError::Ambiguous { candidates, .. }) = generation.find("read_file") else {
        panic!("the bare name is ambiguous");
    };
    let candidates: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    assert_eq!(candidates, ["filesystem/read_file", "serena/read_file"]);
    let mut both = hits(town(), &Query::words("read_file"));
    both.truncate(2);
    both.sort();
    assert_eq!(both, ["filesystem/read_file", "serena/read_file"]);
}

#[test]
fn words_are_found_wherever_a_tool_holds_them() {
    check("create issue", &["github/create_issue"]);
    check("issue creation", &["github/create_issue"]);
    check("e-mail", &["twilio/send_email"]);
    check("createissue", &["github/create_issue"]);
    check("triaged", &["github/create_issue"]);
    check("markdown ticket", &["github/create_issue"]);
    check("convert image", &["media/convertImage"]);
    check("cafe", &["media/convertImage"]);
    check("图片", &["media/搜索图片"]);
    check("github issues", &["github/list_issues"]);
    check("finances customer", &["stripe/find_customer"]);
}

#[test]
fn slips_and_beginnings_help_words_that_match_nothing() {
    check("custmoer", &["stripe/find_customer"]);
    check("invoces", &["stripe/list_invoices"]);
    check("ackno", &["twilio/send_sms"]);
}

#[test]
fn equal_fit_is_settled_by_danger_then_name() {
    let hits = hits(town(), &Query::words("file"));
    let place = |name: &str| hits.iter().position(|hit| hit == name);
    assert!(
        place("filesystem/inspect_file") < place("filesystem/delete_file"),
        "{hits:?}"
    );
    let generation = town().generation().unwrap();
    let destructive = |name: &str| generation.find(name).unwrap().is_destructive();
    assert!(destructive("delete_file") && !destructive("inspect_file") && !destructive("rg"));
}

#[test]
fn an_exact_name_answers_alone() {
    for name in [
        "github/create_issue",
        "create_issue",
        "mcp__github__create_issue",
        "rg",
    ] {
        let found = search(&Query::words(name));
        assert_eq!((found.kind, found.total), (MatchKind::Exact, 1), "{name}");
    }
    assert_eq!(
        search(&Query::words("create issue")).kind,
        MatchKind::Ranked
    );
}

#[test]
fn when_nothing_fits_it_says_what_is_unknown_and_shows_what_is_near() {
    for query in ["frobnicate", "zzyzx qwxj", "🎉"] {
        let found = search(&Query::words(query));
        assert_eq!(found.kind, MatchKind::Nearest, "{query}");
        assert_eq!((found.hits.len(), found.is_guess), (3, true), "{query}");
        let is_destructive = found.hits[0].entry.is_destructive();
        assert!(!is_destructive && !found.categories.is_empty(), "{query}");
    }
    assert_eq!(
        search(&Query::words("+frobnicate")).kind,
        MatchKind::Nothing,
        "a word that must be there"
    );
    let found = search(&Query::words("frobnicate the widget"));
    assert_eq!(found.kind, MatchKind::Nearest);
    assert_eq!(found.unknown_words, ["frobnicate"]);
    assert_eq!(found.hits[0].entry.at.to_string(), "widgets/list");
    assert!(found.is_guess);
    let categories = search(&Query::words("frobnicate")).categories;
    assert!(categories.iter().map(|(_, tools)| tools).sum::<usize>() > 10);
    assert_eq!(
        search(&Query::words("invoices of frobnicorp Ltd for Ms Smith")).kind,
        MatchKind::Ranked
    );
}

#[test]
fn the_nearest_tools_begin_with_a_harmless_one_and_hold_the_best_whatever_it_does() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["disk"]);
    let lines = [
        "delete_page: Delete a page",
        "remove_page: Remove a page",
        "wipe_page: Wipe a page",
        "purge_page: Purge a page",
        "rename_a_page_in_its_folder: Rename a page, wherever it is kept in its folder",
    ];
    registry
        .commit(vec![news("disk", &lines)], false, 0)
        .unwrap();
    let generation = registry.generation().unwrap();
    let found = generation.search(&Query::words("frobnicate the page"));
    assert_eq!(found.kind, MatchKind::Nearest);
    let destructive: Vec<bool> = found
        .hits
        .iter()
        .map(|hit| hit.entry.is_destructive())
        .collect();
    assert_eq!(destructive, [false, true, true]);
}

#[test]
fn a_tool_that_does_something_else_with_the_thing_is_a_guess() {
    let folder = tempdir().unwrap();
    let cook = [
        "list-recipes: List recipes",
        "create-recipe: Create a recipe",
        "replace-recipe-steps: Replace the steps of a recipe. An erased recipe stays.",
    ];
    let registry = open(folder.path(), &["cook", "sheets"]);
    let seat = "create_seat: Create a seat in a plan. It is not booked for two guests.";
    let commit = |cook: &[&str]| {
        let news = vec![news("cook", cook), news("sheets", &[seat])];
        registry.commit(news, false, 1).unwrap();
    };
    let is_guess = |text: &str| {
        let found = search_in(&registry, text);
        assert_eq!(found.kind, MatchKind::Ranked, "{text}");
        found.is_guess
    };
    commit(&cook);
    assert!(is_guess("erase the recipe"));
    assert!(is_guess("book a seat for two"));
    assert!(!is_guess("create a recipe"));
    assert!(!is_guess("list recipes"));
    commit(&[&cook[..], &["delete-recipe: Delete a recipe"]].concat());
    assert!(!is_guess("delete the recipe"));
}

#[test]
fn a_step_that_nothing_fits_for_sure_is_told_as_a_guess_beside_others_that_are_sure() {
    let steps = ["send an sms", "frobnicate the widget"].map(str::to_owned);
    let found = search(&Query {
        asked: QueryText::Steps(steps.to_vec()),
        limit: 2,
        ..Query::words("")
    });
    let hits = found.hits.iter();
    let hits: Vec<(usize, bool)> = hits.map(|hit| (hit.step, hit.is_guess)).collect();
    assert_eq!(hits, [(0, false), (1, true)]);
    assert!(!found.is_guess);
}

#[test]
fn a_tool_of_ours_is_found_where_a_request_is_for_it_alone() {
    let folder = tempdir().unwrap();
    let script = tool("run_script: Run a script that calls several tools, and answer its value");
    let options = crate::Options {
        built_in: vec![tool::Tool::parse(&script.to_string()).unwrap().into()],
        ..crate::Options::default()
    };
    let registry = Registry::open_with(folder.path(), rules(&["notes"]), options).unwrap();
    registry
        .commit(vec![news("notes", &["add: Write down a note"])], false, 0)
        .unwrap();
    let found = |text: &str| hits(&registry, &Query::words(text));
    assert_eq!(
        found("run a script that calls several tools"),
        ["proxy/run_script"]
    );
    assert_eq!(found("write a note"), ["notes/add"]);
    // One common word is not enough for a built-in tool.
    let found = found("run to the station and buy tickets");
    assert!(!found.contains(&"proxy/run_script".to_owned()), "{found:?}");
}

#[test]
fn a_filter_narrows_and_is_dropped_when_it_alone_is_in_the_way() {
    let within = |category: &str, text: &str| {
        search(&Query {
            category: Some(category.to_owned()),
            ..Query::words(text)
        })
    };
    let found = within("Source-Control", "search");
    assert!(
        found
            .hits
            .iter()
            .all(|hit| hit.entry.at.server == server("github"))
    );
    assert_eq!(
        within("FileSystem", "read a file").by_server,
        [(server("filesystem"), 3)]
    );
    let found = within("github", "customer");
    assert!(found.without_filter);
    assert_eq!(found.hits[0].entry.at.to_string(), "stripe/find_customer");
    assert_eq!(within("github", "what tools are there").total, 3);
    let tagged = Query {
        tags: vec!["SMS".to_owned()],
        ..Query::words("send")
    };
    assert_eq!(search(&tagged).by_server, [(server("twilio"), 2)]);
}

#[test]
fn a_browse_is_paged_and_a_selection_is_kept_in_order() {
    let all = held(town());
    let page = |offset| {
        hits(
            town(),
            &Query {
                offset,
                limit: 4,
                ..Query::words("*")
            },
        )
    };
    let pages: Vec<String> = (0..all.len()).step_by(4).flat_map(page).collect();
    assert_eq!(pages, all);
    let found = search(&Query::words("select:rg, github.list_issues,nowhere"));
    let names: Vec<String> = found
        .hits
        .iter()
        .map(|hit| hit.entry.at.to_string())
        .collect();
    assert_eq!(
        (found.kind, names),
        (
            MatchKind::Selected,
            vec!["ripgrep/rg".to_owned(), "github/list_issues".to_owned()]
        )
    );
    assert_eq!(found.unknown_words, ["nowhere"]);
}

#[test]
fn a_plus_word_must_match() {
    let found = search(&Query::words("list +invoices"));
    assert_eq!(found.total, 1);
    assert_eq!(
        search(&Query::words("list +nonesuch")).kind,
        MatchKind::Nothing
    );
}

#[test]
fn steps_share_the_limit() {
    let steps = ["send an sms", "list invoices", "frobnicate"]
        .map(str::to_owned)
        .to_vec();
    let found = search(&Query {
        asked: QueryText::Steps(steps),
        limit: 3,
        ..Query::words("")
    });
    let hits: Vec<(usize, String)> = found
        .hits
        .iter()
        .map(|hit| (hit.step, hit.entry.at.to_string()))
        .collect();
    assert_eq!(
        hits,
        [
            (0, "twilio/send_sms".to_owned()),
            (1, "stripe/list_invoices".to_owned())
        ]
    );
    assert_eq!(found.unknown_words, ["frobnicate"]);
    assert_eq!(found.unserved, ["frobnicate"]);
}

#[test]
fn a_request_of_several_steps_finds_a_tool_for_each_or_names_the_step() {
    let found = search(&Query::words(
        "read the customer list, then send each an SMS",
    ));
    let has = |name: &str| {
        found
            .hits
            .iter()
            .any(|hit| hit.entry.at.to_string() == name)
    };
    assert!(
        has("stripe/find_customer") && has("twilio/send_sms"),
        "{found:?}"
    );
    assert!(found.unserved.is_empty());
    let found = search(&Query::words("find one customer, then translate the poem"));
    assert_eq!(found.hits[0].entry.at.to_string(), "stripe/find_customer");
    assert_eq!(found.unserved, ["then translate the poem"]);
    let found = search(&Query::words("paint the wall, then translate the poem"));
    assert!(found.unserved.is_empty(), "{found:?}");
}

#[test]
fn a_tool_with_the_requested_tag_is_found_whatever_the_words_say() {
    let tagged = |text: &str| {
        search(&Query {
            tags: vec!["SMS".to_owned()],
            ..Query::words(text)
        })
    };
    for words in ["frobnicate", "find a customer"] {
        let found = tagged(words);
        assert!(found.is_guess && !found.without_filter, "{found:?}");
        assert_eq!(found.by_server, [(server("twilio"), 2)]);
    }
    assert!(tagged("+frobnicate").hits.is_empty());
}

#[test]
fn strange_queries_are_answered() {
    let long = "customer ".repeat(1_200);
    for query in [
        long.as_str(),
        "customer '; DROP TABLE tools; --",
        "(customer.*)[a-z]{3,",
        "customer \u{0}\u{7}\u{1b}[31m 🎉",
        "CUSTOMER!!!",
    ] {
        check(query, &["stripe/find_customer"]);
    }
    let words_alone = "can you please do this for me ".repeat(300);
    let pieces = "fetch it, then mail it and ".repeat(400);
    for query in [
        "+",
        "+++",
        "\"",
        "--",
        "select:",
        "select:,,",
        "a",
        "\u{0}",
        "*:*",
        ".",
        "🎉🎉",
        "\\",
        "\r\n\t",
        "\u{202e}customer\u{202c}",
        "ابحث عن ملف",
        "חפש קובץ",
        "e\u{301}\u{301}\u{301}",
        "a/b",
        "/",
        ", and then",
        &words_alone,
        &pieces,
        &"界".repeat(10_000),
        &"x".repeat(10_000),
        &"a b ".repeat(2_500),
    ] {
        let found = search(&Query::words(query));
        assert_eq!(
            found.kind == MatchKind::Nothing,
            found.hits.is_empty(),
            "{query:?}"
        );
        assert!(found.hits.len() <= 5, "{query:?}");
    }
}

#[test]
fn an_order_depends_on_nothing_but_the_tools() {
    let texts = [
        "create issue",
        "Fetch the page, summarise it and mail it to the team",
        "mail",
    ];
    let orders = || {
        let (_folder, registry) = square();
        let generation = registry.generation().unwrap();
        texts.map(|text| {
            let found = generation.search(&Query::words(text));
            let hits = found.hits.iter();
            hits.map(|hit| {
                format!(
                    "{} {:?} {} {:?}",
                    hit.entry.at, hit.score, hit.step, hit.also
                )
            })
            .collect::<Vec<_>>()
        })
    };
    let first = orders();
    for _ in 0..4 {
        assert_eq!(orders(), first);
    }
}

#[test]
fn without_embeddings_a_learned_request_lifts_its_tool_by_its_words() {
    let (folder, registry) = square();
    let generation = registry.generation().unwrap();
    let feedback = std::sync::Arc::new(crate::RelevanceFeedback::open(folder.path(), false));
    let text = "create issue";
    let lesson = crate::find_lesson(&generation, "Create the issue with s3cr3t-t0ken zzyzx");
    let lesson = lesson.unwrap();
    assert_eq!(lesson, "create the issue with");
    assert_eq!(crate::find_lesson(&generation, "zzyzx, please"), None);
    let query = Query {
        why: true,
        learned: Some(crate::Learned {
            feedback: std::sync::Arc::clone(&feedback),
            whose: "me@here".to_owned(),
        }),
        ..Query::words(text)
    };
    let order = || hits(&registry, &query);
    let before = order();
    let tool = generation.find(&before[1]).unwrap();
    feedback.learn("me@here", &lesson, tool, true, 0);
    assert_eq!(order()[0], before[1]);
    let found = generation.search(&query);
    let evidence = &found.hits[0].evidence;
    let learned = evidence.iter().find(|it| it.label.contains("calls after"));
    assert!(learned.unwrap().amount > 0.2, "{evidence:?}");
    let named = |it: &crate::Evidence| it.label == "\"create\"" && it.amount > 0.0;
    assert!(evidence.iter().any(named), "{evidence:?}");
    feedback.learn("me@here", &lesson, tool, false, 0);
    assert_eq!(order(), before);
}

#[test]
fn words_of_the_trade_and_nicknames_of_servers_are_understood() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["github", "kubernetes", "shop"]);
    let tools = vec![
        news(
            "github",
            &[
                "open_pull_request: Open a pull request",
                "list_things: List things",
            ],
        ),
        news("kubernetes", &["list_pods: List the pods of a cluster"]),
        news("shop", &["list_orders: List orders"]),
    ];
    registry.commit(tools, false, 1).unwrap();
    let first = |text: &str| hits(&registry, &Query::words(text))[0].clone();
    assert_eq!(first("open PR"), "github/open_pull_request");
    assert_eq!(first("gh list"), "github/list_things");
    assert_eq!(first("k8s list"), "kubernetes/list_pods");
    let coarse = Query {
        category: Some("integration".to_owned()),
        ..Query::words("list")
    };
    assert!(hits(&registry, &coarse).contains(&"kubernetes/list_pods".to_owned()));
    let other = Query {
        category: Some("media".to_owned()),
        ..Query::words("list")
    };
    assert!(registry.generation().unwrap().search(&other).without_filter);
}

#[test]
fn a_request_that_names_a_product_prefers_every_server_of_it() {
    let folder = tempdir().unwrap();
    let mut rules = rules(&["a", "b", "c"]);
    rules.servers[1].program = "@corp/zither-mcp".to_owned();
    let registry = Registry::open(folder.path(), rules).unwrap();
    let mut all = ["a", "b", "c"].map(|name| news(name, &["add_song: Add a song"]));
    let reported = all[2].outcome.as_mut().unwrap();
    reported.server_name = "Zither MCP Server".to_owned();
    registry.commit(all.into(), false, 1).unwrap();
    let found = search_in(&registry, "add a song with the zither");
    let also = found.hits[0].also.iter().map(ToString::to_string);
    assert_eq!(found.hits[0].entry.at.to_string(), "b/add_song");
    assert_eq!(also.collect::<Vec<_>>(), ["c/add_song", "a/add_song"]);
}

fn search_in(registry: &Registry, text: &str) -> crate::SearchResult {
    registry.generation().unwrap().search(&Query::words(text))
}

fn square() -> (TempDir, Registry) {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["gitea", "github", "gitlab", "mail", "web"]);
    let parameters = |names: &[&str]| {
        let properties = names
            .iter()
            .map(|it| ((*it).to_owned(), json!({"type": "string"})));
        json!({"type": "object", "properties": properties.collect::<serde_json::Map<_, _>>()})
    };
    let issue = |line: &str, names: &[&str]| {
        let mut tool = tool(line);
        tool["inputSchema"] = parameters(names);
        tool
    };
    let usual = ["owner", "repo", "title"];
    registry
        .commit(
            vec![
                news_of(
                    "gitea",
                    &[issue(
                        "createIssue: Create an issue in a repository",
                        &usual,
                    )],
                ),
                news_of(
                    "github",
                    &[issue(
                        "create_issue: Create a new issue in a repository",
                        &usual,
                    )],
                ),
                news_of(
                    "gitlab",
                    &[issue(
                        "create_issue: File a ticket for the support team",
                        &["key"],
                    )],
                ),
                news("mail", &["send_mail: Send a mail to people"]),
                news(
                    "web",
                    &[
                        "fetch_page: Fetch a web page",
                        "summarize: Summarise a text",
                    ],
                ),
            ],
            false,
            1,
        )
        .unwrap();
    (folder, registry)
}

#[test]
fn the_same_tool_on_several_servers_takes_one_line() {
    let (_folder, registry) = square();
    let found = registry
        .generation()
        .unwrap()
        .search(&Query::words("create issue repository"));
    let lines: Vec<String> = found
        .hits
        .iter()
        .map(|hit| {
            format!(
                "{} {:?}",
                hit.entry.at,
                hit.also.iter().map(ToString::to_string).collect::<Vec<_>>()
            )
        })
        .collect();
    assert_eq!(lines[0], r#"gitea/createIssue ["github/create_issue"]"#);
    assert!(
        lines.contains(&"gitlab/create_issue []".to_owned()),
        "{lines:?}"
    );
    assert_eq!(found.total, 3);
}

#[test]
fn a_request_for_several_things_gets_hits_for_each() {
    let (_folder, registry) = square();
    let text = "Fetch the page, summarise it and mail it to the team";
    let found = registry.generation().unwrap().search(&Query {
        limit: 3,
        ..Query::words(text)
    });
    assert_eq!(
        found.parts,
        ["Fetch the page", "summarise it", "and mail it to the team"]
    );
    let mut hits: Vec<(usize, String)> = found
        .hits
        .iter()
        .map(|hit| (hit.step, hit.entry.at.to_string()))
        .collect();
    hits.sort();
    let expected = [
        (0, "web/fetch_page"),
        (1, "web/summarize"),
        (2, "mail/send_mail"),
    ];
    assert_eq!(hits, expected.map(|(step, name)| (step, name.to_owned())));

    let one = registry
        .generation()
        .unwrap()
        .search(&Query::words("fetch a page"));
    assert!(one.parts.is_empty());
}
