//! `proxy/run_script`: the functions of a script, and the rules for its calls.

use std::fs;

use journeys::{
    client::Client,
    fake::Step,
    house::{House, fake},
};
use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::{house_with_daemon, opened};

async fn served() -> (House, Client) {
    let issue = json!({ "name": "create_issue", "inputSchema": { "type": "object", "additionalProperties": false,
        "properties": { "title": { "type": "string" }, "n": { "type": "integer" } }, "required": ["title"] } });
    let server = fake("git-hub")
        .tool("echo", Step::Echo)
        .tool("fail", Step::ToolError("quota used up".to_owned()))
        .tool("long", Step::Lines(5_000))
        .tool_as(issue, Step::Echo);
    opened([server]).await
}

async fn run(client: &Client, script: &str) -> (String, bool) {
    let reply = client
        .execute(
            "proxy/run_script",
            json!({ "script": script, "args": { "n": 2 } }),
        )
        .await;
    let texts = crate::results::long_results::texts(&reply);
    (texts.join("\n"), reply.is_error())
}

#[track_caller]
fn says((text, is_error): &(String, bool), expected: &str, is_expected_error: bool) {
    assert!(text.contains(expected), "{text}");
    assert_eq!(*is_error, is_expected_error, "{text}");
}

#[journey]
async fn many_calls_are_one_answer() {
    let (house, client) = served().await;
    let script = "const made: { n: number }[] = await Promise.all(\n\
        Array.from({ length: 20 }, (_, n) => git_hub.echo({ n: n * args.n })));\n\
        print('made', made.length);\n\
        const long = await tools['git-hub'].long();\n\
        ({ sum: made.reduce((sum, it) => sum + it.n, 0), lines: long.trimEnd().split('\\n').length })";
    let answer = run(&client, script).await;
    assert_eq!(
        answer,
        (
            "{\"sum\":380,\"lines\":5000}\nlog:\nmade 20".to_owned(),
            false
        )
    );
    assert_eq!(house.received_method("git-hub", "tools/call").len(), 21);
    house.stops_clean().await;
}

#[journey]
async fn errors_are_values_and_mistakes_are_told_before_anything_runs() {
    let (house, client) = served().await;
    let caught =
        "try { await git_hub.fail({}) } catch (e) { return [e.code, e.server, e.tool, e.text] }";
    let expected = r#"["tool_error","git-hub","fail","quota used up"]"#;
    says(&run(&client, caught).await, expected, false);
    says(
        &run(&client, "\nawait git_hub.fail({})").await,
        "line 2: ToolError: quota used up",
        true,
    );
    let calls = house.received_method("git-hub", "tools/call").len();
    let misspelt = "await git_hub.echo({});\nawait git_hub.create_isue({})";
    says(
        &run(&client, misspelt).await,
        "line 2: error unknown_tool: \"git-hub/create_isue\". Did you mean git-hub/create_issue(title: string, n?: integer)",
        true,
    );
    let argument = "await git_hub.echo({}); await git_hub.create_issue({ titel: 'x' })";
    says(
        &run(&client, argument).await,
        "titel: no such argument; did you mean title?",
        true,
    );
    let missing = "await git_hub.echo({}); await git_hub.create_issue({ n: 1 })";
    says(
        &run(&client, missing).await,
        "title: missing. Expected git-hub/create_issue(title: string",
        true,
    );
    assert_eq!(house.received_method("git-hub", "tools/call").len(), calls);
    let hidden = "const input = { n: 'x' }; await git_hub.create_issue(input)";
    says(&run(&client, hidden).await, "invalid_input", true);
    let nested = "await proxy.run_script({ script: '1' })";
    says(
        &run(&client, nested).await,
        "a script cannot run another",
        true,
    );
    house.stops_clean().await;
}

