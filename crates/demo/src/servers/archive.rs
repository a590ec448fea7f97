//! A lot of data: records and logs made from a seed, the same on every machine.

use serde::Deserialize;
use serde_json::{Value, json};

use super::demo_server::{Answer, DemoServer, DemoTool, Reply, tool};

/// More than any budget, and still made in milliseconds.
const RECORDS_MAX: u64 = 10_000;
const LINES_MAX: u64 = 100_000;

pub(super) fn server() -> DemoServer {
    DemoServer {
        name: "archive",
        instructions: "Invented orders and logs, as many as you ask for. Answers can be very long.",
        tools: vec![
            list_records(),
            get_record(),
            read_log(),
            summarize_records(),
        ],
    }
}

#[derive(Deserialize)]
struct Records {
    #[serde(default = "count_default")]
    count: u64,
    #[serde(default = "seed_default")]
    seed: u64,
    status: Option<String>,
}

fn count_default() -> u64 {
    100
}

fn seed_default() -> u64 {
    1
}

impl Records {
    fn all(&self) -> Result<Vec<Value>, String> {
        let count = at_most(self.count, RECORDS_MAX, "records")?;
        let wanted = |record: &Value| self.status.as_ref().is_none_or(|s| record["status"] == **s);
        Ok((1..=count)
            .map(|id| record(self.seed, id))
            .filter(wanted)
            .collect())
    }
}

fn at_most(count: u64, max: u64, what: &str) -> Result<u64, String> {
    if count > max {
        Err(format!("{count} {what} are more than the {max} there are"))
    } else {
        Ok(count)
    }
}

fn list_records() -> DemoTool {
    let definition = json!({
        "name": "list_records",
        "title": "List order records",
        "description": "List the archive's order records as a JSON array, each with customer, items, prices, address and history. Long: about 700 bytes a record.",
        "inputSchema": records_schema(),
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |records: Records| -> Answer {
        let records = Value::Array(records.all()?);
        Ok(Reply::Text(format!("{records:#}")))
    })
}

fn summarize_records() -> DemoTool {
    let definition = json!({
        "name": "summarize_records",
        "title": "Summarize order records",
        "description": "Count the archive's order records by status and add up what they cost, without listing them.",
        "inputSchema": records_schema(),
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |records: Records| -> Answer {
        let records = records.all()?;
        let of = |status: &str| records.iter().filter(|it| it["status"] == status).count();
        let by_status: serde_json::Map<String, Value> = STATUSES
            .iter()
            .map(|&status| (status.to_owned(), json!(of(status))))
            .collect();
        let total: u64 = records
            .iter()
            .filter_map(|it| it["total_cents"].as_u64())
            .sum();
        Ok(Reply::Structured(json!({
            "records": records.len(), "by_status": by_status, "total_cents": total
        })))
    })
}

fn records_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "count": { "type": "integer", "minimum": 0, "maximum": RECORDS_MAX, "default": 100, "description": "How many records to look at, from the first" },
            "seed": { "type": "integer", "minimum": 0, "default": 1, "description": "Which archive: another seed makes other records" },
            "status": { "type": "string", "enum": STATUSES, "description": "Only records with this status" }
        },
        "required": [],
        "additionalProperties": false
    })
}

#[derive(Deserialize)]
struct One {
    id: u64,
    #[serde(default = "seed_default")]
    seed: u64,
}

fn get_record() -> DemoTool {
    let definition = json!({
        "name": "get_record",
        "title": "Get one order record",
        "description": "Get a single order record of the archive by its number, with customer, items, prices, address and history.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": { "type": "integer", "minimum": 1, "maximum": RECORDS_MAX, "description": "The record's number" },
                "seed": { "type": "integer", "minimum": 0, "default": 1, "description": "Which archive the record is in" }
            },
            "required": ["id"],
            "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |One { id, seed }| -> Answer {
        if (1..=RECORDS_MAX).contains(&id) {
            Ok(Reply::Structured(record(seed, id)))
        } else {
            Err(format!(
                "no record {id}; they are numbered 1 to {RECORDS_MAX}"
            ))
        }
    })
}

#[derive(Deserialize)]
struct Log {
    #[serde(default = "lines_default")]
    lines: u64,
    level: Option<String>,
    #[serde(default = "seed_default")]
    seed: u64,
}

fn lines_default() -> u64 {
    1_000
}

