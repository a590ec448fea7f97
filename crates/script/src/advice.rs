//! Replacements for names and syntax that scripts do not support.

/// Names that models often use, and their replacements.
const INSTEAD: [(&str, &str); 29] = [
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
        "`fs.readFile` and `fs.writeFile` are there without import, for the files of `workspace.read` and `workspace.write` below ./workspace; for others call a tool of a server",
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
        "there is no setImmediate: `await` the previous calls",
    ),
    (
        "crypto",
        "there is no crypto: `Math.random().toString(36).slice(2)` generates a name",
    ),
    ("URL", "there is no URL: parse with a regular expression"),
    (
        "URLSearchParams",
        "there is no URLSearchParams: join with `&` and encodeURIComponent",
    ),
    ("TextEncoder", "there is no TextEncoder: strings are text"),
    ("TextDecoder", "there is no TextDecoder: strings are text"),
    ("global", "use `globalThis`"),
    ("__dirname", "a script has no folder: use `workspace`"),
    ("window", "this is not a browser: use `globalThis`"),
    ("document", "this is not a browser: there is no page"),
    (
        "localStorage",
        "store text with `await workspace.write(path, text)`",
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

/// Beginnings of lines that are typical of Python.
const PYTHON: [&str; 9] = [
    "def ",
    "async def ",
    "elif ",
    "from ",
    "except",
    "import json",
    "import os",
    "import re",
    "with ",
];

/// Returns the replacement for a global name.
pub(crate) fn instead_of(name: &str) -> Option<&'static str> {
    let found = INSTEAD.iter().find(|(known, _)| *known == name);
    found.map(|(_, advice)| *advice)
}

/// Returns the replacement for a name in the text of an error: `'fetch' is not defined`,
/// `could not load module 'fs'`.
pub(crate) fn for_error(text: &str) -> Option<&'static str> {
    if let Some((_, module)) = text.split_once("could not load module ") {
        let module = module.trim_matches(['\'', '"']);
        let module = module.trim_start_matches("node:").split('/').next();
        return module.and_then(instead_of).or(instead_of("require"));
    }
    let (before, _) = text.split_once(" is not defined")?;
    let name = before.rsplit([' ', ':']).next()?;
    let name = name.trim_matches(['\'', '"', '`']);
    let is_of_client = || name.starts_with("mcp__").then(|| instead_of("callTool"));
    instead_of(name).or_else(|| is_of_client().flatten())
}

/// The advice for a script that is not TypeScript.
pub(crate) const TYPESCRIPT_ALONE: &str = "a script is TypeScript, without text around it";

/// Lists the servers, as advice for an undefined name without a replacement.
pub(crate) fn name_servers(servers: &[String]) -> String {
    let names: Vec<String> = servers
        .iter()
        .take(SERVERS_NAMED)
        .map(|it| it.replace('-', "_"))
        .collect();
    let more = if servers.len() > SERVERS_NAMED {
        ", …"
    } else {
        ""
    };
    format!("servers are {}{more}", names.join(", "))
}

/// The most servers that are listed.
const SERVERS_NAMED: usize = 12;

/// Returns true if a script that cannot be parsed looks like Python.
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
        assert!(for_error("could not load module 'node:fs/promises'").is_some());
        assert!(for_error("mcp__github__list is not defined").is_some());
    }
}