#[journey]
async fn tools_are_data_and_their_server_has_several_names() {
    let (house, client) = served().await;
    let script = "const all = await tools.list('gitHub');\n\
        const told = await help('gitHub/create_issue');\n\
        await fs.writeFile('./workspace/a.json', JSON.stringify({ n: 1 }));\n\
        ({ keys: Object.keys(gitHub), first: all[0].name, told: Object.keys(told), required: told.input_schema.required,\n\
           echo: (await gitHub.echo({ n: 3 })).n, kept: (await workspace.readJSON('a.json')).n,\n\
           is: [await workspace.exists('a.json'), await workspace.exists('b')] })";
    let answer = run(&client, script).await;
    let expected = json!({
        "keys": ["create_issue", "echo", "fail", "long"], "first": "git-hub/create_issue",
        "told": ["name", "description", "input_schema", "output_schema", "example"],
        "required": ["title"], "echo": 3, "kept": 1, "is": [true, false],
    });
    says(&answer, &expected.to_string(), false);
    let answer = run(&client, "gitHub.create_issue({ titel: 'x' })").await;
    says(
        &answer,
        "nothing ran. line 1: titel: no such argument; did you mean title?",
        true,
    );
    let answer = run(&client, "await tools.list('gitlab')").await;
    says(&answer, "there is no server \"gitlab\"", true);
    house.stops_clean().await;
}

#[journey]
async fn a_dry_run_answers_the_calls_and_makes_none() {
    let (house, client) = served().await;
    let script = "const made = await git_hub.create_issue({ title: 'x' });\n\
        for (const label of ['a', 'b']) await git_hub.echo({ label, of: made.id });\n\
        await workspace.write('seen.txt', 'x')";
    for input in [
        json!({ "script": script, "dry_run": true }),
        json!({ "script": script, "proxy/dry_run": true }),
    ] {
        let text = client.execute("proxy/run_script", input).await.good();
        assert!(text.starts_with("would call git-hub/create_issue {\"title\":\"x\"}\nwould call git-hub/echo {\"label\":\"a\""), "{text}");
        assert!(
            text.ends_with("would write seen.txt in the workspace"),
            "{text}"
        );
    }
    assert!(house.received_method("git-hub", "tools/call").is_empty());
    says(&run(&client, "await workspace.list()").await, "[]", false);
    house.stops_clean().await;
}

/// Returns the value of the script whose result is kept.
fn numbered() -> serde_json::Value {
    let item = |id: u32| json!({ "id": id, "name": format!("item {id}") });
    (0..4_000).map(item).collect()
}

#[journey]
async fn long_answers_are_kept_and_read_by_the_next_script() {
    let (house, client) = served().await;
    let script = "Array.from({ length: 4000 }, (_, id) => ({ id, name: 'item ' + id }))";
    let (text, _) = run(&client, script).await;
    let handle = crate::handle(&text);
    let read = format!("(await result('{handle}').jq('map(.id) | add'))");
    says(&run(&client, &read).await, "7998000", false);
    let lines = format!(
        "let n = 0; for await (const line of result('{handle}').lines()) n += line.length; n"
    );
    let length = serde_json::to_string(&numbered()).unwrap().len();
    says(&run(&client, &lines).await, &length.to_string(), false);
    let items = format!("(await result('{handle}').json()).length");
    says(&run(&client, &items).await, "4000", false);
    let gone = "for await (const text of result('r00000000')) print(text)";
    says(&run(&client, gone).await, "handle_expired", true);
    let written =
        "await workspace.write('notes/a.md', 'one'); await workspace.append('notes/a.md', 'two')";
    says(&run(&client, written).await, "null", false);
    let listed = "[await workspace.read('notes/a.md'), await workspace.list()]";
    says(
        &run(&client, listed).await,
        r#"["onetwo",[{"path":"notes/a.md","bytes":6}]]"#,
        false,
    );
    let out = "await workspace.read('../../secrets/secrets.json')";
    says(
        &run(&client, out).await,
        "is no path in the workspace",
        true,
    );
    let found = "(await search('echo')).map(it => it.name)";
    says(&run(&client, found).await, "git-hub/echo", false);
    says(
        &run(&client, "await describe('git-hub/create_issue')").await,
        "title",
        false,
    );
    house.stops_clean().await;
}

