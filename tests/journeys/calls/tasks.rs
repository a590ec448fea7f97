//! Tasks in both directions: those of servers are followed until they end, and a client that knows tasks
//! may leave a long call to one.

use journeys::{
    client::{Client, Reply},
    fake::{Era, META_CAPABILITIES, Step, TaskScript},
    house::{Fake, House, fake},
    processes::kill,
};
use serde_json::{Value, json};

use crate::{calling, house, house_with_daemon, until};

const TOOL: &str = "press/print";

/// A server whose only tool answers with a task that ends when `done` exists in the house.
fn press(house: &House, era: Era, change: impl FnOnce(&mut TaskScript)) -> Fake {
    let mut task = TaskScript {
        ready: house.path("done"),
        result: json!({"content": [{"type": "text", "text": "printed"}]}),
        ..TaskScript::default()
    };
    change(&mut task);
    let tool = json!({"name": "print", "description": "Prints.", "inputSchema": {"type": "object"},
        "execution": {"taskSupport": "required"}});
    fake("press").tool_as(tool, Step::Task).script(|script| {
        script.era = era;
        script.task = Some(task);
    })
}

async fn with_press(house: House, era: Era, change: impl FnOnce(&mut TaskScript)) -> House {
    house.add(press(&house, era, change));
    house.indexed().await;
    house
}

fn asks_in_vain() -> Value {
    json!({"sure": {"method": "elicitation/create", "params": {"message": "Sure?",
        "requestedSchema": {"type": "object", "properties": {}}}}})
}

/// Sends a request of a client with the extension.
async fn declared(client: &Client, method: &str, mut params: Value) -> Reply {
    params["_meta"][META_CAPABILITIES] = json!({"extensions": {"io.modelcontextprotocol/tasks": {}},
        "elicitation": {}});
    client.request(method, params).await
}

async fn take(client: &Client) -> String {
    let created = declared(client, "tools/call", calling(TOOL, &json!({})))
        .await
        .into_result();
    assert_eq!(
        (&created["resultType"], &created["status"]),
        (&json!("task"), &json!("working"))
    );
    created["taskId"].as_str().unwrap().to_owned()
}

async fn look(client: &Client, id: &str) -> Value {
    declared(client, "tasks/get", json!({ "taskId": id }))
        .await
        .into_result()
}

async fn until_over(client: &Client, id: &str) -> Value {
    client
        .within("the end of the task", async {
            loop {
                let now = look(client, id).await;
                if now["status"] != "working" {
                    return now;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        })
        .await
}

#[journey]
async fn a_tool_that_requires_a_task_simply_works() {
    for era in [Era::Legacy, Era::Modern] {
        let house = with_press(house::<Fake>([]), era, |_| {}).await;
        let client = house.client().await;
        let call = client.execute(TOOL, json!({}));
        let (printed, ()) = tokio::join!(call, async {
            until("a look at the task", || {
                !house.received_method("press", "tasks/get").is_empty()
            })
            .await;
            house.write("done", "");
        });
        assert_eq!(printed.good(), "printed", "{era:?}");
        let seen = house.received_method("press", "tools/call");
        assert_eq!(seen[0]["params"]["task"], json!({}), "{era:?}");
        house.stops_clean().await;
    }
}

#[journey]
async fn a_cancelled_call_cancels_its_task_at_the_server() {
    let house = with_press(house::<Fake>([]), Era::Modern, |_| {}).await;
    let client = house.client().await;
    let (id, _reply) = client.begin("tools/call", calling(TOOL, &json!({}))).await;
    until("a look at the task", || {
        !house.received_method("press", "tasks/get").is_empty()
    })
    .await;
    client.cancel(id).await;
    until("the end of the task", || {
        !house.received_method("press", "tasks/cancel").is_empty()
    })
    .await;
    house.stops_clean().await;
}

#[journey]
async fn a_server_that_forgot_its_task_is_told_as_what_it_is() {
    let house = with_press(house::<Fake>([]), Era::Modern, |_| {}).await;
    let client = house.client().await;
    let call = client.execute(TOOL, json!({}));
    let (refused, ()) = tokio::join!(call, async {
        until("a look at the task", || {
            !house.received_method("press", "tasks/get").is_empty()
        })
        .await;
        kill(house.pids("press")[house.starts("press") - 1]);
    });
    let said = refused.bad();
    assert!(
        said.contains("does not tell of its task") && said.contains("may have run"),
        "{said}"
    );
    house.stops_clean().await;
}

#[journey]
async fn a_question_of_a_task_reaches_the_client_of_the_call() {
    let house = with_press(house::<Fake>([]), Era::Modern, |task| {
        task.asks = Some(asks_in_vain());
    })
    .await;
    let client = house.serve();
    client
        .initialize_with(journeys::fake::LEGACY_VERSION, json!({"elicitation": {}}))
        .await;
    client.answers(
        "elicitation/create",
        json!({"action": "accept", "content": {}}),
    );
    house.write("done", "");
    assert_eq!(client.execute(TOOL, json!({})).await.good(), "printed");
    let told = house.received_method("press", "tasks/update");
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0]["params"]["inputResponses"]["sure"]["action"],
        "accept"
    );
    house.stops_clean().await;
}

