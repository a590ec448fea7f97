//! Prompts, resources, templates and completions, from servers to clients of both eras.

use jsonrpc::ProtocolError;
use tokio::time::Instant;
use tool::{
    Capability,
    ItemKind::{Prompt, Resource, Template},
};

use super::*;
use crate::{
    policy::{ClientPolicies, ClientRule},
    survey,
    tests::peer::TestClient,
};

fn everything() -> Memory {
    let result = |params: &Value| Ok(json!({"got": params, "odd": 1.0}));
    Memory::default()
        .item(
            "git",
            Prompt,
            &json!({"name": "summarize", "title": "S", "icons": [{"src": "x"}], "_meta": {"a": 1}}),
        )
        .item("git", Prompt, &json!({"name": "code review"}))
        .item("notes", Prompt, &json!({"name": "code review"}))
        .item(
            "notes",
            Resource,
            &json!({"uri": "notes://one", "name": "one"}),
        )
        .item(
            "notes",
            Resource,
            &json!({"uri": "file:///README.md", "name": "mine"}),
        )
        .item(
            "git",
            Resource,
            &json!({"uri": "file:///README.md", "name": "other"}),
        )
        .item(
            "notes",
            Template,
            &json!({"uriTemplate": "notes://{id}/text", "name": "t"}),
        )
        .item(
            "notes",
            Template,
            &json!({"uriTemplate": "{+any}", "name": "t"}),
        )
        .can("notes", Capability::Completions)
        .can("notes", Capability::Subscribe)
        .says("git", "prompts/get", result)
        .says("notes", "prompts/get", result)
        .says("git", "resources/read", result)
        .says("notes", "resources/read", result)
        .says("notes", "completion/complete", result)
}

fn texts(list: &Value, key: &str) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|it| it[key].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn requests_name_the_mistakes_of_a_configuration_that_cannot_be_used() {
    let scene = Memory::default().open().await;
    let mistakes = "config.toml:3:1: unknown key `comand`".to_owned();
    scene.gateway.note_config_mistakes(Some(mistakes));
    let (mut peer, _) = TestClient::open(&scene, "test").await;
    for (method, params) in [
        ("resources/read", json!({"uri": "notes://one"})),
        ("resources/subscribe", json!({"uri": "notes://one"})),
        ("prompts/get", json!({"name": "git__summarize"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
        ),
    ] {
        let answer = peer.ask(method, params).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("error misconfigured: "), "{message}");
        assert!(message.contains("comand"), "{message}");
    }
    let listed = peer.ask("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"], json!([]), "{listed}");
}

#[tokio::test]
async fn prompts_are_listed_under_names_of_ours_and_got_under_their_own() {
    let scene = everything().open().await;
    let (mut peer, opened) = TestClient::open(&scene, "test").await;
    assert_eq!(
        opened["capabilities"]["prompts"],
        json!({"listChanged": true})
    );
    let listed = peer.ask("prompts/list", json!({})).await["result"].clone();
    let names = texts(&listed["prompts"], "name");
    assert_eq!(
        names,
        [
            "git__summarize",
            "git__code_review-7abada",
            "notes__code_review-7abada"
        ]
    );
    let first =
        json!({"name": "git__summarize", "title": "S", "icons": [{"src": "x"}], "_meta": {"a": 1}});
    assert_eq!(listed["prompts"][0], first);
    assert_eq!(listed.as_object().unwrap().len(), 1, "{listed}");
    let mut check = async |asked: &str, arguments: Value, expected: Value| {
        let params = json!({"name": asked, "arguments": arguments});
        let said = peer.ask("prompts/get", params).await;
        let (key, value) = expected.as_object().unwrap().iter().next().unwrap();
        match key.as_str() {
            "own" => {
                assert_eq!(said["result"]["got"]["name"], *value, "{said}");
                assert_eq!(said["result"]["got"]["arguments"], arguments);
            }
            _ => {
                assert_eq!(said["error"]["code"], -32602, "{said}");
                let message = said["error"]["message"].as_str().unwrap();
                assert!(message.contains(value.as_str().unwrap()), "{message}");
            }
        }
    };
    check(
        "git__summarize",
        json!({"a": "1"}),
        json!({"own": "summarize"}),
    )
    .await;
    check("git/summarize", json!({}), json!({"own": "summarize"})).await;
    check("summarize", json!({}), json!({"own": "summarize"})).await;
    check("Git__Summarize", json!({}), json!({"own": "summarize"})).await;
    for name in &names[1..] {
        check(name, json!({}), json!({"own": "code review"})).await;
    }
    check(
        "code review",
        json!({}),
        json!({"error": "git__code_review-7abada, notes__code"}),
    )
    .await;
    check(
        "git__sumarize",
        json!({}),
        json!({"error": "Did you mean git__summarize?"}),
    )
    .await;
}

