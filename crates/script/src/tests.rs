//! Scripts that the engine runs in this process; their tools are a function.

use std::{collections::VecDeque, io};

use serde_json::{Value, json, value::RawValue};

use crate::{
    engine::Channel,
    helper::run,
    limits::Limit,
    message::{Failed, FromScript, Job, PendingRequest, ScriptRequest, ToScript},
};

/// Returns the arguments of each call immediately, and records the messages.
#[derive(Default)]
struct Echo {
    answers: VecDeque<ToScript>,
    heard: Vec<String>,
    log: Vec<String>,
    mistakes: Vec<String>,
    /// The number of calls that have to arrive before any of them is answered.
    together: usize,
    held: Vec<PendingRequest>,
}

impl Channel for Echo {
    fn receive(&mut self) -> io::Result<Option<ToScript>> {
        if self.answers.is_empty() {
            let held = std::mem::take(&mut self.held);
            held.into_iter().rev().for_each(|asked| self.answer(asked));
        }
        Ok(self.answers.pop_front())
    }

    fn send(&mut self, message: &FromScript) -> io::Result<()> {
        let text = serde_json::to_string(message)?;
        match serde_json::from_str(&text)? {
            FromScript::Ask(asked) if self.together > 1 => {
                self.together -= 1;
                self.held.push(asked);
            }
            FromScript::Ask(asked) => self.answer(asked),
            FromScript::Check(_) => {
                let mistakes = std::mem::take(&mut self.mistakes);
                self.answers.push_back(ToScript::Checked(mistakes));
            }
            FromScript::Log(text) => self.log.push(text),
            _ => {}
        }
        Ok(())
    }
}

impl Echo {
    fn answer(&mut self, PendingRequest { id, what }: PendingRequest) {
        let is_error =
            matches!(&what, ScriptRequest::Call { tool, .. } if tool.ends_with("/fails"));
        let answer = match what {
            ScriptRequest::Call { tool, input } => {
                self.heard.push(format!("{tool} {input}"));
                let input: Value = serde_json::from_str(input.get()).unwrap_or_default();
                match tool.rsplit('/').next() {
                    Some("fails") => {
                        json!({"code": "denied", "server": "s", "tool": "fails", "text": "no"})
                    }
                    Some("says_no") => {
                        json!({"content": [{"type": "text", "text": "not so"}], "isError": true})
                    }
                    Some("read_result") => json!({"content": []}),
                    Some("text") => json!({"content": [{"type": "text", "text": input["text"]}]}),
                    _ => json!({"content": [], "structuredContent": input}),
                }
            }
            // Returns five bytes per chunk, fewer in the last.
            ScriptRequest::Chunk { from, .. } => {
                let text = "one\ntwo\nthree\n\nfive";
                let end = (from + 5).min(text.len());
                let next = (end < text.len()).then_some(end);
                json!({"text": &text[from..end], "next": next})
            }
            ScriptRequest::Help { name } => json!({"name": name, "description": "d", "tags": []}),
            other => json!(format!("{other:?}")),
        };
        let answer = serde_json::value::to_raw_value(&answer).expect("the value is JSON");
        self.answers.push_back(ToScript::Answered {
            id,
            answer,
            is_error,
        });
    }
}

