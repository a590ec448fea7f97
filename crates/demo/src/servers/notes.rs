//! Notes, kept in memory for as long as the server runs.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::demo_server::{DemoServer, DemoTool, ToolOutcome, ToolReply, input, tool};

pub(super) fn server() -> DemoServer {
    let book = Book::default();
    DemoServer {
        name: "notes",
        instructions: "Short notes with tags. They are forgotten when the server stops.",
        tools: vec![
            add_note(&book),
            list_notes(&book),
            search_notes(&book),
            delete_note(&book),
            list_examples(),
        ],
    }
}

#[derive(Clone, Default)]
struct Book(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    notes: Vec<Note>,
    last_id: u64,
}

#[derive(Clone, Serialize)]
struct Note {
    id: u64,
    title: String,
    body: String,
    tags: Vec<String>,
}

impl Book {
    /// The notes that fit, oldest first.
    fn pick(&self, limit: usize, fits: impl Fn(&Note) -> bool) -> ToolReply {
        let pages = self.0.lock();
        let fitting: Vec<&Note> = pages.notes.iter().filter(|note| fits(note)).collect();
        let notes = &fitting[..limit.min(fitting.len())];
        ToolReply::Structured(json!({ "notes": notes, "total": fitting.len() }))
    }
}

#[derive(Deserialize)]
struct Draft {
    title: String,
    body: String,
    tags: Vec<String>,
}

fn add_note(book: &Book) -> DemoTool {
    let definition = json!({
        "name": "add_note",
        "title": "Add a note",
        "description": "Write down a new note with a title, an optional body and tags. Answers the id by which the note can be deleted.",
        "inputSchema": input(&["title"], &json!({
            "title": { "type": "string", "minLength": 1, "maxLength": 200, "description": "What the note is about, in one line" },
            "body": { "type": "string", "default": "", "description": "The note itself, any length" },
            "tags": { "type": "array", "items": { "type": "string" }, "default": [], "description": "Words to find the note by" }
        })),
        "annotations": { "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false }
    });
    let book = book.clone();
    tool(
        definition,
        move |Draft { title, body, tags }| -> ToolOutcome {
            if title.trim().is_empty() {
                return Err("a note needs a title".to_owned());
            }
            let mut pages = book.0.lock();
            pages.last_id += 1;
            let id = pages.last_id;
            let told = format!("Added note {id}: {title}");
            pages.notes.push(Note {
                id,
                title,
                body,
                tags,
            });
            Ok(ToolReply::Text(told))
        },
    )
}

#[derive(Deserialize)]
struct List {
    tag: Option<String>,
    limit: usize,
}

fn list_notes(book: &Book) -> DemoTool {
    let definition = json!({
        "name": "list_notes",
        "title": "List notes",
        "description": "List the notes that were added, oldest first, all of them or only those that carry a tag.",
        "inputSchema": input(&[], &json!({
            "tag": { "type": "string", "description": "Only notes with exactly this tag" },
            "limit": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 20, "description": "The most notes to answer" }
        })),
        "outputSchema": notes_schema(),
        "annotations": { "readOnlyHint": true, "openWorldHint": false }
    });
    let book = book.clone();
    tool(definition, move |List { tag, limit }| -> ToolOutcome {
        Ok(book.pick(limit, |note| {
            tag.as_ref().is_none_or(|tag| note.tags.contains(tag))
        }))
    })
}

#[derive(Deserialize)]
struct Search {
    query: String,
    limit: usize,
}

fn search_notes(book: &Book) -> DemoTool {
    let definition = json!({
        "name": "search_notes",
        "title": "Search notes",
        "description": "Find notes by the words they hold. Every word must occur in the title, the body or a tag; letter case does not matter.",
        "inputSchema": input(&["query"], &json!({
            "query": { "type": "string", "description": "Words to look for", "examples": ["shopping list"] },
            "limit": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 20, "description": "The most notes to answer" }
        })),
        "outputSchema": notes_schema(),
        "annotations": { "readOnlyHint": true, "openWorldHint": false }
    });
    let book = book.clone();
    tool(definition, move |Search { query, limit }| -> ToolOutcome {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        Ok(book.pick(limit, |note| {
            let text = format!("{}\n{}\n{}", note.title, note.body, note.tags.join("\n"));
            let text = text.to_lowercase();
            words.iter().all(|word| text.contains(word))
        }))
    })
}

fn notes_schema() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "notes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": { "type": "integer" },
                        "title": { "type": "string" },
                        "body": { "type": "string" },
                        "tags": { "type": "array", "items": { "type": "string" } }
                    },
                    "required": ["id", "title", "body", "tags"]
                }
            },
            "total": { "type": "integer", "description": "How many notes fit, shown or not" }
        },
        "required": ["notes", "total"]
    })
}

#[derive(Deserialize)]
struct Delete {
    id: u64,
}

