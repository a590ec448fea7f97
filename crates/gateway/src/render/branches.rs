//! Cuts a schema to a bounded size: whole branches are left out, each named by its JSON pointer.

use std::collections::BTreeSet;

use excerpt::tokens::Counter;
use jsonrpc::{Fields, text_of};
use printable::group_digits;
use serde_json::value::RawValue;

use super::join;

/// The placeholder for a branch that was left out.
const LEFT_OUT: &str = r#""…""#;

/// The smallest useful room of a branch, in bytes. A list or an object shows only as many of its
/// branches as fit with this room each, unless they are smaller.
const BRANCH_BYTES_MIN: usize = 120;

/// Levels that are shown; below them a branch is left out.
const LEVELS_MAX: usize = 48;

/// The longest pointer that is resolved, in steps: each step parses everything below it again.
const STEPS_MAX: usize = 64;

/// The most left-out branches that are named, and the longest such name in bytes.
const NAMED_MAX: usize = 5;
/// The most of them that are named for one object, so that those of the next object are named too.
const NAMED_OF_ONE_MAX: usize = 2;
const NAMED_BYTES_MAX: usize = 120;

/// A first guess: JSON has some 3 bytes a token.
const BYTES_PER_TOKEN: usize = 3;

/// The number of attempts to find a room in bytes that fits.
const GUESSES_MAX: usize = 6;

/// A value as it is shown, and the places where something was left out.
#[derive(Debug, Default)]
pub(super) struct CutJson {
    pub(super) json: String,
    pub(super) left_out: Vec<String>,
    pub(super) left_out_count: usize,
}

/// As much of a JSON text without white space as fits in a room of so many tokens.
pub(super) fn cut(json: &str, room: usize) -> CutJson {
    let count = |text: &str| Counter::with(|counter| counter.count_to(text, usize::MAX));
    let mut bytes = room.saturating_mul(BYTES_PER_TOKEN);
    for _ in 0..GUESSES_MAX {
        let mut cutting = Cutting::default();
        cutting.render(json, bytes, &BTreeSet::new());
        let tokens = count(&cutting.shown.json);
        if tokens <= room {
            return cutting.shown;
        }
        bytes = (bytes.min(cutting.shown.json.len()) * room / tokens) * 9 / 10;
    }
    CutJson {
        json: LEFT_OUT.to_owned(),
        left_out: vec![String::new()],
        left_out_count: 1,
    }
}

/// The branch at a JSON pointer; the error says what exists instead.
pub(super) fn at<'a>(json: &'a str, pointer: &str) -> Result<&'a str, String> {
    let mut branch = json;
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    if steps.len() > STEPS_MAX {
        return Err(format!("it has over {STEPS_MAX} steps"));
    }
    for step in steps {
        let step = step.replace("~1", "/").replace("~0", "~");
        if let Some(fields) = Fields::of(branch) {
            let found = fields.get(&step).map(RawValue::get);
            branch = found.ok_or_else(|| missing(&step, &fields))?;
            continue;
        }
        let items = serde_json::from_str::<Vec<&RawValue>>(branch).ok();
        let items = items.ok_or_else(|| format!("nothing is below \"{step}\""))?;
        let item = step.parse::<usize>().ok().and_then(|nth| items.get(nth));
        let last = items.len().saturating_sub(1);
        branch = item
            .ok_or_else(|| format!("no \"{step}\"; the last item is {last}"))?
            .get();
    }
    Ok(branch)
}

/// The number of existing keys that an error names when one is missing.
const KEYS_NAMED_MAX: usize = 20;

fn missing(step: &str, fields: &Fields<'_>) -> String {
    let keys = fields.0.iter().take(KEYS_NAMED_MAX);
    let keys = join(keys.map(|(key, _)| printable::one_line_of(key, 60)), ", ");
    format!("no \"{step}\"; its keys are {keys}")
}

#[derive(Default)]
struct Cutting {
    shown: CutJson,
    path: Vec<String>,
}

