//! The definitions of the built-in server `proxy`: tools that reach a model through the three
//! besides the tools of servers.

use registry::Entry;
use tool::{ServerName, Tool};

pub(super) const READ_RESULT: &str = "read_result";
pub(super) const CALL_MANY: &str = "call_many";

const TOOLS: [&str; 2] = [
    concat!(
        r#"{"name":"read_result","#,
        r#""description":"Read on in a result that was cut, by the handle its footer names. Say one of: part (by number; all parts joined are the whole), offset and limit (lines or bytes), grep, pointer, select, find.","#,
        r#""inputSchema":{"type":"object","properties":{"#,
        r#""handle":{"type":"string"},"#,
        r#""part":{"type":"integer","minimum":1},"#,
        r#""offset":{"type":"integer","description":"lines (or bytes, or matches of grep) to pass over; negative counts from the end"},"#,
        r#""limit":{"type":"integer","minimum":1,"description":"how many lines, bytes or matches"},"#,
        r#""unit":{"enum":["lines","bytes"],"default":"lines","description":"of offset and limit"},"#,
        r#""grep":{"type":"string","description":"regular expression; answers matching lines with numbers and two lines around"},"#,
        r#""pointer":{"type":"string","description":"JSON pointer, such as /items/3/name"},"#,
        r#""select":{"type":"string","description":"jq expression, such as [.items[] | {id, title}]"},"#,
        r#""find":{"type":"string","description":"words; answers the passages that fit best"}"#,
        r#"},"required":["handle"]},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    ),
    concat!(
        r#"{"name":"call_many","#,
        r#""description":"Make several calls in one turn, up to 16 of them in parallel. The answers come in the order of the calls, each marked; one that fails does not hide the others.","#,
        r#""inputSchema":{"type":"object","properties":{"#,
        r#""calls":{"type":"array","minItems":1,"maxItems":64,"items":{"type":"object","properties":{"#,
        r#""tool_name":{"type":"string"},"tool_input":{"type":"object"}}}},"#,
        r#""stop_on_error":{"type":"boolean","default":false,"description":"one call after the other; the first that fails ends it"}"#,
        r#"},"required":["calls"]},"#,
        r#""annotations":{"readOnlyHint":false,"openWorldHint":true}}"#,
    ),
];

pub(super) fn tools() -> Vec<Tool> {
    let parse = |json: &&str| Tool::parse(json).expect("our own definitions can be read");
    TOOLS.iter().map(parse).collect()
}

pub(super) fn is_own(entry: &Entry) -> bool {
    entry.at.server == ServerName::built_in()
}

#[cfg(test)]
mod tests {
    #[test]
    fn our_own_definitions_can_be_read() {
        let names: Vec<String> = super::tools()
            .iter()
            .map(|tool| tool.name().to_owned())
            .collect();
        assert_eq!(names, [super::READ_RESULT, super::CALL_MANY]);
    }
}
