//! Tasks over HTTP: of a client whose requests stand alone, and of a server at an address.

use std::time::Duration;

use journeys::{
    client::{DEADLINE, Reply},
    fake::{Era, META_CAPABILITIES, Step, TaskScript},
    house::{Fake, House, fake},
    web::Web,
};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use crate::{calling, house, house_with_daemon, until};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A server whose only tool answers with a task that ends when `done` exists in the house.
fn press(house: &House) -> Fake {
    let task = TaskScript {
        ready: house.path("done"),
        result: json!({"content": [{"type": "text", "text": "printed"}]}),
        ..TaskScript::default()
    };
    let tool = json!({"name": "print", "inputSchema": {"type": "object"}});
    fake("press").tool_as(tool, Step::Task).script(|script| {
        script.era = Era::Modern;
        script.task = Some(task);
    })
}

/// The parameters of a request of a client that takes tasks and answers questions.
fn declared(mut params: Value) -> Value {
    params["_meta"][META_CAPABILITIES] = json!({"extensions": {TASKS: {}}, "elicitation": {}});
    params
}

async fn ask(web: &Web, method: &str, mut params: Value) -> Reply {
    let id = params["taskId"].as_str().unwrap_or_default().to_owned();
    params = declared(params);
    web.clone()
        .with("mcp-name", &id)
        .request(method, params)
        .await
}

async fn until_status(web: &Web, id: &str, status: &str) -> Value {
    let mut last = Value::Null;
    let mut looks = interval(Duration::from_millis(50));
    let waiting = async {
        while last["status"] != status {
            looks.tick().await;
            let reply = ask(web, "tasks/get", json!({ "taskId": id })).await;
            last = reply.into_result();
        }
    };
    let waited = timeout(DEADLINE, waiting).await;
    assert!(waited.is_ok(), "the task is not {status}: {last}");
    last
}

#[tokio::test]
async fn a_stream_ends_with_a_task_that_any_later_request_of_its_client_finds() {
    let house = house_with_daemon::<Fake>([]);
    let tokens = "[http.tokens]\nann = \"0123456789abcdef0123\"\nbob = \"fedcba9876543210fedc\"";
    house.configure_more(tokens);
    let slow = [
        Step::progress(1, 2),
        Step::UntilExists(house.path("done")),
        Step::progress(2, 2),
        Step::text("printed"),
    ];
    house.add(fake("press").tool("print", slow));
    house.indexed().await;
    let site = house.site().await;
    let web_of = |token: &str| {
        let web = site.web().modern("journeys");
        web.with("authorization", &format!("Bearer {token}"))
    };
    let ann = web_of("0123456789abcdef0123");
    let mut params = declared(calling("press/print", &json!({})));
    params["_meta"]["progressToken"] = json!("mine");
    let (id, mut answer) = ann.send("tools/call", params).await;
    assert!(answer.is_stream());
    let first = answer.message().await;
    assert_eq!(first["params"]["progressToken"], "mine");
    let last = answer.message().await;
    assert_eq!(
        (&last["id"], &last["result"]["resultType"]),
        (&json!(id), &json!("task"))
    );
    assert_eq!(answer.event().await, None);
    let task = last["result"]["taskId"].as_str().unwrap();
    until_status(&ann, task, "working").await;
    // A task is of its client alone, and of one that declares the extension.
    let bob = web_of("fedcba9876543210fedc");
    let none = ask(&bob, "tasks/get", json!({ "taskId": task })).await;
    assert_eq!(none.error()["code"], -32602);
    let plain = ann.clone().with("mcp-name", task);
    let (_, refused) = plain.send("tasks/get", json!({ "taskId": task })).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.reply().await.error()["code"], -32021);
    house.write("done", "");
    let over = until_status(&ann, task, "completed").await;
    assert_eq!(over["result"]["content"][0]["text"], "printed");
    // It survives the address at which it was taken.
    site.stop().await;
    let site = house.site().await;
    let ann = ann.at(site.address());
    assert_eq!(until_status(&ann, task, "completed").await, over);
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_task_asks_its_client_in_the_state_that_the_client_looks_at() {
    let house = house::<Fake>([]);
    let slow = [
        Step::UntilExists(house.path("taken")),
        Step::elicit("Sure?"),
    ];
    house.add(fake("press").tool("print", slow));
    house.indexed().await;
    let site = house.site().await;
    let web = site.web().modern("journeys");
    let params = declared(calling("press/print", &json!({})));
    let taken = web.request("tools/call", params).await.into_result();
    let task = taken["taskId"].as_str().unwrap();
    house.write("taken", "");
    let state = until_status(&web, task, "input_required").await;
    let asked = state["inputRequests"].as_object().unwrap();
    let (key, question) = asked.iter().next().unwrap();
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("Sure?"), "{state}");
    let answers = json!({ key: {"action": "accept", "content": {}} });
    let update = json!({"taskId": task, "inputResponses": answers});
    ask(&web, "tasks/update", update).await.into_result();
    let over = until_status(&web, task, "completed").await;
    let text = over["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("accept"), "{over}");
    site.stop().await;
    house.stops_clean().await;
}

/// The far server is a proxy that answers a long call with a task of its own.
#[tokio::test]
async fn a_task_of_a_server_at_an_address_is_followed() {
    let far = house_with_daemon::<Fake>([]);
    let server = press(&far);
    far.add(server);
    far.indexed().await;
    let address = far.site().await;
    let near = house::<Fake>([]);
    near.configure(&format!("[servers.far]\nurl = {:?}\n", address.url()));
    near.indexed().await;
    let client = near.client().await;
    let call = json!({"tool_name": "press/print", "tool_input": {}});
    let called = client.execute("far/execute_dynamic_tool", call);
    let (printed, ()) = tokio::join!(called, async {
        until("a look at the task", || {
            far.received_method("press", "tasks/get").len() > 100
        })
        .await;
        far.write("done", "");
    });
    assert_eq!(printed.good(), "printed");
    near.stops_clean().await;
    address.stop().await;
    far.stops_clean().await;
}
