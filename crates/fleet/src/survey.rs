//! Surveys: a server's whole `tools/list` and its other lists, page by page, with a limit on every
//! element.

mod apps;
mod kept;
mod offer;

pub use kept::SNAPSHOT_BYTES_MAX;

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tool::{Capability, Offer, Tool};

use crate::{
    Failure, ServerInfo, SurveyError,
    error::RequestError,
    limits::{
        DROPPED_REASONS_MAX, LIST_BYTES_MAX, PAGES_MAX, SURVEY_TIMEOUT, TOOL_BYTES_MAX, TOOLS_MAX,
    },
    link::Link,
    server::{LeasedLink, Server},
};

/// The tools and other items of a server, as it lists them now.
#[derive(Debug)]
pub struct Survey {
    /// In the server's order, each name once.
    pub tools: Vec<Tool>,
    /// Everything that it offers besides tools.
    pub offer: Offer,
    /// The reasons why elements were left out, up to a limit.
    pub dropped: Vec<String>,
    /// From the handshake of the connection.
    pub about: ServerInfo,
    /// The time for which the server declares its list valid (revision 2026-07-28).
    pub time_to_live: Option<Duration>,
    /// The calls during which the server asked questions that name no call, such as `tools/call NAME`.
    pub asking_calls: Vec<String>,
    /// The time of the request.
    pub asked_at: SystemTime,
}

impl Survey {
    /// Leaves out the tools whose arguments cannot be sent as the headers that they name.
    fn leave_out_invalid_headers(&mut self) {
        let Self { tools, dropped, .. } = self;
        tools.retain(|tool| {
            let checked = tool.check_header_arguments();
            let invalid = checked
                .as_ref()
                .err()
                .filter(|_| dropped.len() < DROPPED_REASONS_MAX);
            dropped.extend(invalid.map(|why| format!("`{}`: {why}", tool.name())));
            checked.is_ok()
        });
    }
}

/// Reads every page of the list over an open connection.
pub(crate) async fn survey_leased(
    server: &Server,
    leased: LeasedLink,
) -> Result<Survey, SurveyError> {
    let read = timeout(SURVEY_TIMEOUT, read_pages(&leased.link)).await;
    let failure = match read {
        Ok(Ok(mut survey)) => {
            let (offer, dropped) = offer::read(&leased.link).await;
            survey.offer = offer;
            let (apps, unread) =
                apps::read(&leased.link, &survey.tools, &survey.offer.resources).await;
            survey.offer.apps = apps;
            survey.dropped.extend(unread);
            if survey.about.spoken.may_send_header_arguments() {
                survey.leave_out_invalid_headers();
            }
            // This connection may be the one with a handshake.
            if let Some(newest) = server.eras.newest() {
                survey.about.spoken = newest;
            }
            let listens = survey.about.spoken.revision.is_stateless();
            if listens && survey.offer.capabilities.contains(&Capability::Resources) {
                survey.offer.capabilities.insert(Capability::Subscribe);
            }
            survey.asking_calls = server.asking.habits.list_asking();
            survey.dropped.extend(dropped);
            return Ok(survey);
        }
        Ok(Err(RequestError::Lost(_) | RequestError::Unsent)) => leased.release().why_ended().await,
        Ok(Err(RequestError::Denied(denied))) => leased.link.denial(denied),
        Ok(Err(error @ RequestError::Protocol(_))) => {
            Failure::new(format!("`tools/list` failed: {error}"))
        }
        Ok(Err(error)) => Failure::new(error.to_string()),
        Err(_) => Failure::new(format!(
            "`tools/list` took longer than {} s",
            SURVEY_TIMEOUT.as_secs()
        )),
    };
    Err(SurveyError { failure })
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor", default)]
    next_cursor: Option<String>,
    #[serde(borrow, rename = "ttlMs", default)]
    ttl_ms: Option<&'a RawValue>,
}

async fn read_pages(link: &Arc<Link>) -> Result<Survey, RequestError> {
    let mut reading = SurveyReader::new(link.about.clone());
    let mut cursors: Vec<String> = Vec::new();
    for _ in 0..PAGES_MAX {
        let answer = match link
            .list("tools/list", cursors.last().map(String::as_str))
            .await
        {
            Err(RequestError::Protocol(_)) if !reading.survey.about.offers_tools => {
                return Ok(reading.end(None));
            }
            other => other?,
        };
        let page: Page<'_> = serde_json::from_str(answer.as_str())
            .map_err(|error| RequestError::Failed(format!("`tools/list` is malformed: {error}")))?;
        reading.bytes = reading.bytes.saturating_add(answer.len());
        reading.take(&page.tools);
        let ttl_ms = page.ttl_ms.and_then(|raw| raw.get().parse::<u64>().ok());
        reading.survey.time_to_live = ttl_ms.filter(|ms| *ms > 0).map(Duration::from_millis);
        let Some(cursor) = page.next_cursor else {
            return Ok(reading.end(None));
        };
        if let Some(why) = reading.is_full() {
            return Ok(reading.end(Some(why)));
        }
        if cursors.contains(&cursor) {
            let why = "the list repeats a page".to_owned();
            return Ok(reading.end(Some(why)));
        }
        cursors.push(cursor);
    }
    let why = format!("the list goes on after {PAGES_MAX} pages");
    Ok(reading.end(Some(why)))
}

