//! The server that the suite requires: tools, prompts and resources with fixed names.

use std::path::Path;

use journeys::{
    fake::{Era, FakeItem, Step},
    house::{Fake, fake},
};
use serde_json::{Value, json};

/// The name of the server, which only the bridge uses.
pub(super) const SERVER: &str = "everything";

/// Creates a server of this era with everything that the suite tests.
pub(super) fn fixture(era: Era) -> Fake {
    let fixture = contents(fake(SERVER).era(era));
    let fixture = questions(fixture);
    let fixture = inquiries(fixture);
    let fixture = changes(fixture);
    fixture.script(|script| {
        script.prompts.extend(prompts());
        script.resources.extend(resources());
        script.templates.push(template());
        script.completions = ["testValue1", "testValue2"].map(str::to_owned).to_vec();
    })
}

fn image() -> Value {
    json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Adds tools that return content of every kind, and tools that send notifications first.
fn contents(fixture: Fake) -> Fake {
    let audio = json!({ "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" });
    let resource = json!({ "type": "resource", "resource": {
        "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "Embedded." } });
    let content = |blocks: &[&Value]| Step::Result(json!({ "content": blocks }));
    let all = [&text("Several kinds."), &image(), &resource];
    let logs = ["started", "processing", "completed"];
    let logs = logs.map(|data| Step::log("info", data)).into_iter();
    let progress = [0, 50, 100].map(|done| [Step::progress(done, 100), Step::WaitMs(20)]);
    let after = |steps: Vec<Step>| [steps, vec![Step::text("Done.")]].concat();
    let error = Step::ToolError("As intended.".to_owned());
    fixture
        .tool("test_simple_text", Step::text("This is a simple text."))
        .tool("test_image_content", content(&[&image()]))
        .tool("test_audio_content", content(&[&audio]))
        .tool("test_embedded_resource", content(&[&resource]))
        .tool("test_multiple_content_types", content(&all))
        .tool("test_tool_with_logging", after(logs.collect()))
        .tool("test_error_handling", error)
        .tool("test_tool_with_progress", after(progress.concat()))
}

/// Returns a question to the user, with a form of these properties.
fn form(message: &str, properties: &Value) -> Value {
    let names: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|it| it.0)
        .collect();
    let schema = json!({ "type": "object", "properties": properties, "required": names });
    json!({ "method": "elicitation/create",
        "params": { "message": message, "requestedSchema": schema } })
}

fn sampling(prompt: &str) -> Value {
    let messages = json!([{ "role": "user", "content": text(prompt) }]);
    json!({ "method": "sampling/createMessage",
        "params": { "messages": messages, "maxTokens": 100 } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// Sends one object of requests after the other.
fn inquire(rounds: &[Value]) -> Step {
    Step::Inquire {
        rounds: rounds.to_vec(),
        result: json!({ "content": [text("Thank you.")] }),
    }
}

fn strings(names: &[&str]) -> Value {
    let of_string = |name: &&str| ((*name).to_owned(), json!({ "type": "string" }));
    names.iter().map(of_string).collect()
}

/// Adds tools that ask the client by requests, as in the older revisions.
fn questions(fixture: Fake) -> Fake {
    let defaults = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"],
            "default": "active" },
        "verified": { "type": "boolean", "default": true }
    });
    let titled = |key: &str| {
        json!([{ "const": format!("{key}1"), "title": "First" },
        { "const": format!("{key}2"), "title": "Second" }])
    };
    let options = ["option1", "option2", "option3"];
    let enums = json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled("value") },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2"],
            "enumNames": ["Option One", "Option Two"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("value") } }
    });
    let person = form("Who are you?", &strings(&["username", "email"]));
    let asks = |request: Value| inquire(&[json!({ "asked": request })]);
    fixture
        .tool("test_sampling", asks(sampling("What do you think?")))
        .tool("test_elicitation", asks(person))
        .tool(
            "test_elicitation_sep1034_defaults",
            asks(form("All?", &defaults)),
        )
        .tool(
            "test_elicitation_sep1330_enums",
            asks(form("Which?", &enums)),
        )
        .tool(
            "test_reconnection",
            [
                Step::log("info", "a stream begins"),
                Step::text("Here again."),
            ],
        )
}