fn job(script: &str) -> Job {
    Job {
        script: script.to_owned(),
        args: RawValue::from_string(r#"{"n":7}"#.to_owned()).expect("the value is JSON"),
        servers: vec!["github".to_owned(), "git-hub".to_owned()],
        tools: RawValue::from_string(r#"{"git-hub":["a","b.c"]}"#.to_owned())
            .expect("the value is JSON"),
        dry_run: false,
        wall_ms: 5_000,
    }
}

fn play(script: &str, echo: &mut Echo) -> FromScript {
    run(&job(script), echo).expect("the channel is open")
}

#[track_caller]
fn returns(script: &str, expected: &str) {
    match play(script, &mut Echo::default()) {
        FromScript::Done(value) => assert_eq!(value.get(), expected, "{script}"),
        other => panic!("{script}: {other:?}"),
    }
}

#[track_caller]
fn fails(script: &str, expected: &str) {
    match play(script, &mut Echo::default()) {
        FromScript::Failed(Failed { text, place, .. }) => {
            let place = place.map(|it| it.to_string());
            let text = format!("{text} at {}", place.unwrap_or_default());
            assert!(text.contains(expected), "{script}: {text}");
        }
        other => panic!("{script}: {other:?}"),
    }
}

#[track_caller]
fn meets(script: &str, limit: Limit) {
    match play(script, &mut Echo::default()) {
        FromScript::Exceeded(met) => assert_eq!(met, limit, "{script}"),
        other => panic!("{script}: {other:?}"),
    }
}

#[test]
fn the_last_expression_or_what_is_returned_is_the_value() {
    returns("1 + 1", "2");
    returns("const a = 1;\na + args.n // behind", "8");
    returns("return { a: [1] }", r#"{"a":[1]}"#);
    returns("for (const x of [1]) { if (x) return x }", "1");
    returns("const a = 1", "null");
    returns("", "null");
    returns("async function main(args) { return args.n }", "7");
    returns(
        "export default async function main({ n }: { n: number }) { return n }",
        "7",
    );
    returns("const main = async () => 3;\nawait main()", "3");
    returns(
        "export const main = async (args: { n: number }) => args.n",
        "7",
    );
    returns("new Map([['a', 1]])", r#"{"a":1}"#);
    returns("Promise.resolve(5)", "5");
    returns("[10n, new Set([1])]", r#"["10",[1]]"#);
    returns("export default async (args) => args.n", "7");
    returns(
        "export default async function (args) { return args.n }",
        "7",
    );
    returns("export default function sum({ n }) { return n + 1 }", "8");
    returns("const main = async () => 4;\nexport default main", "4");
    returns("const main = () => 5;\nexport { main as default };", "5");
    returns("export default { a: args.n }", r#"{"a":7}"#);
    returns("(async () => { return args.n })()", "7");
    returns("So:\n```ts\n1 + 1\n```\nThat is it.", "2");
    returns("/*\n```\n*/ 7", "7");
    returns("```ts\nconst a: number = 1;\na + 1\n```\n", "2");
}

#[test]
fn types_are_taken_off_and_lines_stay() {
    let script = "interface A { a: string }\ntype B<T> = { b?: T };\n\
        const f = <T extends A>(x: T, y?: number): B<T> => ({ b: x! as T });\n\
        class C<T> implements Iterable<T> { private readonly x?: number = 1; static y!: string;\n\
        constructor(a: string) {} get(this_: number): number { return this.x!; }\n\
        *[Symbol.iterator](): Iterator<T> {} }\n\
        declare const z: number;\n\
        let v = <number>new C<string>('a').get(1) satisfies number;\n\
        function over(a: string): string;\nfunction over(a: any) { return a }\n\
        const g = async (a: number): Promise<{\n  n: number\n}> => {\n  return { n: a }\n};\n\
        const t = [1, 2] as const;\n\
        (await g(v)).n + f({ a: 'x' }).b!.a + over('y') + t.length";
    returns(script, "\"1xy2\"");
    fails(
        "const g = (a: number): {\n  n: number\n} => ({ n: a });\nlet x: string\nnope()",
        "nope is not defined; servers are github, git_hub at line 5",
    );
    fails("enum A { B }", "as const");
    fails(
        "namespace A { export const b = 1 }",
        "instead of a namespace",
    );
    fails("module A { export const b = 1 }", "instead of a namespace");
    fails("class A { @log b() {} }", "there are no decorators");
    fails("@log class A {}", "there are no decorators");
    fails("import a = b.c;", "instead of `import a = b.c`");
    fails(
        "class A {\n  constructor(private b: string) {}\n}",
        "write the field and `this.name = name`",
    );
    fails("const a = ;", "SyntaxError");
}

#[test]
fn types_that_models_write_are_known() {
    let scripts = [
        "import type { A } from 'github';",
        "import { type A } from 'github';",
        "export type { A };",
        "type A = `a-${string}` | keyof typeof globalThis | { readonly [K in 'a' | 'b']?: K };",
        "type A<T> = T extends Array<infer U> ? U : never; type B = A<string[]>[number];",
        "type A = [first: string, second?: number, ...rest: boolean[]]; const a: unique symbol = 1 as any;",
        "function f(this: any, a: number) { return a } f.call(1, 2);",
        "function f(a: unknown): a is string { return true }",
        "function f(a: unknown): asserts a is string {}",
        "abstract class A { abstract b(): void; declare c: number; static readonly d = 1; e?(): void }",
        "class A { get b(): number { return 1 } set b(to: number) {} static #c: number = 1 }",
        "class A<const T> extends Map<string, T> { override get(key: string) { return super.get(key) } }",
        "let a!: number; a = 1; const b = { c: a }!.c!;",
        "const f = <const T,>(a: T): T => a; f<number>(1);",
        "const a = { b: 1 } satisfies Record<string, number>; const { b }: { b: number } = a;",
        "for (const a of [1] as number[]) {} try {} catch (e: unknown) {}",
        "const f = async <T extends object = {}>(a?: T, ...more: T[]): Promise<void> => {}; await f<{}>();",
        "declare global { interface Window { a: string } }",
        "let f: new (...args: any[]) => object; let g: (a: string) => asserts a;",
        "function f(a: string): void; function f(a: number): void; function f(a: any) {}",
        "const a = (x: number) => x as unknown as string; const b = args?.n!;",
        "const a: { [key: string]: number; b?(): void } = {}; let c: () => { d(): void };",
        "const a = args as { n: number } | null ?? { n: 2 };",
    ];
    let is_wrong = |types: &&str| {
        let said = play(&format!("{types}\n1"), &mut Echo::default());
        !matches!(said, FromScript::Done(value) if value.get() == "1")
    };
    let wrong: Vec<&str> = scripts.into_iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn tools_are_functions_whose_values_are_values() {
    returns("(await github.create({ title: 'x' })).title", "\"x\"");
    returns(r#"await tools["git-hub"]["a.b"]({ n: 1 })"#, r#"{"n":1}"#);
    returns("await git_hub.x()", "{}");
    returns("await github.text({ text: '[1, 2]' })", "[1,2]");
    returns("await github.text({ text: 'plain' })", "\"plain\"");
    // A number that would lose precision stays text.
    returns("await github.text({ text: '12.5' })", "12.5");
    for text in ["9007199254740993", "1e999", "0.10", "12345678901234567890"] {
        let script = format!("await github.text({{ text: '{text}' }})");
        returns(&script, &format!("\"{text}\""));
    }
    returns(
        "(await github.text({ text: '[1]' }).raw).content[0].text",
        "\"[1]\"",
    );
    returns(
        "import { x as y } from 'github';\nawait y({ a: 1 })",
        r#"{"a":1}"#,
    );
    let caught = "try { await github.fails({}) } catch (e) { return [e.code, e.server, e.text] }";
    returns(caught, r#"["denied","s","no"]"#);
    returns(
        "try { await github.says_no({}) } catch (e) { return [e.code, e.tool, e.text] }",
        r#"["tool_error","says_no","not so"]"#,
    );
    fails("\nawait github.says_no({})", "ToolError: not so at line 2");
    fails("await github.create('x')", "takes one object");
    fails("tools.gitlab.x", "there is no server \"gitlab\"");
}

#[test]
fn kept_results_are_read_piece_by_piece_or_as_a_whole() {
    let count = "let n = 0; for await (const piece of result('r')PIECES) { n += 1 } n";
    returns(&count.replace("PIECES", ""), "4");
    returns(&count.replace("PIECES", ".chunks()"), "4");
    returns(&count.replace("PIECES", ".lines()"), "5");
    returns(
        "await result('r').lines()",
        r#"["one","two","three","","five"]"#,
    );
    returns("await result('r').lines(1, 2)", r#"["two","three"]"#);
    returns("await result('r').lines(4)", r#"["five"]"#);
    returns("await result('r').lines(9)", "[]");
    returns("(await result('r').text()).length", "19");
    fails("await result('r').json()", "SyntaxError");
    fails(
        "result('r').find('two')",
        "find was removed; use grep(pattern)",
    );
    fails(
        "result('r').pointer('/0')",
        "pointer was removed; use jq(filter)",
    );
    let first = "for await (const line of result('r').lines()) { return line }";
    returns(first, "\"one\"");
}

#[test]
fn calls_that_are_made_together_are_asked_together() {
    let mut echo = Echo {
        together: 4,
        ..Echo::default()
    };
    let script = "(await Promise.all([1, 2, 3].map(n => github.a({ n })))).map(r => r.n)";
    let outcome = play(script, &mut echo);
    assert!(
        matches!(&outcome, FromScript::Done(value) if value.get() == "[1,2,3]"),
        "{outcome:?}"
    );
    // The calls were held until all had arrived, and answered in reverse order.
    assert_eq!(echo.heard[0], r#"github/a {"n":3}"#);
}

#[test]
fn what_nobody_awaited_is_made_and_told() {
    let mut echo = Echo::default();
    let outcome = play(
        "github.a({ n: 1 }); github.fails({}); print('x', { a: 1 }); 1",
        &mut echo,
    );
    assert!(matches!(outcome, FromScript::Done(_)), "{outcome:?}");
    assert_eq!(echo.heard.len(), 2);
    assert_eq!(
        echo.log,
        [r#"x {"a":1}"#, "not awaited, and failed: ToolError: no"]
    );
}

#[test]
fn mistakes_in_names_are_told_before_anything_runs() {
    let mut echo = Echo {
        mistakes: vec!["line 1: no such tool".to_owned()],
        ..Echo::default()
    };
    let outcome = play("await github.a({}); await github.misspelt({})", &mut echo);
    let FromScript::Failed(Failed { text, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(text, "nothing ran. line 1: no such tool");
    assert!(echo.heard.is_empty());
}

#[test]
fn sites_of_calls_are_found_with_their_arguments() {
    let script = "const x = { a: 1 };\ngithub.one({ a: 1, 'b': 2 });\ntools['git-hub']['a.b'](x);\n\
        tools.github.two();\ngit_hub.three({ ...x });\n\
        const f = (github) => github.four({});\nx.five({})";
    let servers = ["github".to_owned(), "git-hub".to_owned()];
    let find = |script: &str| -> Vec<String> {
        let compiled = crate::compile::compile(script, &servers).expect("the script can be parsed");
        let show = |it: crate::CallSite| {
            format!("{} {}/{} {:?}", it.line, it.server, it.tool, it.arguments)
        };
        compiled.calls.into_iter().map(show).collect()
    };
    // A name that the script declares anywhere is not checked before the run.
    assert_eq!(
        find(script),
        [
            "3 git-hub/a.b None",
            "4 github/two Some([])",
            "5 git-hub/three None"
        ]
    );
    assert_eq!(
        find("github.one({ a: 1, 'b': 2 })"),
        [r#"1 github/one Some(["a", "b"])"#]
    );
}

#[test]
fn habits_are_answered_with_what_to_write_instead() {
    fails("const fs = require('fs')", "every server is a global");
    fails("const r = await fetch('http://x')", "there is no network");
    fails("return process.env.HOME", "use `args`");
    fails("import path from 'node:path'", "there is no path module");
    fails(
        "import { z } from 'zod'",
        "every server is a global already: github",
    );
    fails("eval('1')", "there is no eval");
    fails("new Function('return 1')()", "there is no Function");
    fails(
        "(() => {}).constructor('return 1')()",
        "there is no Function",
    );
    fails(
        "import json\nfor x in range(3):\n    print(x)",
        "this is Python",
    );
    fails("async def main():\n    return 1", "this is Python");
    fails(
        "fak.list({})",
        "fak is not defined; servers are github, git_hub",
    );
    fails("await import('fs')", "workspace.read");
    fails("mcp__github__list({})", "call a tool as");
    fails("SELECT 1 FROM x", "a script is TypeScript");
    fails("def main():\n    return github.list()\n", "this is Python");
}

#[test]
fn an_error_keeps_its_words_whatever_they_look_like() {
    for text in [
        "CUDA error: out of memory on device 0",
        "out of memory",
        "Maximum call stack size exceeded",
        "stack overflow",
        "fetch is not defined",
    ] {
        for class in ["Error", "RangeError", "InternalError", "ReferenceError"] {
            let script = format!("\nthrow new {class}('{text}')");
            fails(&script, &format!("{class}: {text} at line 2"));
            fails(
                &format!("\nthrow {class}('{text}')"),
                &format!("{class}: {text} at line 2"),
            );
        }
        let script = format!("class Own extends RangeError {{}} throw new Own('{text}')");
        fails(&script, &format!("RangeError: {text} at"));
        fails(&format!("throw '{text}'"), &format!("{text} at"));
    }
    // The engine's errors keep their class, and can be caught.
    returns(
        "try { 'x'.repeat(-1) } catch (e) { return e instanceof RangeError }",
        "true",
    );
    returns("new RangeError('x').constructor === RangeError", "true");
    returns(
        "const f = () => f() + 1; try { f() } catch (e) { return e.name }",
        "\"RangeError\"",
    );
    meets("'x'.repeat(2 ** 30)", Limit::Memory);
}

#[test]
fn a_time_to_sleep_that_is_none_is_an_error_of_its_argument() {
    for ms in ["1e300", "Infinity", "NaN", "-1", "'soon'", "600001", ""] {
        fails(
            &format!("await sleep({ms})"),
            "RangeError: sleep(ms) takes milliseconds from 0 to 600000; got",
        );
    }
    returns("await sleep(0); await sleep('1'); await sleep(0.4); 1", "1");
    returns("await new Promise((done) => setTimeout(done, -5)); 1", "1");
    fails("setTimeout(() => {}, 1e300)", "sleep(ms) takes");
}

#[test]
fn half_a_surrogate_pair_is_no_fault_of_ours() {
    let mut echo = Echo::default();
    let outcome = play(
        "print('a\\ud800b'); await workspace.write('x', '\\udfff'); 1",
        &mut echo,
    );
    assert!(matches!(outcome, FromScript::Done(_)), "{outcome:?}");
    assert_eq!(echo.log, ["a\u{fffd}b"]);
    fails("throw new Error('\\ud800')", "Error: \u{fffd}");
}

#[test]
fn a_script_that_cannot_be_read_is_told_with_its_column() {
    fails("const a = ;", "at line 1, column 11");
    fails(
        "type A = string;\nlet b: A = 'x', c = 5 5",
        "at line 2, column 23",
    );
    fails("foo(1,,2)", "at line 1, column 7");
    fails("  enum A { B }", "at line 1, column 3");
    fails("const ä = 'ö'; import os from 'os'", "at line 1, column 16");
}

/// Checks the log of a script.
#[track_caller]
fn logs(script: &str, expected: &[&str]) {
    let mut echo = Echo::default();
    play(script, &mut echo);
    assert_eq!(echo.log, expected, "{script}");
}

#[test]
fn members_that_a_value_does_not_have_are_told() {
    logs(
        "const list = await github.a({ content: 'x' });\n({ files: (list.entries ?? []).length })",
        &["note: line 2: the value of github.a has no \"entries\"; it has content"],
    );
    logs(
        "const list = await github.text({ text: '[1, 2]' });\nlist.items?.length",
        &["note: line 2: the value of github.text has no \"items\"; it is a list of 2"],
    );
    logs(
        "const { files = [] } = await github.text({ text: 'plain' });\nfiles.length",
        &["note: line 1: a text has no \"files\"; use its methods, or JSON.parse(text)"],
    );
    // The note is also logged if the script fails because of the missing member.
    logs(
        "const r = await github.a({ n: 1 }); r.items.length",
        &["note: line 1: the value of github.a has no \"items\"; it has n"],
    );
    logs(
        "const text = (it) => it.content ?? it; text(await github.text({ text: 'plain' })) + text(await github.a({ content: 'x' }))",
        &[],
    );
    // No note is logged if other values have the member: it is only absent here, as on the last of
    // several pages.
    logs(
        "for (const n of [{ next: 1 }, {}]) (await github.a(n)).next",
        &[],
    );
    logs(
        "const r = await github.a({ a: [1] }); r.b = 2; [{ ...r }, JSON.stringify(r), 'c' in r, r.a, r.b, r instanceof Object, r.constructor === Object]",
        &[],
    );
    logs(
        "const r = await github.text({ text: '[1, 2]' }); r.push(3); r[7]; [r.map((it) => it + 1), [...r], r.length, Array.isArray(r), r.at(-1), r.concat([1])]",
        &[],
    );
}

#[test]
fn a_value_is_used_like_any_other_but_is_no_text() {
    let object = |rest: &str| format!("const r = await github.a({{ b: 1, a: [2] }}); {rest}");
    returns(&object("r.c = 3; delete r.b; r"), r#"{"a":[2],"c":3}"#);
    returns(
        &object("const keys = []; for (const key in r) keys.push(key); keys"),
        r#"["b","a"]"#,
    );
    returns(
        &object("Object.entries({ ...r })"),
        r#"[["b",1],["a",[2]]]"#,
    );
    fails(
        &object("String(r).split('\\n').length"),
        "TypeError: the value of github.a is an object with b, a, not text",
    );
    fails(&object("`${r}`"), "JSON.stringify(value)");
    let list = |rest: &str| format!("const r = await github.text({{ text: '[1, 2]' }}); {rest}");
    returns(&list("r.push(3); r[5] = 6; r"), "[1,2,3,null,null,6]");
    returns(&list("r.length = 1; `${r}`"), "\"1\"");
    returns(
        &list("const keys = []; for (const key in r) keys.push(key); keys"),
        r#"["0","1"]"#,
    );
}

#[test]
fn each_limit_ends_a_script_and_has_its_name() {
    let mut quick = job("for (;;) {}");
    quick.wall_ms = 50;
    let outcome = run(&quick, &mut Echo::default()).expect("the channel is open");
    assert!(
        matches!(outcome, FromScript::Exceeded(Limit::Wall)),
        "{outcome:?}"
    );
    quick.script = "for (;;) { try { for (;;) {} } catch {} finally { continue } }".to_owned();
    let outcome = run(&quick, &mut Echo::default()).expect("the channel is open");
    assert!(
        matches!(outcome, FromScript::Exceeded(Limit::Wall)),
        "{outcome:?}"
    );
    quick.script = "/^(a+)+$/.test('a'.repeat(40) + 'b')".to_owned();
    let outcome = run(&quick, &mut Echo::default()).expect("the channel is open");
    assert!(
        matches!(outcome, FromScript::Exceeded(Limit::Wall)),
        "{outcome:?}"
    );
    meets(
        "const a = []; for (;;) a.push('x'.repeat(100000) + a.length)",
        Limit::Memory,
    );
    meets("const f = (n) => f(n + 1) + 1; f(0)", Limit::Depth);
    fails("await new Promise(() => {})", "is never settled");
    fails("throw null", "null was thrown");
    fails(
        "const f = () => { throw (1, null) }; f()",
        "null was thrown",
    );
    fails("await Promise.reject(null)", "null was thrown");
    returns("try { throw null } catch (e) { return e === null }", "true");
    fails("throw { a: 1 } as unknown", r#"{"a":1}"#);
}

/// Runs a script with these servers, and returns its value or its error.
fn play_with(servers: &[&str], script: &str) -> String {
    let mut job = job(script);
    job.servers = servers.iter().map(|it| (*it).to_owned()).collect();
    match run(&job, &mut Echo::default()).expect("the channel is open") {
        FromScript::Done(value) => value.get().to_owned(),
        FromScript::Failed(Failed { text, .. }) => text,
        other => panic!("{script}: {other:?}"),
    }
}

#[test]
fn a_server_is_reached_under_each_of_its_names() {
    for name in ["git_hub", "gitHub", "tools.gitHub", "tools['git-hub']"] {
        returns(&format!("await {name}.x({{ n: 1 }})"), r#"{"n":1}"#);
    }
    returns(
        "import { x } from 'gitHub'; await x({ n: 1 })",
        r#"{"n":1}"#,
    );
    // The static check knows the names too.
    let servers = ["git-hub".to_owned()];
    let compiled = crate::compile::compile("gitHub.one(); tools.gitHub.two()", &servers);
    let calls = compiled.expect("the script can be parsed").calls;
    let calls: Vec<String> = calls
        .iter()
        .map(|it| format!("{}/{}", it.server, it.tool))
        .collect();
    assert_eq!(calls, ["git-hub/one", "git-hub/two"]);
    // The name of a global of ours is no server in a call.
    let servers = ["workspace".to_owned()];
    let compiled = crate::compile::compile("workspace.read('x')", &servers);
    assert!(compiled.expect("the script can be parsed").calls.is_empty());
}

#[test]
fn a_name_of_two_servers_is_refused_before_anything_runs() {
    let two = ["nano-banana", "nano--banana"];
    let why = "nanoBanana may be nano-banana and nano--banana; write tools[\"NAME\"]";
    for script in [
        "print(1); await nanoBanana.edit({})",
        "await tools.nanoBanana.edit({})",
        "import { edit } from 'nanoBanana'",
        "const server = nanoBanana",
        "tools['nano' + 'Banana']",
    ] {
        let said = play_with(&two, script);
        assert!(said.contains(why), "{script}: {said}");
    }
    assert_eq!(
        play_with(&two, "await nano__banana.x({ n: 1 })"),
        r#"{"n":1}"#
    );
    assert_eq!(play_with(&["a-1", "a1"], "(await a1.x({ n: 1 })).n"), "1");
    assert_eq!(play_with(&two, "const nanoBanana = 1; nanoBanana"), "1");
}

#[test]
fn tools_and_their_parts_are_data() {
    returns("Object.keys(tools)", r#"["github","git-hub"]"#);
    returns("Object.keys(gitHub)", r#"["a","b.c"]"#);
    returns("await github.x(); Object.keys(github)", "[]");
    returns("['a' in gitHub, 'z' in gitHub]", "[true,false]");
    returns("await Object.values(gitHub)[0]({ n: 1 })", r#"{"n":1}"#);
    returns("typeof help()", "\"string\"");
    returns(
        "await help('gitHub/a')",
        r#"{"name":"git-hub/a","description":"d"}"#,
    );
    returns("await tools.list()", r#""List { server: None }""#);
    returns(
        "await tools.list('git_hub')",
        r#""List { server: Some(\"git-hub\") }""#,
    );
    assert_eq!(
        play_with(&["list"], "(await tools.list.x({ n: 1 })).n"),
        "1"
    );
}

#[test]
fn files_of_the_workspace_have_other_names() {
    let asks = |script: &str, verb: &str, path: &str, text: Option<&str>| {
        let (verb, path) = (verb.to_owned(), path.to_owned());
        let text = text.map(str::to_owned);
        let asked = ScriptRequest::Workspace { verb, path, text };
        returns(script, &json!(format!("{asked:?}")).to_string());
    };
    asks("await workspace.exists('a')", "exists", "a", None);
    let json = "await workspace.writeJSON('a', { n: [1] })";
    asks(json, "write", "a", Some(r#"{"n":[1]}"#));
    fails(
        "await workspace.readJSON('a')",
        "SyntaxError: a is not JSON",
    );
    asks(
        "await fs.readFile('./workspace/a/b', 'utf8')",
        "read",
        "a/b",
        None,
    );
    asks(
        "await fs.promises.readFile('workspace/a')",
        "read",
        "a",
        None,
    );
    let write = "await fs.writeFile('./workspace/a', 'x', { encoding: 'utf-8' })";
    asks(write, "write", "a", Some("x"));
    let import = "import { readFile } from 'node:fs/promises';\nawait readFile('./workspace/a')";
    asks(import, "read", "a", None);
    for path in [
        "/etc/passwd",
        "a",
        "./workspace",
        "../workspace/a",
        "./workspace/",
    ] {
        let script = format!("\nawait fs.readFile('{path}')");
        fails(&script, "fs has the files below ./workspace only");
        fails(&script, "at line 2");
    }
    fails(
        "await fs.writeFile('./workspace/a', 'x', { flag: 'a' })",
        "fs has no flag a",
    );
    fails(
        "fs.existsSync('a')",
        "there is no fs.existsSync; there are fs.readFile",
    );
    assert_eq!(
        play_with(&["fs"], "await fs.readFile({ n: 1 })"),
        r#"{"n":1}"#
    );
}