struct SurveyReader {
    survey: Survey,
    names: HashSet<String>,
    /// The size of all pages so far.
    bytes: usize,
    /// The number of reasons that were not kept.
    untold: usize,
}

impl SurveyReader {
    fn new(about: ServerInfo) -> Self {
        Self {
            survey: Survey {
                tools: Vec::new(),
                offer: Offer::default(),
                dropped: Vec::new(),
                about,
                time_to_live: None,
                asking_calls: Vec::new(),
                asked_at: SystemTime::now(),
            },
            names: HashSet::new(),
            bytes: 0,
            untold: 0,
        }
    }

    fn take(&mut self, page: &[&RawValue]) {
        for raw in page {
            match self.read(raw.get()) {
                Ok(tool) => {
                    self.names.insert(tool.name().to_owned());
                    self.survey.tools.push(tool);
                }
                Err(_) if self.survey.dropped.len() >= DROPPED_REASONS_MAX => self.untold += 1,
                Err(why) => self.survey.dropped.push(why),
            }
        }
    }

    fn read(&self, json: &str) -> Result<Tool, String> {
        let tool = Tool::parse(json).map_err(|error| error.to_string())?;
        let name = tool.name();
        if json.len() > TOOL_BYTES_MAX {
            let bytes = json.len();
            return Err(format!(
                "`{name}`: its definition has {bytes} bytes, over {TOOL_BYTES_MAX}"
            ));
        }
        if self.survey.tools.len() >= TOOLS_MAX {
            return Err(format!("`{name}`: over {TOOLS_MAX} tools"));
        }
        if self.names.contains(name) {
            return Err(format!("`{name}` is listed twice"));
        }
        Ok(tool)
    }

    /// Returns the reason why no further page is read, if there is one.
    fn is_full(&self) -> Option<String> {
        if self.survey.tools.len() >= TOOLS_MAX {
            return Some(format!("the list goes on after {TOOLS_MAX} tools"));
        }
        let is_long = self.bytes >= LIST_BYTES_MAX;
        is_long.then(|| format!("the list goes on after {LIST_BYTES_MAX} bytes"))
    }

    fn end(mut self, why: Option<String>) -> Survey {
        if self.untold > 0 {
            self.survey.dropped.push(format!("{} more", self.untold));
        }
        self.survey.dropped.extend(why);
        self.survey
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;

    fn read(pages: &[Vec<Value>]) -> SurveyReader {
        let mut reading = SurveyReader::new(ServerInfo::default());
        for page in pages {
            let raws: Vec<_> = page.iter().map(|it| to_raw_value(it).unwrap()).collect();
            let raws: Vec<&RawValue> = raws.iter().map(AsRef::as_ref).collect();
            reading.bytes += raws.iter().map(|raw| raw.get().len()).sum::<usize>();
            reading.take(&raws);
        }
        reading
    }

    #[test]
    fn a_definition_over_its_bound_is_left_out_with_a_reason() {
        let long = |bytes: usize| json!({"name": "big", "description": "x".repeat(bytes)});
        let fits = TOOL_BYTES_MAX - long(0).to_string().len();
        let survey = read(&[vec![long(fits)]]).end(None);
        assert_eq!((survey.tools.len(), survey.dropped.len()), (1, 0));
        let survey = read(&[vec![long(fits + 1), json!({"name": "small"})]]).end(None);
        assert_eq!(survey.tools.len(), 1);
        assert_eq!(
            survey.dropped,
            ["`big`: its definition has 1048577 bytes, over 1048576"]
        );
    }

    #[test]
    fn a_list_over_its_bound_is_read_no_further() {
        let page = |first: usize| -> Vec<Value> {
            let name = |nth: usize| format!("t{}", first + nth);
            let tool = |nth| json!({"name": name(nth), "description": "x".repeat(1_000_000)});
            (0..17).map(tool).collect()
        };
        assert_eq!(read(&[page(0)]).is_full(), None);
        assert_eq!(
            read(&[page(0), page(17)]).is_full().as_deref(),
            Some("the list goes on after 33554432 bytes")
        );
    }

    #[test]
    fn a_tool_with_an_invalid_header_is_left_out_with_a_reason() {
        let tool = |name: &str, header: &str| {
            let property = json!({"type": "string", "x-mcp-header": header});
            json!({"name": name, "inputSchema": {"properties": {"a": property}}})
        };
        let page = vec![
            tool("good", "A"),
            tool("bad", "A B"),
            json!({"name": "plain"}),
        ];
        let mut survey = read(&[page]).end(None);
        survey.leave_out_invalid_headers();
        let names: Vec<_> = survey.tools.iter().map(Tool::name).collect();
        assert_eq!(names, ["good", "plain"]);
        assert_eq!(
            survey.dropped,
            ["`bad`: `a`: `x-mcp-header` is \"A B\", which is no name of a header"]
        );
    }

    #[test]
    fn reasons_are_bounded_as_well() {
        let survey = read(&[vec![json!(7); 100_000]]).end(Some("the end".to_owned()));
        let dropped = survey.dropped;
        assert_eq!(dropped.len(), DROPPED_REASONS_MAX + 2);
        assert_eq!(&dropped[DROPPED_REASONS_MAX..], ["99900 more", "the end"]);
    }
}