#[journey]
async fn a_long_call_becomes_a_task_of_a_client_that_knows_them() {
    let house = with_press(house::<Fake>([]), Era::Modern, |_| {}).await;
    let client = house.modern_client().await;
    let id = take(&client).await;
    assert_eq!(look(&client, &id).await["status"], "working");
    // Only a client that declares the extension, and only its own task.
    let refused = client.request("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(refused.error()["code"], -32021);
    let unknown = declared(&client, "tasks/get", json!({"taskId": "proxy-task-0"})).await;
    assert_eq!(unknown.error()["code"], -32602);
    house.write("done", "");
    let over = until_over(&client, &id).await;
    assert_eq!(
        (&over["status"], &over["result"]["content"][0]["text"]),
        (&json!("completed"), &json!("printed"))
    );
    // It is kept.
    assert_eq!(look(&client, &id).await, over);

    // A cancelled one ends at the server, too.
    std::fs::remove_file(house.path("done")).unwrap();
    let id = take(&client).await;
    declared(&client, "tasks/cancel", json!({ "taskId": id }))
        .await
        .into_result();
    assert_eq!(look(&client, &id).await["status"], "cancelled");
    until("the end of the task", || {
        !house.received_method("press", "tasks/cancel").is_empty()
    })
    .await;
    house.stops_clean().await;
}

#[journey(alone = "it kills the daemon of its own house")]
async fn a_task_survives_its_client_and_a_killed_daemon_if_its_server_does() {
    for survives in [true, false] {
        let house = house_with_daemon::<Fake>([]);
        let house = with_press(house, Era::Modern, |task| task.survives = survives).await;
        let client = house.modern_client().await;
        let id = take(&client).await;
        client.close().await;
        kill(house.daemon().await);
        let next = house.modern_client().await;
        house.write("done", "");
        let over = until_over(&next, &id).await;
        if survives {
            assert_eq!(over["result"]["content"][0]["text"], "printed", "{over}");
        } else {
            assert_eq!(over["status"], "failed", "{over}");
            let why = over["error"]["message"].as_str().unwrap();
            assert!(
                why.contains("does not tell of its task") && why.contains("may have run"),
                "{why}"
            );
        }
        house.stops_clean().await;
    }
}

#[journey(alone = "it kills the daemon of its own house")]
async fn a_call_without_a_task_of_its_server_is_lost_with_the_daemon_and_says_so() {
    let house = house_with_daemon::<Fake>([]);
    let slow = fake("press").tool(
        "print",
        [Step::UntilExists(house.path("done")), Step::text("printed")],
    );
    house.add(slow);
    house.indexed().await;
    let client = house.modern_client().await;
    let id = take(&client).await;
    house.write("done", "");
    assert_eq!(
        until_over(&client, &id).await["result"]["content"][0]["text"],
        "printed"
    );
    std::fs::remove_file(house.path("done")).unwrap();
    let id = take(&client).await;
    kill(house.daemon().await);
    let over = until_over(&client, &id).await;
    let why = over["error"]["message"].as_str().unwrap();
    assert!(
        why.starts_with("the proxy was restarted while the call ran"),
        "{why}"
    );
    house.stops_clean().await;
}
