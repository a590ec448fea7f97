use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    Cut, Rooms, TextKind, TextPiece, close, describe_shape, find_first_cut, json::CutPosition,
    locate, split, tokens,
};

#[track_caller]
fn check_kind(text: &str, expected: TextKind) {
    assert_eq!(TextKind::of(text), expected, "{text}");
}

/// Checks two laws: the joined parts are the whole, and each part fits its room by the tokenizer's
/// own count.
fn check_laws(texts: &[String], rooms: Rooms) -> Result<Vec<Cut>, TestCaseError> {
    let pieces: Vec<TextPiece<'_>> = texts.iter().map(|text| TextPiece::of(text)).collect();
    let whole = texts.concat();
    let cuts = split(&pieces, rooms);
    let mut start = 0;
    for (at, cut) in cuts.iter().enumerate() {
        let room = if at == 0 { rooms.first } else { rooms.others };
        prop_assert!(cut.end > start || whole.is_empty(), "part {} is empty", at);
        let counted = tokens::count(&whole[start..cut.end]);
        let slack = 3;
        prop_assert!(
            counted <= room.max(64) + slack,
            "part {}: {} of {}",
            at,
            counted,
            room
        );
        start = cut.end;
    }
    prop_assert_eq!(start, whole.len());
    Ok(cuts)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-zA-Z0-9 \"\\\\\n,{}\\[\\]é😀.]{0,200}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 300, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            prop::collection::vec(("[a-z\"\\\\/~]{1,8}", inner), 0..12)
                .prop_map(|members| { Value::Object(members.into_iter().collect()) }),
        ]
    })
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,3000}",
        any::<Vec<u8>>().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        "[a-zA-Z0-9+/]{0,4000}",
        "([a-z]{1,9}[ ,.]){0,400}",
        "( {0,4}[a-z]{1,9}\\(\\);?\n){0,200}",
        "([\r\n\t ]{0,9}[.!?-]{0,9}){0,100}",
        "(\\{\"a\":[0-9]{1,4}\\}\n){0,100}",
        "([a-z\"]{1,6},[0-9]{1,3}\n){0,200}",
        prop::collection::vec(any::<char>(), 0..800).prop_map(String::from_iter),
        any_json().prop_map(|value| value.to_string()),
        any_json().prop_map(|value| format!("{value:#}")),
        any_json().prop_map(|value| escaped(&value)),
    ]
}

/// Returns JSON with every non-ASCII character escaped.
fn escaped(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(text, "\\u{unit:04x}").expect("a string can be written to");
            }
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn parts_joined_are_the_whole_and_each_keeps_to_its_room(
        texts in prop::collection::vec(any_text(), 1..4),
        first in 64_usize..400,
        more in 0_usize..300,
    ) {
        check_laws(&texts, Rooms { first, others: first + more })?;
    }

    #[test]
    fn the_first_part_of_json_can_be_closed(value in any_json(), room in 64_usize..300) {
        for text in [value.to_string(), format!("{value:#}"), escaped(&value)] {
            let piece = TextPiece::of(&text);
            let cut = find_first_cut(&piece, room);
            if piece.kind != TextKind::Json || cut.end == text.len() {
                continue;
            }
            if let Some(closed) = close(&text[..cut.end]) {
                prop_assert!(serde_json::from_str::<Value>(&closed).is_ok(), "{}", closed);
            }
            let place = locate(&text, cut.end);
            if let Some(place) = place {
                let whole: Value = serde_json::from_str(&text).expect("the text is JSON");
                let broken = whole.pointer(&place.pointer);
                // A duplicate key is found once.
                if let Some(Value::Array(items)) = broken {
                    prop_assert_eq!(place.items, items.len());
                }
            }
        }
    }

    #[test]
    fn anything_has_a_kind_and_a_shape(text in any_text()) {
        let piece = TextPiece::of(&text);
        prop_assert!(describe_shape(&piece).chars().count() < 2_000);
    }
}

#[test]
fn kinds_are_told_by_what_is_there() {
    check_kind("[1, 2]", TextKind::Json);
    check_kind("{\"a\": 1}\n{\"a\": 2}\n", TextKind::JsonLines);
    check_kind("[not json]\n[nor this]\n[no]\n", TextKind::Text);
    check_kind(
        "id,name\n1,a\n2,\"b, c\"\n3,\"d\ne\"\n",
        TextKind::Table(b','),
    );
    check_kind("id\tname\n1\ta\n2\tb\n", TextKind::Table(b'\t'));
    check_kind(
        "# Title\n\nWords.\n\n## Part\n\nMore words.\n",
        TextKind::Markdown,
    );
    check_kind(&"2026-01-02T03:04:05Z INFO up\n".repeat(5), TextKind::Log);
    check_kind(
        &"Jan  2 03:04:05 host sshd[1]: up\n".repeat(5),
        TextKind::Log,
    );
    check_kind(
        "src/a.rs:1: fn a\nsrc/a.rs:2: fn b\nsrc/b.rs:9: fn c\n",
        TextKind::Search,
    );
    check_kind(
        "fn main() {\n    let x = 1;\n    run(x);\n}\n",
        TextKind::Code,
    );
    check_kind(&"iVBORw0KGgoAAAANSUhEUg9/".repeat(20), TextKind::Binary);
    check_kind("\u{0}\u{1}\u{fffd}\u{fffd}binary", TextKind::Binary);
    check_kind("One line.\nAnother line.\nA third.\n", TextKind::Text);
    check_kind("", TextKind::Text);
}