#[tokio::test]
async fn resources_keep_their_uris_and_a_read_finds_its_server() {
    let link = json!({"content": [{"type": "resource_link", "uri": "file:///README.md", "name": "x"},
        {"type": "resource", "resource": {"uri": "git+made-up", "text": "x"}}]});
    let tool = json!({"name": "link", "inputSchema": {"type": "object"}});
    let scene = everything()
        .tool("git", &tool, move |_| Ok(link.clone()))
        .open()
        .await;
    let (mut peer, opened) = TestClient::open(&scene, "test").await;
    assert!(
        opened["capabilities"]["resources"]["listChanged"]
            .as_bool()
            .unwrap()
    );
    let listed = peer.ask("resources/list", json!({})).await;
    let uris = texts(&listed["result"]["resources"], "uri");
    assert_eq!(
        uris,
        [
            "proxy://git/file:///README.md",
            "notes://one",
            "proxy://notes/file:///README.md"
        ]
    );
    let listed = peer.ask("resources/templates/list", json!({})).await;
    let templates = texts(&listed["result"]["resourceTemplates"], "uriTemplate");
    assert_eq!(templates, ["notes://{id}/text", "{+any}"]);
    let mut check = async |uri: &str, expected: &str| {
        let said = peer.ask("resources/read", json!({ "uri": uri })).await;
        assert!(said["error"].is_null(), "{uri}: {said}");
        let got = said["result"]["got"]["uri"].as_str().unwrap();
        let last = scene.calls().pop().unwrap();
        let server = last.split(' ').next().unwrap();
        assert_eq!(format!("{server} {got}"), expected);
    };
    check("notes://one", "notes notes://one").await;
    check("proxy://git/file:///README.md", "git file:///README.md").await;
    check("proxy://notes/any:thing", "notes any:thing").await;
    check("notes://7/text", "notes notes://7/text").await;
    check("notes://elsewhere", "notes notes://elsewhere").await;
    for uri in [
        "file:///README.md",
        "git+made-up",
        "proxy://nobody/a:b",
        "http://x",
    ] {
        let said = peer.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(said["error"]["code"], -32002, "{uri} {said}");
        assert_eq!(said["error"]["data"]["uri"], uri);
    }
    // A resource link in a tool's result can be read from then on, but only by this client.
    let call = json!({"name": EXECUTE, "arguments": {"tool_name": "git/link", "tool_input": {}}});
    peer.ask("tools/call", call).await;
    let mut check = async |uri: &str, expected: &str| {
        let said = peer.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(said["result"]["got"]["uri"], uri, "{said}");
        assert!(scene.calls().pop().unwrap().starts_with(expected));
    };
    check("file:///README.md", "git resources/read").await;
    check("git+made-up", "git resources/read").await;
    let (mut other, _) = TestClient::open(&scene, "other").await;
    let said = other
        .ask("resources/read", json!({"uri": "git+made-up"}))
        .await;
    assert_eq!(said["error"]["code"], -32002);
}

#[tokio::test]
async fn a_modern_client_gets_the_shapes_of_its_revision() {
    let scene = everything().open().await;
    let mut peer = TestClient::modern(&scene);
    let discovered = peer.ask("server/discover", json!({})).await;
    assert!(
        discovered["result"]["capabilities"]["completions"].is_object(),
        "{discovered}"
    );
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let result = peer.ask(method, json!({})).await["result"].clone();
        assert!(result[member].is_array(), "{method} {result}");
        assert_eq!(result["resultType"], "complete");
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(60_000), &json!("private"))
        );
    }
    let read = peer
        .ask("resources/read", json!({"uri": "notes://one"}))
        .await;
    assert_eq!(read["result"]["ttlMs"], 0);
    assert_eq!(read["result"]["got"], json!({"uri": "notes://one"}));
    let params = json!({"name": "summarize", "inputResponses": {"a": {}}});
    let got = peer.ask("prompts/get", params).await;
    assert_eq!(got["result"]["got"], json!({"name": "summarize"}));
    assert_eq!(got["result"]["resultType"], "complete");
    let none = peer
        .ask("resources/read", json!({"uri": "x:nothing"}))
        .await;
    assert_eq!(
        (&none["error"]["code"], &none["error"]["data"]["uri"]),
        (&json!(-32602), &json!("x:nothing"))
    );
    for method in ["ping", "resources/subscribe"] {
        assert_eq!(
            peer.ask(method, json!({})).await["error"]["code"],
            -32601,
            "{method}"
        );
    }
}

