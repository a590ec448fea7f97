//! The lists of a server from the text of a snapshot. Anyone may have written it, so the limits of a survey
//! apply.

use std::{collections::BTreeSet, time::SystemTime};

use jsonrpc::mcp::{Revision, Transport};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tool::{Capability, ItemKind};

use super::{Survey, SurveyReader, offer};
use crate::{ServerInfo, Spoken, limits::LIST_BYTES_MAX};

/// The longest text, in bytes: all lists of a server.
pub const SNAPSHOT_BYTES_MAX: usize = LIST_BYTES_MAX;

#[derive(Deserialize)]
struct KeptSnapshot<'a> {
    head: KeptHead,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
struct KeptHead {
    server_name: String,
    server_version: String,
    protocol: String,
    transport: Option<String>,
    #[serde(default)]
    asking_calls: Vec<String>,
    instructions: Option<String>,
    capabilities: BTreeSet<Capability>,
}

impl Survey {
    /// Reads the text of a snapshot that did not come from our state folder.
    pub fn of_snapshot(text: &str) -> Result<Self, String> {
        let kept: KeptSnapshot<'_> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let head = kept.head;
        let transport = head.transport.as_deref().and_then(Transport::parse);
        let info = ServerInfo {
            name: Some(head.server_name),
            version: Some(head.server_version),
            instructions: head.instructions,
            spoken: Spoken {
                revision: Revision::named(printable::one_line_of(&head.protocol, 20)),
                transport: transport.unwrap_or_default(),
            },
            offers_tools: true,
            capabilities: head.capabilities,
        };
        let (offer, mut dropped) = offer::read_kept(text, info.capabilities.clone());
        let mut reading = SurveyReader::new(info.bounded());
        reading.take(&kept.tools);
        let mut survey = reading.end(None);
        survey.dropped.append(&mut dropped);
        Ok(Self {
            offer,
            asking_calls: head.asking_calls.clone(),
            asked_at: SystemTime::now(),
            ..survey
        })
    }

    /// Writes the lists in the form that [`Survey::of_snapshot`] reads.
    pub fn snapshot_text(&self) -> String {
        let spoken = &self.about.spoken;
        let head = KeptHead {
            server_name: self.about.name.clone().unwrap_or_default(),
            server_version: self.about.version.clone().unwrap_or_default(),
            protocol: spoken.revision.as_str().to_owned(),
            transport: Some(spoken.transport.as_str().to_owned()),
            asking_calls: self.asking_calls.clone(),
            instructions: self.about.instructions.clone(),
            capabilities: self.offer.capabilities.clone(),
        };
        let mut text = format!(
            "{{\"head\":{}",
            serde_json::to_value(head).unwrap_or_default()
        );
        let tools = self.tools.iter().map(tool::Tool::json);
        add_list(&mut text, "tools", tools);
        for kind in ItemKind::ALL {
            let items = self.offer.list(kind).iter().map(tool::OfferItem::json);
            add_list(&mut text, kind.list_key(), items);
        }
        text.push('}');
        text
    }
}

fn add_list<'a>(text: &mut String, key: &str, items: impl Iterator<Item = &'a str>) {
    let items: Vec<&str> = items.collect();
    text.push_str(&format!(",\"{key}\":[{}]", items.join(",")));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Survey;
    use crate::limits::{ABOUT_CHARS_MAX, DROPPED_REASONS_MAX, TOOL_BYTES_MAX, TOOLS_MAX};

    fn read(tools: &Value) -> Survey {
        let text = json!({
            "head": {
                "server_name": "a\u{1b}[2J\n".repeat(200), "server_version": "1", "protocol": "2025-06-18",
                "transport": "sse", "asking_calls": ["tools/call ask"], "instructions": "Use it.\u{202e}",
                "capabilities": ["prompts"],
            },
            "tools": tools, "prompts": [{"name": "p"}, {"name": "p"}, 7],
        });
        Survey::of_snapshot(&text.to_string()).unwrap()
    }

    #[test]
    fn the_text_of_a_snapshot_is_bounded_like_the_answers_of_a_server() {
        let tool =
            |name: &str, chars: usize| json!({"name": name, "description": "x".repeat(chars)});
        let survey = read(&json!([
            tool("a", 1),
            tool("a", 1),
            tool("big", TOOL_BYTES_MAX),
            7
        ]));
        assert_eq!((survey.tools.len(), survey.offer.prompts.len()), (1, 1));
        assert_eq!(survey.dropped.len(), 3 + 2, "{:?}", survey.dropped);
        let name = survey.about.name.unwrap();
        assert!(
            name.chars().count() <= ABOUT_CHARS_MAX + 1 && !name.contains('\n'),
            "{name}"
        );
        assert_eq!(survey.about.instructions.as_deref(), Some("Use it."));
        assert_eq!(survey.asking_calls, ["tools/call ask"]);

        let many: Vec<Value> = (0..TOOLS_MAX + 500)
            .map(|n| tool(&n.to_string(), 0))
            .collect();
        let survey = read(&many.into());
        assert_eq!(survey.tools.len(), TOOLS_MAX);
        assert!(survey.dropped.len() <= DROPPED_REASONS_MAX + 3);
        assert!(Survey::of_snapshot("[]").is_err());
    }

    #[test]
    fn a_survey_is_the_same_after_it_was_written_and_read() {
        let survey =
            read(&json!([{"name": "a", "inputSchema": {"b": 1.0, "a": "\u{e9}"}}, {"name": "b"}]));
        let again = Survey::of_snapshot(&survey.snapshot_text()).unwrap();
        let texts = |survey: &Survey| -> Vec<String> {
            survey.tools.iter().map(|it| it.json().to_owned()).collect()
        };
        assert_eq!(texts(&again), texts(&survey));
        assert_eq!(again.about, survey.about);
        assert_eq!(
            (again.offer, again.asking_calls),
            (survey.offer, survey.asking_calls)
        );
    }
}