#[track_caller]
fn check_shape(text: &str, expected: &str) {
    assert_eq!(describe_shape(&TextPiece::of(text)), expected);
}

#[test]
fn a_shape_says_what_the_whole_is() {
    let items: Vec<Value> = (0..847)
        .map(|id| json!({"id": id, "title": "t", "user": {"x": 1}, "labels": ["a"]}))
        .collect();
    check_shape(
        &json!(items).to_string(),
        "847 items of {id, title, user{}, labels[]}",
    );
    check_shape(
        &json!({"total": 2, "items": [{"id": 1}, {"id": 2}], "o": {}}).to_string(),
        "object {total, items[2] of {id}, o{}}",
    );
    check_shape("[1,2,3]", "3 items");
    check_shape("{\"a\":1}\n{\"b\":2}\n", "2 lines of JSON of {a, b}");
    check_shape(
        "id,name\n1,a\n2,b\n",
        "3 lines of a table with 2 columns: id, name",
    );
    check_shape(
        "# A\n\nx\n\n## B\n\ny\n",
        "7 lines of Markdown; sections: A, B",
    );
    check_shape(
        "2026-01-01 INFO a\n2026-01-01 ERROR b\n2026-01-01 INFO c\n",
        "3 lines of log: ERROR 1, INFO 2",
    );
    check_shape(
        "a.rs:1:x\na.rs:2:y\nb.rs:1:z\n",
        "3 lines found in 2 files: a.rs 2, b.rs 1",
    );
    check_shape(
        &format!("iVBORw0KGgo{}9", "aB+/".repeat(100)),
        "base64, 412 characters, 309 bytes",
    );
}

/// Returns the first part of a text.
fn first(text: &str, room: usize) -> &str {
    &text[..find_first_cut(&TextPiece::of(text), room).end]
}

#[test]
fn a_cut_falls_where_it_does_least_harm() {
    let items: Vec<Value> = (0..100).map(|id| json!({"id": id, "n": [1, 2]})).collect();
    let array = json!(items).to_string();
    let part = first(&array, 200);
    assert!(part.ends_with("},"), "{part}");
    let kept: Vec<Value> = serde_json::from_str(&close(part).expect("closed")).expect("JSON");
    assert_eq!(kept, items[..kept.len()]);
    assert_eq!(
        locate(&array, part.len()),
        Some(CutPosition {
            pointer: String::new(),
            shown: kept.len(),
            items: 100
        })
    );

    let deep = json!({"a": 1, "data": {"x/y": items}}).to_string();
    let part = first(&deep, 200);
    let place = locate(&deep, part.len()).expect("the cut is inside a value");
    assert_eq!((&*place.pointer, place.items), ("/data/x~1y", 100));

    let paragraph = "Some words stand here.\n".repeat(12) + "\n";
    let part = first(&paragraph.repeat(30), 500).to_owned();
    assert!(part.ends_with("\n\n"), "{part}");
    let sentences = "Some words stand here. ".repeat(500);
    assert!(first(&sentences, 100).ends_with("here."));
    assert!(first(&"word ".repeat(500), 100).ends_with("word"));
    let quoted = "id,text\n".to_owned() + &"1,\"one\ntwo\nthree\"\n".repeat(100);
    assert!(first(&quoted, 100).ends_with("\"\n"));
    let markdown = "# A\n\n".to_owned() + &"Words.\n".repeat(40) + "## B\n\n" + &"W.\n".repeat(300);
    assert!(first(&markdown, 100).ends_with("Words.\n"));
}

#[test]
fn a_string_of_json_is_cut_between_its_escapes() {
    let text = json!({"text": "\"\\\n".repeat(500)}).to_string();
    let part = first(&text, 100);
    assert!(close(part).is_some(), "{part}");
    let text = format!("{{\"text\":\"{}\"}}", r"\ud83d\ude00\n\\\u00e9".repeat(20));
    for at in 0..text.len() - 1 {
        let outside = super::json::outside_escape(&text, at);
        let part = format!("{}\"}}", &text[..outside.max(9)]);
        assert!(serde_json::from_str::<Value>(&part).is_ok(), "{at}: {part}");
    }
}