fn delete_note(book: &Book) -> DemoTool {
    let definition = json!({
        "name": "delete_note",
        "title": "Delete a note",
        "description": "Delete one note for good. Its id comes from add_note, list_notes or search_notes.",
        "inputSchema": input(&["id"], &json!({
            "id": { "type": "integer", "minimum": 1, "description": "Which note" }
        })),
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    let book = book.clone();
    tool(definition, move |Delete { id }| -> ToolOutcome {
        let notes = &mut book.0.lock().notes;
        let at = notes.iter().position(|note| note.id == id);
        notes.remove(at.ok_or_else(|| format!("no note {id}; list_notes shows the ids"))?);
        let left = notes.len();
        Ok(ToolReply::Text(format!(
            "Deleted note {id}. Notes left: {left}."
        )))
    })
}

/// More than any budget of an answer, yet generated in milliseconds.
const EXAMPLES_MAX: u64 = 10_000;

#[derive(Deserialize)]
struct Examples {
    count: u64,
}

fn list_examples() -> DemoTool {
    let definition = json!({
        "name": "list_examples",
        "title": "List example notes",
        "description": "List invented example notes, as many as you ask for, the same ones each time. Long: about 200 bytes a note.",
        "inputSchema": input(&[], &json!({
            "count": { "type": "integer", "minimum": 1, "maximum": EXAMPLES_MAX, "default": 100, "description": "How many notes to list" }
        })),
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |Examples { count }| -> ToolOutcome {
        if count > EXAMPLES_MAX {
            return Err(format!("count is at most {EXAMPLES_MAX}"));
        }
        let notes: Vec<Note> = (1..=count).map(write_example).collect();
        Ok(ToolReply::Text(format!("{:#}", json!(notes))))
    })
}

/// The example of this number.
fn write_example(id: u64) -> Note {
    const ERRANDS: [&str; 4] = [
        "Buy oat milk",
        "Call Ada",
        "Water the fern",
        "Return the book",
    ];
    const PLACES: [&str; 3] = ["Harbour Road 7", "the library", "the market"];
    let pick = |all: &[&'static str]| all[usize::try_from(id).unwrap_or(0) % all.len()];
    let (errand, place) = (pick(&ERRANDS), pick(&PLACES));
    Note {
        id,
        title: format!("{errand}, {id}"),
        body: format!("{errand} on day {} of the year, at {place}.", id % 365 + 1),
        tags: vec![errand.split(' ').next().unwrap_or_default().to_lowercase()],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{call, structure_of, text_of};
    use super::server;

    #[test]
    fn a_note_is_found_until_it_is_deleted() {
        let server = server();
        let draft = json!({ "title": "Shopping", "body": "Bread and tea", "tags": ["home"] });
        assert_eq!(
            text_of(call(&server, "add_note", draft)),
            "Added note 1: Shopping"
        );
        text_of(call(&server, "add_note", json!({ "title": "Call Ada" })));

        let found = |query| structure_of(call(&server, "search_notes", json!({ "query": query })));
        assert_eq!(found("TEA shop")["notes"][0]["id"], 1);
        assert_eq!(found("tea ada")["total"], 0);

        let deleted = text_of(call(&server, "delete_note", json!({ "id": 1 })));
        assert_eq!(deleted, "Deleted note 1. Notes left: 1.");
        assert_eq!(found("tea")["total"], 0);
        let again = call(&server, "delete_note", json!({ "id": 1 }));
        assert_eq!(again, Err("no note 1; list_notes shows the ids".to_owned()));
    }

    #[test]
    fn a_list_can_be_cut_and_kept_to_a_tag() {
        let server = server();
        for (title, tag) in [("a", "x"), ("b", "y"), ("c", "x")] {
            text_of(call(
                &server,
                "add_note",
                json!({ "title": title, "tags": [tag] }),
            ));
        }
        let tagged = structure_of(call(
            &server,
            "list_notes",
            json!({ "tag": "x", "limit": 1 }),
        ));
        assert_eq!(tagged["total"], 2);
        assert_eq!(tagged["notes"].as_array().map(Vec::len), Some(1));
        let all = structure_of(call(&server, "list_notes", json!({})));
        assert_eq!(all["total"], 3);
    }

    #[test]
    fn examples_are_as_many_as_are_asked_for_and_the_same_each_time() {
        let list = |count| text_of(call(&server(), "list_examples", json!({ "count": count })));
        let notes: Vec<serde_json::Value> = serde_json::from_str(&list(400)).unwrap();
        assert_eq!((notes.len(), &notes[6]["id"]), (400, &json!(7)));
        assert_eq!(list(400), list(400));
        let refusal = call(&server(), "list_examples", json!({ "count": 10_001 }));
        assert_eq!(refusal, Err("count is at most 10000".to_owned()));
    }

    #[test]
    fn a_note_without_a_title_is_refused() {
        let refusal = call(&server(), "add_note", json!({ "title": " " }));
        assert_eq!(refusal, Err("a note needs a title".to_owned()));
    }
}