#[tokio::test]
async fn what_no_server_has_is_not_announced_and_lists_of_it_are_empty() {
    let scene = notes().open().await;
    let (mut peer, opened) = TestClient::open(&scene, "test").await;
    for capability in ["prompts", "resources", "completions"] {
        assert!(opened["capabilities"][capability].is_null(), "{opened}");
    }
    let listed = peer.ask("prompts/list", json!({})).await;
    assert_eq!(listed["result"], json!({"prompts": []}));
    let mut modern = TestClient::modern(&scene);
    let refused = modern.ask("prompts/list", json!({})).await;
    assert_eq!(refused["error"]["code"], -32601);
}

#[tokio::test]
async fn a_client_sees_nothing_of_a_server_that_it_does_not_see() {
    let rule = |deny: &[&str], hides_resources| ClientRule {
        deny: deny.iter().map(ToString::to_string).collect(),
        hides_resources,
        ..ClientRule::default()
    };
    let rules = [("blind", rule(&["notes"], false)), ("off", rule(&[], true))];
    let rules = rules.map(|(name, rule)| (name.to_owned(), rule));
    let scene = everything()
        .open_with(ClientPolicies::new(rules).unwrap())
        .await;
    let (mut blind, _) = TestClient::open(&scene, "blind").await;
    let listed = blind.ask("prompts/list", json!({})).await;
    assert_eq!(listed["result"]["prompts"].as_array().unwrap().len(), 2);
    let listed = blind.ask("resources/list", json!({})).await;
    assert_eq!(
        texts(&listed["result"]["resources"], "uri"),
        ["file:///README.md"]
    );
    for uri in ["notes://one", "proxy://notes/notes://one", "notes://7/text"] {
        let said = blind.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(said["error"]["code"], -32002, "{uri}");
        let message = said["error"]["message"].as_str().unwrap().replace(uri, "");
        assert!(!message.contains("notes"), "{message}");
    }
    let said = blind
        .ask("prompts/get", json!({"name": "notes__code_review-7abada"}))
        .await;
    assert_eq!(said["error"]["code"], -32602);
    let (mut off, opened) = TestClient::open(&scene, "off").await;
    assert!(opened["capabilities"]["resources"].is_null());
    assert_eq!(
        off.ask("resources/list", json!({})).await["result"],
        json!({"resources": []})
    );
    assert_eq!(scene.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn arguments_are_completed_by_the_server_that_has_them() {
    let scene = everything().open().await;
    let (mut peer, _) = TestClient::open(&scene, "test").await;
    let argument = json!({"name": "id", "value": "a"});
    let mut complete = async |reference: Value| {
        let params =
            json!({"ref": reference, "argument": argument, "context": {"arguments": {"x": "1"}}});
        peer.ask("completion/complete", params).await
    };
    let said = complete(json!({"type": "ref/prompt", "name": "notes__code_review-7abada"})).await;
    let got = &said["result"]["got"];
    assert_eq!(
        got["ref"],
        json!({"type": "ref/prompt", "name": "code review"}),
        "{said}"
    );
    assert_eq!(
        (&got["argument"], &got["context"]),
        (&argument, &json!({"arguments": {"x": "1"}}))
    );
    for uri in ["notes://{id}/text", "proxy://notes/notes://{id}/text"] {
        let said = complete(json!({"type": "ref/resource", "uri": uri})).await;
        assert_eq!(
            said["result"]["got"]["ref"]["uri"], "notes://{id}/text",
            "{said}"
        );
    }
    // A server without completions gets no request.
    let said = complete(json!({"type": "ref/prompt", "name": "summarize"})).await;
    assert_eq!(said["result"]["completion"]["values"], json!([]));
    for wrong in [
        json!({"type": "ref/prompt", "name": "x"}),
        json!({"type": "ref/tool"}),
        json!(7),
    ] {
        assert_eq!(complete(wrong).await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn long_lists_come_in_pages_and_a_cursor_of_another_list_is_none() {
    let mut memory = Memory::default();
    for number in 0..1_200 {
        memory = memory.item("many", Prompt, &json!({"name": format!("p{number}")}));
        memory = memory.item("many", Resource, &json!({"uri": format!("a:{number}")}));
    }
    let scene = memory.open().await;
    let (mut peer, _) = TestClient::open(&scene, "test").await;
    let mut names = Vec::new();
    let mut params = json!({});
    let mut cursors = Vec::new();
    loop {
        let result = peer.ask("prompts/list", params).await["result"].clone();
        names.extend(texts(&result["prompts"], "name"));
        let Some(cursor) = result["nextCursor"].as_str() else {
            break;
        };
        cursors.push(cursor.to_owned());
        params = json!({ "cursor": cursor });
    }
    let expected: Vec<String> = (0..1_200).map(|n| format!("many__p{n}")).collect();
    assert_eq!((names, cursors.len()), (expected, 2));
    for (method, cursor) in [
        ("prompts/list", json!("")),
        ("prompts/list", json!(7)),
        ("resources/list", json!(cursors[0])),
    ] {
        let said = peer.ask(method, json!({ "cursor": cursor })).await;
        assert_eq!(said["error"]["code"], -32602, "{method} {cursor}");
    }
    scene.add("many", Prompt, &json!({"name": "new"}));
    let keeping = tokio::spawn(survey::keep_fresh(Arc::clone(&scene.gateway.catalog)));
    peer.hear("notifications/prompts/list_changed").await;
    let said = peer
        .ask("prompts/list", json!({"cursor": cursors[0]}))
        .await;
    assert_eq!(said["error"]["code"], -32602);
    keeping.abort();
}

#[tokio::test]
async fn a_list_that_cannot_be_read_after_a_change_is_marked_and_read_again_later() {
    let failures = std::sync::atomic::AtomicU32::new(3);
    let read_list = move |_: &Value| {
        let order = std::sync::atomic::Ordering::Relaxed;
        let left = failures.fetch_update(order, order, |it| it.checked_sub(1));
        let error = json!({"code": -32603, "message": "busy"});
        let error = serde_json::value::to_raw_value(&error).unwrap();
        let failed = CallError::Protocol {
            server: "git".parse().unwrap(),
            error: ProtocolError::read(&error),
        };
        left.map_or(Ok(Value::Null), |_| Err(failed))
    };
    let memory = Memory::default().item("git", Prompt, &json!({"name": "old"}));
    let scene = memory.says("git", "tools/list", read_list).open().await;
    let keeping = tokio::spawn(survey::keep_fresh(Arc::clone(&scene.gateway.catalog)));
    let record = || scene.gateway.catalog.registry.catalog().servers[0].clone();
    let mut looks = scene.looks.subscribe();
    scene.add("git", Prompt, &json!({"name": "new"}));
    for failed in 1..=3 {
        looks.wait_for(|it| it.len() == failed).await.unwrap();
        assert!(record().stale.is_some_and(|why| why.why.contains("busy")));
        scene.note_change("git".parse().unwrap());
    }
    let mut lists = scene.gateway.catalog.lists_changed.subscribe();
    while record().stale.is_some() {
        lists.changed().await.unwrap();
    }
    assert_eq!(record().offer.unwrap().prompts.count, 2);
    let waits: Vec<u64> = scene.looks.borrow().iter().map(Duration::as_secs).collect();
    assert_eq!(waits, [2, 4, 8]);
    keeping.abort();
}

#[tokio::test]
async fn a_server_that_announces_a_change_after_each_list_is_listed_ever_later() {
    let (lists, mut listed) = tokio::sync::mpsc::channel(8);
    let read_list = move |_: &Value| {
        let _ = lists.try_send(Instant::now());
        Ok(Value::Null)
    };
    let memory = Memory::default().item("git", Prompt, &json!({"name": "old"}));
    let scene = memory.says("git", "tools/list", read_list).open().await;
    let keeping = tokio::spawn(survey::keep_fresh(Arc::clone(&scene.gateway.catalog)));
    let mut before = Instant::now();
    for least_ms in [100, 200, 400, 800] {
        scene.note_change("git".parse().unwrap());
        let at = listed.recv().await.unwrap();
        assert!(at - before >= Duration::from_millis(least_ms), "{least_ms}");
        before = at;
    }
    keeping.abort();
}

#[tokio::test]
async fn a_list_that_changes_is_told_to_clients_of_both_eras() {
    let scene = everything().open().await;
    let keeping = tokio::spawn(survey::keep_fresh(Arc::clone(&scene.gateway.catalog)));
    let (mut legacy, _) = TestClient::open(&scene, "test").await;
    // Whoever is answered is told from then on.
    legacy.ask("prompts/list", json!({})).await;
    let mut modern = TestClient::modern(&scene);
    let filter = json!({"promptsListChanged": true, "toolsListChanged": true});
    let id = modern
        .begin("subscriptions/listen", json!({ "notifications": filter }))
        .await;
    let told = modern
        .hear("notifications/subscriptions/acknowledged")
        .await;
    assert_eq!(
        told["params"]["notifications"],
        json!({"promptsListChanged": true})
    );
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    assert_eq!(told["params"]["_meta"], meta);
    scene.add("git", Resource, &json!({"uri": "git:new"}));
    legacy.hear("notifications/resources/list_changed").await;
    scene.add("git", Prompt, &json!({"name": "new"}));
    let changed = modern.hear("notifications/prompts/list_changed").await;
    assert_eq!(changed["params"]["_meta"], meta);
    legacy.hear("notifications/prompts/list_changed").await;
    let listed = legacy.ask("prompts/list", json!({})).await;
    assert!(texts(&listed["result"]["prompts"], "name").contains(&"git__new".to_owned()));
    let said = modern.stop().await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["id"], id);
    assert_eq!(
        said[0]["result"],
        json!({"resultType": "complete", "_meta": meta})
    );
    keeping.abort();
}

#[tokio::test]
async fn an_error_of_a_server_is_passed_in_the_code_of_the_era() {
    let error = || ProtocolError {
        code: "-32002".to_owned(),
        message: "Resource not found".to_owned(),
        data: Some(r#"{"uri":"notes://one"}"#.to_owned()),
    };
    let scene = everything()
        .says("notes", "resources/read", move |_| {
            let server = "notes".parse().unwrap();
            Err(CallError::Protocol {
                server,
                error: error(),
            })
        })
        .open()
        .await;
    let (mut legacy, _) = TestClient::open(&scene, "test").await;
    let mut modern = TestClient::modern(&scene);
    for (peer, code) in [(&mut legacy, -32002), (&mut modern, -32602)] {
        let said = peer
            .ask("resources/read", json!({"uri": "notes://one"}))
            .await;
        let error =
            json!({"code": code, "message": "Resource not found", "data": {"uri": "notes://one"}});
        assert_eq!(said["error"], error);
    }
}

#[tokio::test]
async fn a_model_reads_resources_and_prompts_by_the_built_in_tools() {
    let long = "word ".repeat(40_000);
    let scene = everything()
        .says("git", "resources/read", move |_| {
            Ok(
                json!({"contents": [{"uri": "file:///README.md", "text": long},
                {"uri": "x", "mimeType": "image/png", "blob": "AAAA"}]}),
            )
        })
        .says("git", "prompts/get", |params| {
            let content = json!({"type": "text", "text": params.to_string()});
            Ok(json!({"messages": [{"role": "user", "content": content}]}))
        })
        .open()
        .await;
    let read = json!({"uri": "proxy://git/file:///README.md"});
    let call = json!({"tool_name": "proxy/read_resource", "tool_input": read});
    let reply = ask(&scene, EXECUTE, &call).await;
    assert!(reply.tokens().await <= 4_000);
    let value: Value = serde_json::from_str(reply.json().as_str()).unwrap();
    let blocks = value["content"].as_array().unwrap();
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    assert!(blocks.contains(&image), "{value}");
    assert!(
        reply.printable().contains("proxy/read_result"),
        "{}",
        reply.printable()
    );
    let said = execute(&scene, "proxy/read_resource", &json!({"uri": "x:nothing"})).await;
    assert!(said.starts_with("error invalid_input: "), "{said}");
    let said = execute(&scene, "proxy/list_resources", &json!({})).await;
    assert_eq!(said.lines().next(), Some("5 of 5"), "{said}");
    let said = execute(&scene, "proxy/list_resources", &json!({"query": "mine"})).await;
    assert_eq!(
        said,
        "1 of 1\n[resource] proxy://notes/file:///README.md - mine"
    );
    let input = json!({"name": "git__summarize", "arguments": {"a": "1"}});
    let said = execute(&scene, "proxy/get_prompt", &input).await;
    assert_eq!(said, r#"user: {"name":"summarize","arguments":{"a":"1"}}"#);
    let found = ask(&scene, SEARCH, &json!({"query": "code review prompt"}))
        .await
        .printable();
    assert!(
        found.contains("[prompt] git__code_review-7abada - code review"),
        "{found}"
    );
    let found = ask(&scene, SEARCH, &json!({"query": "code review"}))
        .await
        .printable();
    assert!(!found.contains("[prompt]"), "{found}");
}

#[tokio::test]
async fn instructions_of_a_server_are_told_once_a_session() {
    let long = format!("Read before you write. {}", "Mind the gap. ".repeat(60));
    let scene = notes().instructs("notes", &long).open().await;
    let (mut peer, _) = TestClient::open(&scene, "test").await;
    let mut say = async |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let said = peer.ask("tools/call", params).await;
        said["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let query = json!({"query": "write a note"});
    let name = json!({"name": "notes/add_note"});
    let first = say(SEARCH, query.clone()).await;
    let line = first.lines().last().unwrap();
    assert!(
        line.starts_with("instructions of notes: Read before you write."),
        "{first}"
    );
    assert!(line.chars().count() < 340, "{line}");
    assert!(!say(SEARCH, query).await.contains("instructions of"));
    let described = say(DESCRIBE, name.clone()).await;
    let (_, told) = described.split_once("instructions of its server ").unwrap();
    assert!((500..700).contains(&told.chars().count()), "{told}");
    assert!(!say(DESCRIBE, name).await.contains("instructions of"));
}

#[tokio::test]
async fn a_client_hears_of_the_resources_that_it_subscribed_to_and_no_others() {
    let scene = everything().open().await;
    let (mut peer, opened) = TestClient::open(&scene, "test").await;
    assert_eq!(opened["capabilities"]["resources"]["subscribe"], true);
    let (mut other, _) = TestClient::open(&scene, "other").await;
    let explicit = "proxy://notes/file:///README.md";
    for (client, uri) in [(&mut peer, "notes://one"), (&mut other, explicit)] {
        let said = client
            .ask("resources/subscribe", json!({ "uri": uri }))
            .await;
        assert_eq!(said["result"], json!({}), "{said}");
    }
    assert_eq!(scene.update("notes", "notes://one"), 1);
    assert_eq!(scene.update("notes", "file:///README.md"), 1);
    let told = peer.hear("notifications/resources/updated").await;
    assert_eq!(told["params"], json!({"uri": "notes://one"}));
    let told = other.hear("notifications/resources/updated").await;
    assert_eq!(told["params"], json!({ "uri": explicit }));
    for uri in ["proxy://git/file:///README.md", "x:none"] {
        let said = peer.ask("resources/subscribe", json!({ "uri": uri })).await;
        assert!(said["error"]["code"].is_number(), "{uri}: {said}");
    }
    // The last one names no resource, and is no call.
    scene.gateway.recorder.settle();
    let counts = scene.gateway.recorder.count_by_server();
    let counts = ["notes", "git"].map(|name| counts.get(name).map(|it| (it.calls, it.errors)));
    assert_eq!(counts, [Some((2, 0)), Some((1, 1))]);
    let said = peer
        .ask("resources/unsubscribe", json!({"uri": "notes://one"}))
        .await;
    assert_eq!(said["result"], json!({}));
    assert_eq!(scene.update("notes", "notes://one"), 0);
    other.stop().await;
    assert_eq!(scene.update("notes", "file:///README.md"), 0);
    let mut modern = TestClient::modern(&scene);
    let filter = json!({"resourceSubscriptions": ["notes://one", "x:none"]});
    let id = modern
        .begin("subscriptions/listen", json!({ "notifications": filter }))
        .await;
    let told = modern
        .hear("notifications/subscriptions/acknowledged")
        .await;
    let accepted = json!({"resourceSubscriptions": ["notes://one"]});
    assert_eq!(told["params"]["notifications"], accepted);
    assert_eq!(scene.update("notes", "notes://one"), 1);
    let told = modern.hear("notifications/resources/updated").await;
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    assert_eq!(told["params"], json!({"uri": "notes://one", "_meta": meta}));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    modern.send(&cancelled).await;
    modern.ask("tools/list", json!({})).await;
    modern.stop().await;
    assert_eq!(scene.update("notes", "notes://one"), 0);
}
