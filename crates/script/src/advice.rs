//! What to write instead of what a script of ours does not have.

/// Names that models reach for, and what does the same here.
const INSTEAD: [(&str, &str); 22] = [
    (
        "require",
        "there are no modules: every server is a global already, as in `await github.list_issues({...})`",
    ),
    ("module", "end with `return value`"),
    ("exports", "end with `return value`"),
    (
        "fetch",
        "there is no network: call a tool of a server; `await search(\"fetch url\")` finds one",
    ),
    (
        "axios",
        "there is no network: call a tool of a server; `await search(\"fetch url\")` finds one",
    ),
    (
        "XMLHttpRequest",
        "there is no network: call a tool of a server",
    ),
    ("WebSocket", "there is no network: call a tool of a server"),
    (
        "process",
        "there is no process and no environment: use `args`; end with `return value`",
    ),
    (
        "Deno",
        "there is no Deno: use `args`, `workspace.read(path)`, `workspace.write(path, text)`",
    ),
    (
        "Bun",
        "there is no Bun: use `args`, `workspace.read(path)`, `workspace.write(path, text)`",
    ),
    (
        "fs",
        "there are no files but `await workspace.read(path)` and `await workspace.write(path, text)`; for others call a tool of a server",
    ),
    (
        "path",
        "there is no path module: join with `/` in a template",
    ),
    ("Buffer", "there is no Buffer: strings are text"),
    (
        "setInterval",
        "there is no setInterval: loop with `await sleep(ms)`",
    ),
    (
        "setImmediate",
        "there is no setImmediate: `await` what has to be done first",
    ),
    ("window", "this is no browser: use `globalThis`"),
    ("document", "this is no browser: there is no page"),
    (
        "localStorage",
        "keep text with `await workspace.write(path, text)`",
    ),
    (
        "mcp",
        "every server is a global already: `await server.tool({...})`, or `await tools[\"server\"][\"tool\"]({...})`",
    ),
    (
        "callTool",
        "call a tool as `await server.tool({...})`, or `await tools[\"server\"][\"tool\"]({...})`",
    ),
    ("eval", "there is no eval: write the code into the script"),
    (
        "Function",
        "there is no Function constructor: write a function",
    ),
];

/// What Python looks like, at the beginning of a line.
const PYTHON: [&str; 8] = [
    "def ",
    "elif ",
    "from ",
    "except",
    "import json",
    "import os",
    "import re",
    "with ",
];

/// What to write instead of a global name.
pub(crate) fn instead_of(name: &str) -> Option<&'static str> {
    let found = INSTEAD.iter().find(|(known, _)| *known == name);
    found.map(|(_, advice)| *advice)
}

/// The same for the text of an error: `'fetch' is not defined`.
pub(crate) fn for_error(text: &str) -> Option<&'static str> {
    let (before, _) = text.split_once(" is not defined")?;
    let name = before.rsplit([' ', ':']).next()?;
    instead_of(name.trim_matches(['\'', '"', '`']))
}

/// Whether a script that cannot be read is one of Python's.
pub(crate) fn is_python(script: &str) -> bool {
    script.lines().any(|line| {
        let line = line.trim();
        let begins = PYTHON.iter().any(|word| line.starts_with(word));
        let block = ["for ", "if ", "while ", "else", "try"];
        let is_block = block.iter().any(|word| line.starts_with(word));
        let is_python = begins && !line.ends_with([';', '{', '}']);
        line.ends_with(':') && (begins || is_block)
            || is_python && !line.contains(['"', '\'', '(', '{'])
            || line.starts_with("print(f")
    })
}

/// The advice for Python.
pub(crate) const JAVASCRIPT_INSTEAD: &str = "this is Python; write TypeScript: \
    `const issues = await github.list_issues({ state: \"open\" }); return issues.length`";

#[cfg(test)]
mod tests {
    use super::{for_error, is_python};

    #[test]
    fn python_is_known_and_typescript_is_not_taken_for_it() {
        assert!(is_python("def main():\n    return 1"));
        assert!(is_python("for x in range(3):\n    print(x)"));
        assert!(is_python("print(f\"{x}\")"));
        let switch = "switch (a) {\n  case 1:\n    b();\n  default:\n}\nconst x = { with: 1 }";
        assert!(!is_python(switch));
        assert!(!is_python("import { a } from \"github\";\nreturn a"));
    }

    #[test]
    fn a_name_that_is_not_there_has_its_advice() {
        let advice = for_error("ReferenceError: 'Buffer' is not defined");
        assert!(advice.is_some_and(|it| it.contains("strings are text")));
        assert!(for_error("ReferenceError: fetch is not defined").is_some());
        assert!(for_error("ReferenceError: mine is not defined").is_none());
    }
}
