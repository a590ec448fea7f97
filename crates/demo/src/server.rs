//! The MCP server of the demo: notes that it keeps in memory, and a tool that ends it.

use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::io::stdio_pipes,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// The name of the server in the configuration of the demo.
pub(crate) const NAME: &str = "notes";

/// More than any budget of an answer, yet generated in milliseconds.
const EXAMPLES_MAX: u64 = 10_000;

/// Serves the demo's tools over standard input and output until the client closes its end.
pub async fn serve() -> anyhow::Result<()> {
    let session = NoteServer::default().serve(stdio_pipes()).await?;
    session.waiting().await?;
    Ok(())
}

#[derive(Debug, Default)]
struct NoteServer {
    notes: Mutex<Vec<Note>>,
}

#[derive(Debug, Clone, Serialize)]
struct Note {
    id: u64,
    title: String,
    body: String,
}

#[derive(Deserialize)]
struct AddArguments {
    title: String,
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
}

#[derive(Deserialize)]
struct ExampleArguments {
    count: u64,
}

fn definitions() -> Vec<Tool> {
    let definitions = json!([
        {
            "name": "add_note",
            "title": "Add a note",
            "description": "Write down a new note with a title and an optional body. Returns the number of the note.",
            "inputSchema": object_schema(&["title"], &json!({
                "title": { "type": "string", "minLength": 1, "maxLength": 200, "description": "The subject of the note, in one line" },
                "body": { "type": "string", "default": "", "description": "The text of the note" }
            })),
            "annotations": { "readOnlyHint": false, "destructiveHint": false, "openWorldHint": false }
        },
        {
            "name": "search_notes",
            "title": "Search notes",
            "description": "Find notes by their words. Every word must occur in the title or the body; letter case does not matter.",
            "inputSchema": object_schema(&["query"], &json!({
                "query": { "type": "string", "description": "The words to look for", "examples": ["shopping list"] }
            })),
            "annotations": { "readOnlyHint": true, "openWorldHint": false }
        },
        {
            "name": "list_examples",
            "title": "List example notes",
            "description": "List a number of invented example notes, the same each time. Long: about 150 bytes a note.",
            "inputSchema": object_schema(&["count"], &json!({
                "count": { "type": "integer", "minimum": 1, "maximum": EXAMPLES_MAX, "description": "The number of notes to list" }
            })),
            "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
        },
        {
            "name": "crash",
            "title": "Crash",
            "description": "End the server process during the call, without an answer. All notes are lost.",
            "inputSchema": object_schema(&[], &json!({})),
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "openWorldHint": false }
        }
    ]);
    serde_json::from_value(definitions).expect("the definitions are valid, which a test proves")
}

fn object_schema(required: &[&str], properties: &Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

impl NoteServer {
    /// Runs a tool. The error is a text for the model. `crash` ends this process.
    fn run(&self, request: CallToolRequestParams) -> Result<String, String> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        match &*request.name {
            "add_note" => self.add(parse(arguments)?),
            "search_notes" => Ok(self.search(&parse(arguments)?)),
            "list_examples" => list_examples(&parse(arguments)?),
            "crash" => std::process::exit(1),
            name => Err(format!("there is no tool `{name}`")),
        }
    }

    fn add(&self, AddArguments { title, body }: AddArguments) -> Result<String, String> {
        if title.trim().is_empty() {
            return Err("a note needs a title".to_owned());
        }
        let mut notes = self.notes.lock();
        let id = notes.len() as u64 + 1;
        let answer = format!("Added note {id}: {title}");
        notes.push(Note { id, title, body });
        Ok(answer)
    }

    fn search(&self, arguments: &SearchArguments) -> String {
        let query = arguments.query.to_lowercase();
        let is_found = |note: &&Note| {
            let text = format!("{}\n{}", note.title, note.body).to_lowercase();
            query.split_whitespace().all(|word| text.contains(word))
        };
        let notes = self.notes.lock();
        let found: Vec<&Note> = notes.iter().filter(is_found).collect();
        json!({ "total": found.len(), "notes": found }).to_string()
    }
}

fn parse<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| format!("bad arguments: {error}"))
}

fn list_examples(arguments: &ExampleArguments) -> Result<String, String> {
    if arguments.count > EXAMPLES_MAX {
        return Err(format!("count is at most {EXAMPLES_MAX}"));
    }
    let notes: Vec<Note> = (1..=arguments.count).map(write_example).collect();
    Ok(format!("{:#}", json!(notes)))
}

fn write_example(id: u64) -> Note {
    const ERRANDS: [&str; 3] = ["Call Ada", "Water the fern", "Return the book"];
    let errand = ERRANDS[usize::try_from(id).unwrap_or(0) % ERRANDS.len()];
    Note {
        id,
        title: format!("{errand}, {id}"),
        body: format!("{errand} on day {} of the year.", id % 365 + 1),
    }
}

impl ServerHandler for NoteServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("proxy-demo", env!("CARGO_PKG_VERSION")))
            .with_instructions("Short notes. They are lost when the server stops.")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(definitions()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let result = match self.run(request) {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        };
        Ok(result.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{NoteServer, definitions};

    fn call(server: &NoteServer, tool: &str, arguments: &Value) -> Result<String, String> {
        let request = json!({ "name": tool, "arguments": arguments });
        server.run(serde_json::from_value(request).unwrap())
    }

    #[test]
    fn every_definition_is_described() {
        for tool in definitions() {
            let properties = tool.input_schema["properties"].as_object().unwrap();
            assert!(tool.description.is_some(), "{}", tool.name);
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{}: {name}", tool.name);
            }
        }
    }

    #[test]
    fn a_note_is_found_by_all_of_its_words() {
        let server = NoteServer::default();
        let note = json!({ "title": "Shopping", "body": "Bread and tea" });
        let added = call(&server, "add_note", &note).unwrap();
        assert_eq!(added, "Added note 1: Shopping");
        call(&server, "add_note", &json!({ "title": "Call Ada" })).unwrap();
        let total = |query| {
            let found = call(&server, "search_notes", &json!({ "query": query })).unwrap();
            serde_json::from_str::<Value>(&found).unwrap()["total"].clone()
        };
        assert_eq!((total("TEA shop"), total("tea ada")), (json!(1), json!(0)));
    }

    #[test]
    fn bad_arguments_are_refused_with_a_reason() {
        let server = NoteServer::default();
        for (tool, arguments, reason) in [
            ("add_note", json!({ "title": " " }), "a note needs a title"),
            (
                "search_notes",
                json!({}),
                "bad arguments: missing field `query`",
            ),
            (
                "list_examples",
                json!({ "count": 10_001 }),
                "count is at most 10000",
            ),
            ("delete", json!({}), "there is no tool `delete`"),
        ] {
            assert_eq!(call(&server, tool, &arguments), Err(reason.to_owned()));
        }
    }

    #[test]
    fn the_examples_have_the_requested_number() {
        let list = call(
            &NoteServer::default(),
            "list_examples",
            &json!({ "count": 400 }),
        );
        let notes: Vec<Value> = serde_json::from_str(&list.unwrap()).unwrap();
        assert_eq!((notes.len(), &notes[6]["id"]), (400, &json!(7)));
    }
}