/// Adds tools that ask in rounds.
fn inquiries(fixture: Fake) -> Fake {
    let named = |name: &str| format!("test_input_required_result_{name}");
    let who = || form("What is your name?", &strings(&["name"]));
    let confirm = || form("Please confirm", &json!({ "ok": { "type": "boolean" } }));
    let all =
        json!({ "user_name": who(), "greeting": sampling("Greet!"), "client_roots": roots() });
    let colour = form("And your colour?", &strings(&["color"]));
    let rounds = [json!({ "step1": who() }), json!({ "step2": colour })];
    let either = json!({ "said": sampling("Say it!"), "asked": who() });
    let one = |key: &str, request: Value| inquire(&[json!({ key: request })]);
    fixture
        .tool(&named("elicitation"), one("user_name", who()))
        .tool(
            &named("sampling"),
            one("capital_question", sampling("Paris?")),
        )
        .tool(&named("list_roots"), one("client_roots", roots()))
        .tool(&named("request_state"), one("confirm", confirm()))
        .tool(&named("multiple_inputs"), inquire(&[all]))
        .tool(&named("multi_round"), inquire(&rounds))
        .tool(&named("tampered_state"), one("confirm", confirm()))
        .tool(&named("capabilities"), inquire(&[either]))
        .tool("test_missing_capability", one("said", sampling("Say it!")))
        .tool("test_streaming_elicitation", one("confirm", confirm()))
}

/// Adds tools by which the suite tests unsolicited notifications.
fn changes(fixture: Fake) -> Fake {
    let logging = [Step::log("info", "not for everybody"), Step::text("Done.")];
    let changed = Step::Notify {
        method: "notifications/tools/list_changed".to_owned(),
        params: json!({}),
    };
    fixture
        .tool("test_logging_tool", logging)
        .tool("test_trigger_tool_change", [changed, Step::text("Done.")])
        .tool(
            "test_trigger_prompt_change",
            [Step::Reveal, Step::text("Done.")],
        )
}

fn prompt(name: &str, arguments: &[&str], step: Step) -> FakeItem {
    let argument =
        |name: &&str| json!({ "name": name, "description": "Any text.", "required": true });
    let arguments: Vec<Value> = arguments.iter().map(argument).collect();
    let definition = json!({ "name": name, "description": format!("A prompt, {name}."),
        "arguments": arguments });
    FakeItem::defined(definition, step)
}

fn messages(blocks: &[Value]) -> Value {
    let message = |block: &Value| json!({ "role": "user", "content": block });
    json!({ "messages": blocks.iter().map(message).collect::<Vec<_>>() })
}

fn prompts() -> Vec<FakeItem> {
    let simple = messages(&[text("A simple prompt.")]);
    let filled = messages(&[text("arg1='$arg1', arg2='$arg2'")]);
    let embedded = json!({ "type": "resource", "resource": {
        "uri": "$resourceUri", "mimeType": "text/plain", "text": "Embedded." } });
    let embedded = messages(&[embedded, text("Look at it.")]);
    let asking = Step::Inquire {
        rounds: vec![json!({ "user_context": form("Which context?", &strings(&["context"])) })],
        result: simple.clone(),
    };
    let hidden = prompt("hidden_prompt", &[], Step::Result(simple.clone()));
    vec![
        prompt("test_simple_prompt", &[], Step::Result(simple)),
        prompt(
            "test_prompt_with_arguments",
            &["arg1", "arg2"],
            Step::Filled(filled),
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            &["resourceUri"],
            Step::Filled(embedded),
        ),
        prompt(
            "test_prompt_with_image",
            &[],
            Step::Result(messages(&[image(), text("Look at it.")])),
        ),
        prompt("test_input_required_result_prompt", &[], asking),
        FakeItem {
            hidden: true,
            ..hidden
        },
    ]
}