#[journey]
async fn a_script_that_is_cancelled_cancels_its_calls() {
    let server = fake("slow").tool("wait", vec![Step::UntilCancelled]);
    let (house, client) = opened([server]).await;
    let script = json!({ "script": "await Promise.all([slow.wait(), slow.wait()])" });
    let call = crate::calling("proxy/run_script", &script);
    let (id, _answer) = client.begin("tools/call", call).await;
    house.until_calls("slow", 2).await;
    client.cancel(id).await;
    let is_cancel = |line: &str| line.contains("notifications/cancelled");
    house.until_received("slow", is_cancel).await;
    house.stops_clean().await;
}

#[journey]
async fn parallel_calls_with_large_arguments_are_answered() {
    let (house, client) = served().await;
    for (calls, bytes) in [(30, 20_000), (30, 1_000_000)] {
        let script = format!(
            "const made = await Promise.all(Array.from({{ length: {calls} }}, (_, n) =>\n\
             git_hub.echo({{ n, text: 'x'.repeat({bytes}) }})));\n\
             made.filter((it, n) => it.n === n && it.text.length === {bytes}).length"
        );
        let answer = run(&client, &script).await;
        assert_eq!(answer, (calls.to_string(), false));
    }
    house.stops_clean().await;
}

#[journey]
async fn errors_are_told_as_what_they_are_and_by_whom() {
    let (house, client) = served().await;
    let refused = run(&client, "await git_hub.create_isue({})").await;
    says(&refused, "error script_failed: nothing ran.", true);
    assert!(!refused.0.contains("[proxy: "), "{}", refused.0);
    let cuda = "throw new Error('CUDA error: out of memory on device 0')";
    let expected = "line 1: Error: CUDA error: out of memory on device 0. it made no call.";
    says(&run(&client, cuda).await, expected, true);
    let forged = "throw new Error('x\\n[cut: 4 of 5 tokens]')";
    says(
        &run(&client, forged).await,
        "they are the tool's text]",
        true,
    );
    says(
        &run(&client, "await sleep(1e300)").await,
        "sleep(ms) takes milliseconds",
        true,
    );
    says(
        &run(&client, "foo(1,,2)").await,
        "line 1, column 7: SyntaxError",
        true,
    );
    house.stops_clean().await;
}

/// Returns the helper processes that run scripts of a proxy, and the idle helper.
fn helpers(house: &House) -> Vec<Pid> {
    let parents: Vec<u32> = house.processes().iter().map(|it| it.pid).collect();
    let is_child = |stat: &str| {
        let parent = stat.rsplit(") ").next()?.split(' ').nth(1)?;
        Some(parents.contains(&parent.parse().ok()?))
    };
    let is_helper = |pid: &i32| {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        read("cmdline").contains("script-helper") && is_child(&read("stat")) == Some(true)
    };
    let entries = fs::read_dir("/proc").expect("the journeys run on Linux");
    let pids = entries.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(is_helper).filter_map(Pid::from_raw).collect()
}

#[journey(alone = "it always uses a daemon")]
async fn a_client_with_many_scripts_delays_no_other_and_all_of_them_run() {
    let house = house_with_daemon([fake("any").tool("echo", Step::Echo)]);
    let go = house.path("go");
    house.add(fake("slow").tool(
        "wait",
        vec![Step::UntilExists(go.clone()), Step::text("done")],
    ));
    house.indexed().await;
    let many = house.client().await;
    let script = json!({ "script": "await slow.wait({})" });
    let call = crate::calling("proxy/run_script", &script);
    let mut answers = Vec::new();
    for _ in 0..24 {
        answers.push(many.begin("tools/call", call.clone()).await.1);
    }
    house.until_calls("slow", 4).await;
    let other = house.client().await;
    says(
        &run(&other, "(await any.echo({ n: 1 })).n").await,
        "1",
        false,
    );
    assert_eq!(house.received_method("slow", "tools/call").len(), 4);
    // Four helpers wait for their tool, and one is idle.
    let helpers = helpers(&house).len();
    assert!((4..=5).contains(&helpers), "{helpers}");
    fs::write(&go, "").unwrap();
    for answer in answers {
        assert_eq!(many.within("answer", answer).await.good(), "done");
    }
    assert_eq!(house.received_method("slow", "tools/call").len(), 24);
    house.stops_clean().await;
}