impl Cutting {
    fn render(&mut self, json: &str, room: usize, first: &BTreeSet<String>) {
        if json.len() <= room {
            self.shown.json.push_str(json);
        } else if room < LEFT_OUT.len() * 3 || self.path.len() >= LEVELS_MAX {
            self.leave_out();
        } else if let Some(fields) = Fields::of(json) {
            self.group(&fields, false, room, first);
        } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) {
            let items = (0..).zip(items);
            let items = items.map(|(place, item): (usize, _)| (place.to_string().into(), item));
            self.group(&Fields(items.collect()), true, room, &BTreeSet::new());
        } else {
            self.string(json, room);
        }
    }

    /// The members of an object, or the items of a list by their places, in their order; members that
    /// are required are kept first.
    fn group(&mut self, fields: &Fields<'_>, is_list: bool, room: usize, first: &BTreeSet<String>) {
        let required = fields.get("required").map(RawValue::get);
        let required: Option<BTreeSet<String>> =
            required.and_then(|list| serde_json::from_str(list).ok());
        let label = |key: &str| {
            if is_list {
                String::new()
            } else {
                quote(key) + ":"
            }
        };
        let labels: Vec<String> = fields.0.iter().map(|(key, _)| label(key)).collect();
        let sizes = fields.0.iter().zip(&labels);
        let sizes: Vec<usize> = sizes
            .map(|((_, value), label)| label.len() + value.get().len() + 1)
            .collect();
        let is_first = |place: &usize| first.contains(fields.0[*place].0.as_ref());
        let (mut order, others): (Vec<usize>, Vec<usize>) = (0..sizes.len()).partition(is_first);
        order.extend(others);
        let rooms = rooms(&sizes, &order, room);
        let [open, close] = if is_list { ['[', ']'] } else { ['{', '}'] };
        self.shown.json.push(open);
        let (mut comma, mut missing) = ("", Vec::new());
        for (place, (key, value)) in fields.0.iter().enumerate() {
            let label = &labels[place];
            // A key that takes all the room shows nothing.
            let is_useful = |room: &usize| is_list || label.len() + 7 <= *room;
            let Some(room) = rooms[place].filter(is_useful) else {
                missing.push(key);
                continue;
            };
            self.shown.json.extend([comma, label]);
            comma = ",";
            let inner = required.as_ref().filter(|_| key == "properties");
            let room = room.saturating_sub(label.len() + 1);
            self.path.push(step(key));
            self.render(value.get(), room, inner.unwrap_or(&BTreeSet::new()));
            self.path.pop();
        }
        if !missing.is_empty() {
            let more = group_digits(missing.len());
            let more = if is_list {
                format!(r#""… {more} more""#)
            } else {
                format!(r#""…":"{more} more""#)
            };
            self.shown.json.extend([comma, &more]);
        }
        self.shown.json.push(close);
        if is_list && !missing.is_empty() {
            self.note(None);
        } else {
            let untold = missing.len().saturating_sub(NAMED_OF_ONE_MAX);
            for key in missing.into_iter().take(NAMED_OF_ONE_MAX) {
                self.note(Some(&step(key)));
            }
            self.shown.left_out_count += untold;
        }
    }

    fn string(&mut self, json: &str, room: usize) {
        let raw: Result<&RawValue, _> = serde_json::from_str(json);
        let Some(text) = raw.ok().and_then(text_of) else {
            return self.leave_out();
        };
        let end = text.floor_char_boundary(room / 2);
        let shown = quote(&format!("{}…", &text[..end]));
        self.shown.json.push_str(&shown);
        self.note(None);
    }

    fn leave_out(&mut self) {
        self.shown.json.push_str(LEFT_OUT);
        self.note(None);
    }

    /// Notes a branch that is incomplete: this one, or one below it.
    fn note(&mut self, below: Option<&str>) {
        self.shown.left_out_count += 1;
        if self.shown.left_out.len() >= NAMED_MAX {
            return;
        }
        let steps = self.path.iter().map(String::as_str).chain(below);
        let pointer: String = steps.flat_map(|step| ["/", step]).collect();
        if pointer.len() <= NAMED_BYTES_MAX && !pointer.chars().any(printable::is_hidden) {
            self.shown.left_out.push(pointer);
        }
    }
}

/// A key as a step of a pointer.
fn step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn quote(text: &str) -> String {
    printable::seen_json(&jsonrpc::quote(text)).into_owned()
}

/// The room for each branch: short ones get all they need, long ones an equal share; `None` for
/// those that come too late in the order.
fn rooms(sizes: &[usize], order: &[usize], room: usize) -> Vec<Option<usize>> {
    // For the brackets, and the words that more is left out.
    let mut left = room.saturating_sub(28);
    let (mut taken, mut need) = (Vec::new(), 0);
    for place in order {
        need += sizes[*place].min(BRANCH_BYTES_MIN);
        if need > left {
            break;
        }
        taken.push(*place);
    }
    taken.sort_by_key(|place| sizes[*place]);
    let mut rooms = vec![None; sizes.len()];
    for (nth, place) in taken.iter().enumerate() {
        let share = sizes[*place].min(left / (taken.len() - nth));
        rooms[*place] = Some(share);
        left -= share;
    }
    rooms
}

#[cfg(test)]
mod tests {
    use excerpt::tokens;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{at, cut};

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            "[a-z \"\\\\\n☃\u{202e}]{0,400}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 400, 40, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
                prop::collection::hash_map("[a-z/~\"é]{0,80}", inner, 0..40)
                    .prop_map(|map| map.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn what_is_shown_is_json_in_its_room_and_what_is_not_is_found(
            value in any_json(),
            room in 60_usize..800,
        ) {
            let json = value.to_string();
            let shown = cut(&json, room);
            prop_assert!(tokens::count(&shown.json) <= room + room / 20, "{}", shown.json);
            let parsed: Value = serde_json::from_str(&shown.json).expect("it is JSON");
            prop_assert_eq!(shown.left_out_count == 0, parsed == value);
            for pointer in &shown.left_out {
                let found = at(&json, pointer).expect("it is there");
                let found: Value = serde_json::from_str(found).expect("it is JSON");
                prop_assert_eq!(Some(&found), value.pointer(pointer));
            }
        }
    }

    #[test]
    fn whole_branches_go_and_the_required_stay() {
        let many = |count: usize| -> serde_json::Map<String, Value> {
            let name = |nth| format!("parameter_{nth}");
            let schema = json!({"type": "string", "description": "One of very many parameters"});
            (0..count).map(|nth| (name(nth), schema.clone())).collect()
        };
        let schema = json!({
            "type": "object", "properties": many(500), "required": ["parameter_499"],
            "$defs": {"colour": {"enum": vec!["red"; 9_000]}},
        });
        let shown = cut(&schema.to_string(), 500);
        let parsed: Value = serde_json::from_str(&shown.json).expect("it is JSON");
        assert_eq!(parsed["required"], schema["required"]);
        let last = "/properties/parameter_499";
        assert_eq!(parsed.pointer(last), schema.pointer(last), "{}", shown.json);
        assert!(shown.json.contains(r#""…":"4"#), "{}", shown.json);
        assert!(shown.json.contains(r#""… 8,"#), "{}", shown.json);
        assert!(
            shown.left_out.contains(&"/$defs/colour/enum".to_owned()),
            "{shown:?}"
        );
        let branch = at(&schema.to_string(), last).map(str::to_owned);
        assert_eq!(
            branch.as_deref(),
            Ok(schema.pointer(last).expect("there").to_string().as_str())
        );
    }

    #[test]
    fn ten_thousand_levels_do_not_harm() {
        let deep = r#"{"a":"#.repeat(10_000) + "1" + &"}".repeat(10_000);
        let shown = cut(&deep, 300);
        assert_eq!(shown.left_out_count, 1);
        assert!(at(&deep, &"/a".repeat(60)).is_ok());
        assert!(at(&deep, &"/a".repeat(65)).is_err());
        assert!(
            at("{\"b\":1}", "/a")
                .expect_err("none")
                .contains("its keys are b")
        );
    }
}