fn resources() -> Vec<FakeItem> {
    let resource = |uri: &str, mime: &str, content: Value| {
        let definition = json!({ "uri": uri, "name": uri, "description": format!("It is {uri}."),
            "mimeType": mime });
        let mut content = content;
        content["uri"] = json!(uri);
        content["mimeType"] = json!(mime);
        FakeItem::defined(definition, Step::Result(json!({ "contents": [content] })))
    };
    vec![
        resource(
            "test://static-text",
            "text/plain",
            json!({ "text": "A static text." }),
        ),
        resource(
            "test://static-binary",
            "image/png",
            json!({ "blob": "iVBORw0KGgo=" }),
        ),
        resource(
            "test://watched-resource",
            "text/plain",
            json!({ "text": "It may change." }),
        ),
    ]
}

fn template() -> FakeItem {
    let definition = json!({ "uriTemplate": "test://template/{id}/data", "name": "template",
        "description": "Data of an id.", "mimeType": "application/json" });
    let content = json!({ "uri": "$uri", "mimeType": "application/json",
        "text": "{\"id\": \"$id\", \"data\": \"Data of $id.\"}" });
    FakeItem::defined(definition, Step::Filled(json!({ "contents": [content] })))
}

/// The time that a call runs as a task before its tool is done, in milliseconds: the suite cancels one meanwhile, and waits
/// at most 10 s for the end of others.
const TASK_MS: u64 = 4_000;
/// Longer than the 5 s after which a call becomes a task. A call of a client that takes no tasks ends then.
const CALL_MS: u64 = 10_000;

/// Creates a server with the skills and the long tools that the scenarios of extensions test. A long tool waits until the
/// proxy has written the record of a task into the folder `tasks`.
pub(super) fn extensions(era: Era, tasks: &Path) -> Fake {
    let main = "---\nname: invoices\ndescription: Write invoices.\n---\n# Steps\n";
    let files = [("SKILL.md", main), ("references/FORMS.md", "Form 7.")];
    let until_task = || Step::UntilNewFile {
        folder: tasks.to_owned(),
        at_most_ms: CALL_MS,
    };
    let long = |step: Step| [until_task(), step];
    let hello = json!({ "content": [text("Hello, $name!")] });
    let failure = json!({ "code": -32603, "message": "As intended." });
    let name = json!({ "name": { "type": "string" } });
    let asks = |keys: &[&str]| {
        let question = |key: &&str| ((*key).to_owned(), form("Who is it?", &name));
        let round: serde_json::Map<_, _> = keys.iter().map(question).collect();
        let result = json!({ "content": [text("Alice")] });
        Step::Inquire {
            rounds: vec![round.into()],
            result,
        }
    };
    let form = form("Who is it?", &name);
    // A client that takes no tasks asks for 0 seconds, and waits at most 10 s.
    let slow = Step::Unless {
        argument: "seconds".to_owned(),
        value: json!(0),
        steps: vec![until_task(), Step::WaitMs(TASK_MS)],
    };
    let asks_first = [
        Step::Ask {
            method: "elicitation/create".to_owned(),
            params: form["params"].clone(),
        },
        until_task(),
        Step::text("Alice"),
    ];
    fake(SERVER)
        .era(era)
        .skill("invoices", &files)
        .script(|script| {
            let listed = &mut script.resources[0].definition;
            listed["name"] = "invoices".into();
            listed["description"] = "Write invoices.".into();
        })
        .tool("greet", Step::Filled(hello))
        .tool("slow_compute", [slow, Step::text("42")])
        .tool("test_tool_with_task", asks_first)
        .tool(
            "failing_job",
            long(Step::ToolError("As intended.".to_owned())),
        )
        .tool("protocol_error_job", long(Step::Error(failure)))
        .tool("confirm_delete", long(asks(&["sure"])))
        .tool("multi_input", long(asks(&["one", "two"])))
}