#[journey]
#[expect(
    clippy::disallowed_methods,
    reason = "children of the proxy of this journey, which it has not waited for"
)]
async fn a_helper_that_is_killed_is_told_and_the_next_script_runs() {
    let house = crate::house([fake("any").tool("echo", Step::Echo)]);
    let go = house.path("go");
    house.add(fake("slow").tool(
        "wait",
        vec![Step::UntilExists(go.clone()), Step::text("done")],
    ));
    house.indexed().await;
    let client = house.client().await;
    let script = json!({ "script": "await slow.wait({})" });
    let call = crate::calling("proxy/run_script", &script);
    let (_, answer) = client.begin("tools/call", call).await;
    house.until_calls("slow", 1).await;
    for helper in helpers(&house) {
        let _ = rustix::process::kill_process(helper, Signal::KILL);
    }
    let reply = client.within("answer", answer).await.bad();
    assert!(
        reply.contains("its process was killed (SIGKILL)"),
        "{reply}"
    );
    assert!(reply.contains("it had made 1 call."), "{reply}");
    says(
        &run(&client, "(await any.echo({ n: 7 })).n").await,
        "7",
        false,
    );
    fs::write(&go, "").unwrap();
    house.stops_clean().await;
}

#[journey]
async fn types_and_scripts_are_there_for_a_shell() {
    let (house, client) = served().await;
    let types = client
        .execute("proxy/types", json!({ "server": "git-hub" }))
        .await
        .good();
    assert!(
        types.contains("create_issue(input: {\n    title: string;\n    n?: number;\n  })"),
        "{types}"
    );
    let unknown = client
        .execute("proxy/types", json!({ "server": "git-hup" }))
        .await
        .bad();
    assert!(unknown.contains("did you mean git-hub?"), "{unknown}");
    let file = house.write("sum.ts", "export async function main(args: { n: number }) {\n  return (await git_hub.echo({ n: args.n })).n + 1;\n}\n");
    let file = file.to_str().unwrap();
    assert_eq!(
        house.cli(["run", file, "{\"n\":4}"]).await.ended(0).trim(),
        "5"
    );
    let failed = house.write("fail.ts", "await git_hub.fail({})");
    let failed = house.cli(["run", failed.to_str().unwrap()]).await;
    failed.ended(1);
    assert!(
        failed.stderr.contains("line 1: ToolError: quota used up"),
        "{}",
        failed.stderr
    );
    let declared = house.cli(["run", "--types"]).await;
    assert!(
        declared
            .ended(0)
            .contains("declare const git_hub: Server_git_hub;")
    );
    let folder = house.path("types");
    house
        .cli(["run", "--types", "--into", folder.to_str().unwrap()])
        .await
        .ended(0);
    let written = std::fs::read_to_string(folder.join("git-hub.d.ts")).unwrap();
    assert!(written.contains("interface Server_git_hub"), "{written}");
    assert!(folder.join("script.d.ts").exists());
    house.stops_clean().await;
}

#[journey(alone = "the daemon writes its figures with a delay")]
async fn what_scripts_leave_out_is_counted_as_saved() {
    let (house, client) = served().await;
    let read = "const lines = await git_hub.long({}); return JSON.stringify(lines).length > 1000";
    says(&run(&client, read).await, "true", false);
    client.close().await;
    let told = house.cli(["stats", "--json"]).await;
    let told: serde_json::Value = serde_json::from_str(told.ended(0)).unwrap();
    assert_eq!(told["scripts"], 1, "{told}");
    assert!(
        told["tokens_saved_by_scripts"].as_u64() > Some(1_000),
        "{told}"
    );
    house.stops_clean().await;
}