fn read_log() -> DemoTool {
    let definition = json!({
        "name": "read_log",
        "title": "Read the service log",
        "description": "Read the archive's service log, one line an event with time, level, component and message. A few events in a hundred are errors.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "lines": { "type": "integer", "minimum": 0, "maximum": LINES_MAX, "default": 1000, "description": "How many events to read, from the first" },
                "level": { "type": "string", "enum": LEVELS, "description": "Only events of this level" },
                "seed": { "type": "integer", "minimum": 0, "default": 1, "description": "Which log: another seed makes other events" }
            },
            "required": [],
            "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    });
    tool(definition, |Log { lines, level, seed }| -> Answer {
        let lines = at_most(lines, LINES_MAX, "lines")?;
        let events = (1..=lines).map(|number| event(seed, number));
        let wanted = |event: &Event| level.as_ref().is_none_or(|level| event.level == level);
        let lines: Vec<String> = events.filter(wanted).map(|event| event.line).collect();
        Ok(Reply::Text(lines.join("\n")))
    })
}

const STATUSES: [&str; 4] = ["open", "paid", "shipped", "returned"];
const LEVELS: [&str; 4] = ["DEBUG", "INFO", "WARN", "ERROR"];
const NAMES: [&str; 8] = [
    "Ada Byron",
    "Carl Moss",
    "Emmy Hart",
    "Ivo Lang",
    "Mary Cole",
    "Nils Berg",
    "Rosa Diaz",
    "Tomo Abe",
];
const CITIES: [&str; 6] = ["Lisbon", "Turku", "Kyoto", "Quito", "Perth", "Graz"];
const GOODS: [&str; 7] = [
    "lamp", "kettle", "desk", "chair", "notebook", "rug", "clock",
];
const COMPONENTS: [&str; 5] = ["intake", "billing", "storage", "search", "mailer"];

fn record(seed: u64, id: u64) -> Value {
    let mut dice = Dice::new(seed, id);
    let items: Vec<Value> = (0..=dice.below(4)).map(|_| item(&mut dice)).collect();
    let total: u64 = items
        .iter()
        .filter_map(|item| item["price_cents"].as_u64())
        .sum();
    let name = dice.pick(&NAMES);
    json!({
        "id": id,
        "status": dice.pick(&STATUSES),
        "customer": {
            "name": name,
            "email": format!("{}@example.com", name.to_lowercase().replace(' ', ".")),
            "address": { "street": format!("{} Harbour Road", 1 + dice.below(200)), "city": dice.pick(&CITIES) }
        },
        "items": items,
        "total_cents": total,
        "history": [
            { "day": id, "event": "ordered" },
            { "day": id + 1 + dice.below(5), "event": "checked" }
        ]
    })
}

fn item(dice: &mut Dice) -> Value {
    let quantity = 1 + dice.below(5);
    let each = 199 + dice.below(20_000);
    json!({ "name": dice.pick(&GOODS), "quantity": quantity, "price_cents": quantity * each })
}

struct Event {
    level: &'static str,
    line: String,
}

fn event(seed: u64, number: u64) -> Event {
    let mut dice = Dice::new(seed, number);
    let level = match dice.below(100) {
        0..=2 => "ERROR",
        3..=9 => "WARN",
        10..=69 => "INFO",
        _ => "DEBUG",
    };
    let (component, order, took_ms) = (dice.pick(&COMPONENTS), dice.below(10_000), dice.below(900));
    let what = match level {
        "ERROR" => "gave up after 3 attempts",
        "WARN" => "was slow",
        _ => "done",
    };
    let (hour, minute, second) = (number / 3600 % 24, number / 60 % 60, number % 60);
    let line = format!(
        "2026-07-28T{hour:02}:{minute:02}:{second:02}Z {level:<5} {component}: order {order} {what} ({took_ms} ms)"
    );
    Event { level, line }
}

/// A small generator (an xorshift with multiplication): not for secrets, but
/// every record can be made without the ones before it.
struct Dice(u64);

impl Dice {
    fn new(seed: u64, number: u64) -> Self {
        let mixed =
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let mut dice = Self(mixed | 1);
        for _ in 0..4 {
            dice.next();
        }
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let at = self.next() % words.len() as u64;
        words[usize::try_from(at).expect("smaller than a length")]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{call, structure_of, text_of};
    use super::{LEVELS, RECORDS_MAX, STATUSES, server};

    fn records(arguments: Value) -> Vec<Value> {
        serde_json::from_str(&text_of(call(&server(), "list_records", arguments))).unwrap()
    }

    #[test]
    fn records_are_as_many_as_asked_and_always_the_same() {
        let first = records(json!({ "count": 500 }));
        assert_eq!(first.len(), 500);
        assert_eq!(first, records(json!({ "count": 500 })));
        assert_eq!(first[..10], records(json!({ "count": 10 }))[..]);
        assert_ne!(first[..10], records(json!({ "count": 10, "seed": 2 }))[..]);
        assert_eq!(
            structure_of(call(&server(), "get_record", json!({ "id": 7 }))),
            first[6]
        );
    }

    #[test]
    fn every_status_and_level_occurs_and_can_be_picked() {
        let all = records(json!({ "count": 200 }));
        for status in STATUSES {
            let picked = records(json!({ "count": 200, "status": status }));
            assert!(!picked.is_empty() && picked.len() < all.len(), "{status}");
            assert!(picked.iter().all(|record| record["status"] == status));
        }
        for level in LEVELS {
            let log = text_of(call(&server(), "read_log", json!({ "level": level })));
            assert!(
                !log.is_empty() && log.lines().all(|line| line.contains(level)),
                "{level}"
            );
        }
    }

    #[test]
    fn a_summary_adds_up_to_the_list() {
        let summary = structure_of(call(&server(), "summarize_records", json!({ "count": 50 })));
        let list = records(json!({ "count": 50 }));
        let total: u64 = list
            .iter()
            .map(|record| record["total_cents"].as_u64().unwrap())
            .sum();
        assert_eq!(summary["total_cents"], total);
        assert_eq!(summary["records"], 50);
    }

    #[test]
    fn more_than_there_is_is_refused() {
        let beyond = RECORDS_MAX + 1;
        assert!(call(&server(), "list_records", json!({ "count": beyond })).is_err());
        assert!(call(&server(), "get_record", json!({ "id": beyond })).is_err());
        assert!(call(&server(), "get_record", json!({ "id": 0 })).is_err());
        assert!(call(&server(), "read_log", json!({ "lines": 1_000_000 })).is_err());
    }

    #[test]
    fn a_log_has_the_lines_asked_for() {
        let log = text_of(call(&server(), "read_log", json!({ "lines": 1234 })));
        assert_eq!(log.lines().count(), 1234);
    }
}
