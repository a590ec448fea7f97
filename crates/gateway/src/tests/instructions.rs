//! The instructions that a client gets, by the `catalog` of its table.

use excerpt::tokens;
use serde_json::json;

use super::{
    memory::{Memory, TestGateway},
    notes,
    peer::TestClient,
};
use crate::policy::{ClientPolicies, ClientRule, ShownCatalog};

const NEXT: &str = ". Never guess a tool name. Many calls: proxy/run_script.";

fn clients(deny: &[&str]) -> ClientPolicies {
    let rule = |name: &str, catalog: ShownCatalog| {
        let rule = ClientRule {
            catalog,
            deny: deny.iter().map(ToString::to_string).collect(),
            ..ClientRule::default()
        };
        (name.to_owned(), rule)
    };
    let rules = [
        rule("none", ShownCatalog::None),
        rule("servers", ShownCatalog::Servers),
        rule("names", ShownCatalog::Names),
        rule("signatures", ShownCatalog::Signatures),
    ];
    ClientPolicies::new(rules).unwrap()
}

async fn told(scene: &TestGateway, client: &str) -> String {
    let (_, began) = TestClient::open(scene, client).await;
    began["instructions"].as_str().unwrap().to_owned()
}

/// A server with tools of these names.
fn with_tools(memory: Memory, server: &str, names: impl Iterator<Item = String>) -> Memory {
    names.fold(memory, |memory, name| {
        let tool = json!({"name": name, "description": format!("Do {name} with everything there is, for each of the customers and all of the orders"),
            "inputSchema": {"type": "object", "properties": {"first_argument": {"type": "string"},
                "second_argument": {"type": "string"}}, "required": ["first_argument"]}});
        memory.tool(server, &tool, |_| Ok(json!({"content": []})))
    })
}

#[tokio::test]
async fn a_table_says_how_much_of_the_catalogue_is_named() {
    let scene = notes().open_with(clients(&[])).await;
    let first = "When a task needs a service, data or action beyond your built-in tools, ";
    let search = format!("{first}call search_tools first, then execute_dynamic_tool{NEXT}");
    let servers = format!("Gateway to 2 tools: notes 2. {search}");
    assert_eq!(told(&scene, "other").await, servers);
    assert_eq!(told(&scene, "servers").await, servers);
    assert_eq!(
        told(&scene, "none").await,
        format!("Gateway to 2 tools. {search}")
    );
    assert_eq!(
        told(&scene, "names").await,
        format!(
            "Gateway to 2 tools: notes/add_note, notes/read. {first}call describe_tool for one of \
             these, then execute_dynamic_tool{NEXT}"
        )
    );
    assert_eq!(
        told(&scene, "signatures").await,
        format!(
            "Gateway to 2 tools:\nnotes/add_note(title: string) - Write down a new note\n\
             notes/read() - Read all notes. {first}call one of these with \
             execute_dynamic_tool{NEXT}"
        )
    );
}

#[tokio::test]
async fn a_client_is_told_of_no_tool_that_it_does_not_see_and_of_changes_at_its_next_session() {
    let memory = with_tools(notes(), "bank", ["pay".to_owned()].into_iter());
    let scene = memory.open_with(clients(&["bank"])).await;
    for client in ["names", "signatures"] {
        let says = told(&scene, client).await;
        assert!(
            says.contains("notes/read") && !says.contains("bank"),
            "{says}"
        );
    }
    let mut settings = scene.gateway.settings().as_ref().clone();
    settings.clients = clients(&["notes"]);
    scene.gateway.apply(settings).unwrap();
    let says = told(&scene, "names").await;
    assert!(says.starts_with("Gateway to 1 tool: bank/pay. "), "{says}");
}

#[tokio::test]
async fn a_list_that_is_too_long_is_replaced_by_the_next_shorter_one() {
    let scene = |count: usize, name: &'static str| async move {
        let names = (0..count).map(move |at| format!("{name}_{at}"));
        let memory = with_tools(Memory::default(), "many", names);
        memory.open_with(clients(&[])).await
    };
    let eight = scene(8, "do_it").await;
    let signatures = told(&eight, "signatures").await;
    assert!(
        signatures.contains("many/do_it_7(first_argument: string"),
        "{signatures}"
    );
    let tokens = tokens::count(&signatures);
    assert!(
        tokens <= 510 && signatures.len() <= 2_000,
        "{tokens} tokens"
    );
    let servers = told(&scene(11, "do_it").await, "signatures").await;
    assert!(
        servers.starts_with("Gateway to 11 tools: many 11. When"),
        "{servers}"
    );
    let longer = scene(10, "a_name_of_a_tool_that_says_what_it_does").await;
    let servers = told(&longer, "signatures").await;
    assert!(
        servers.starts_with("Gateway to 10 tools: many 10. When"),
        "{servers}"
    );
    let long = scene(9, "a_name_that_is_long").await;
    let names = told(&long, "signatures").await;
    assert!(
        names.starts_with("Gateway to 9 tools: many/a_name_that_is_long_0, "),
        "{names}"
    );
    let tokens = tokens::count(&names);
    assert!(tokens <= 180, "{tokens} tokens: {names}");
}
