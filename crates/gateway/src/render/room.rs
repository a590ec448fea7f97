//! The description of one tool, in the room that its client has.

use super::branches;
use excerpt::tokens::{self, Counter};

/// The largest cost of lines about left-out branches, in tokens, for each piece that was cut.
const CUT_LINE_TOKENS: usize = 150;

/// The smallest shown part of a piece, in tokens.
const PIECE_TOKENS_MIN: usize = 40;

#[derive(Debug)]
pub(super) struct Section {
    /// The label before the text; empty for the description itself.
    pub(super) label: &'static str,
    pub(super) text: String,
    pub(super) form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    Prose,
    /// The beginning of prose of so many characters, and how to request all of it.
    Guide(usize, String),
    /// A schema: whole branches of it can be left out and requested later.
    Schema,
    /// Shown in full or not at all: half a call is useless.
    Whole,
}

/// Writes the pieces, one a line, and cuts those that do not fit; `name` is the tool's.
pub(super) fn fit(name: &str, heading: String, pieces: &[Section], room: usize) -> String {
    let shares = shares(&heading, pieces, room);
    let mut lines = vec![heading];
    let mut cuts = Vec::new();
    for (piece, share) in pieces.iter().zip(shares) {
        let label = piece.label;
        let Some(share) = share else {
            let note = write_cut_note(piece, &piece.text);
            lines.push(format!("{label}{}{note}", piece.text));
            continue;
        };
        match piece.form {
            Form::Whole => cuts.push(format!("[cut: no {}: it is too long]", label.trim())),
            Form::Prose | Form::Guide(..) => {
                let shown = beginning(&piece.text, share);
                let note = write_cut_note(piece, shown);
                lines.push(format!("{label}{shown}{note}"));
            }
            Form::Schema => {
                let shown = branches::cut(&piece.text, share);
                lines.push(format!("{label}{}", shown.json));
                cuts.push(cut_line(name, label.trim(), "", &shown));
            }
        }
    }
    lines.extend(cuts);
    // With a very small budget the lines about left-out branches may take more than the room.
    whole_lines(lines.join("\n"), room)
}

/// The note after the shown part of prose; empty if that is all of it.
fn write_cut_note(piece: &Section, shown: &str) -> String {
    let (whole, more) = match &piece.form {
        Form::Guide(whole_chars, more) => (*whole_chars, more.as_str()),
        _ => (piece.text.chars().count(), ""),
    };
    match shown.chars().count() {
        all if all == whole => String::new(),
        part => format!("… [cut: {part} of {whole} characters{more}]"),
    }
}

/// The line that lists what was left out of a schema below `path`, and how to request it.
pub(super) fn cut_line(name: &str, label: &str, path: &str, shown: &branches::CutJson) -> String {
    let of = |pointer: &String| match label {
        "input" => format!("{path}{pointer}"),
        _ => format!("{label}{path}{pointer}"),
    };
    let paths: Vec<String> = shown.left_out.iter().map(of).collect();
    let mut left_out = paths.join(", ");
    let more = shown.left_out_count - paths.len();
    if more > 0 {
        left_out.push_str(&format!(" and {more} more"));
    }
    let is_below = |it: &&String| **it != format!("{label}{path}") && **it != path;
    let next = paths.iter().find(is_below).map(|next| {
        let next = serde_json::json!({"name": name, "path": next});
        format!(". More: describe_tool {next}")
    });
    let (left_out, next) = (left_out.trim(), next.unwrap_or_default());
    format!("[cut: of {label}, left out {left_out}{next}]")
}

/// The largest cost of each piece if not all fit whole.
fn shares(heading: &str, pieces: &[Section], room: usize) -> Vec<Option<usize>> {
    let note = |piece: &Section| match write_cut_note(piece, &piece.text).as_str() {
        "" => 0,
        _ => CUT_LINE_TOKENS,
    };
    let text = |piece: &Section| {
        tokens::token_upper_bound(&piece.text) + piece.label.len() + 1 + note(piece)
    };
    let most = tokens::token_upper_bound(heading) + pieces.iter().map(text).sum::<usize>();
    if most <= room {
        return vec![None; pieces.len()];
    }
    let costs = Counter::with(|counter| {
        let cost = |piece: &Section| counter.count_to(&piece.text, room) + 4 + note(piece);
        pieces.iter().map(cost).collect::<Vec<_>>()
    });
    let heading = tokens::count(heading);
    if heading + costs.iter().sum::<usize>() <= room {
        return vec![None; pieces.len()];
    }
    let mut left = room.saturating_sub(heading);
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|place| costs[*place]);
    let mut shares = vec![None; pieces.len()];
    for (nth, place) in order.iter().enumerate() {
        let share = left / (order.len() - nth);
        if costs[*place] <= share {
            left -= costs[*place];
            continue;
        }
        left -= share;
        shares[*place] = Some(share.saturating_sub(CUT_LINE_TOKENS).max(PIECE_TOKENS_MIN));
    }
    shares
}

/// As many characters as fit in so many tokens, cut near a word boundary.
pub(super) fn beginning(text: &str, room: usize) -> &str {
    let piece = excerpt::TextPiece::plain(text);
    let cut = excerpt::find_first_cut(&piece, room);
    &text[..cut.end]
}

pub(super) fn fits(text: &str, room: usize) -> bool {
    tokens::token_upper_bound(text) <= room
        || Counter::with(|counter| counter.count_to(text, room)) <= room
}

/// As many whole lines of a text as fit; says how many there were.
pub(crate) fn whole_lines(text: String, room: usize) -> String {
    if fits(&text, room) {
        return text;
    }
    let note = |shown: usize| {
        let whole = text.lines().count();
        format!("[cut: {shown} of {whole} lines; ask for fewer, or for something narrower]")
    };
    let mut left = room.saturating_sub(tokens::count(&note(1_000)) + 1);
    let (mut shown, mut lines) = (String::new(), 0);
    for line in text.lines() {
        let cost = Counter::with(|counter| counter.count_to(line, left)) + 1;
        if cost > left {
            break;
        }
        left -= cost;
        lines += 1;
        shown.push_str(line);
        shown.push('\n');
    }
    shown + &note(lines)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Form, Section, fit};
    use excerpt::tokens;

    fn piece() -> impl Strategy<Value = Section> {
        let prose = "([a-z☃]{1,9}[ \n]){0,900}";
        let list = "[a-z]{1,12}";
        prop_oneof![
            prose.prop_map(|text| ("", text, Form::Prose)),
            prop::collection::vec(list, 0..900).prop_map(|it| (
                "input ",
                serde_json::json!({"enum": it}).to_string(),
                Form::Schema
            )),
            "\"[a-z]{0,9000}\"".prop_map(|text| ("output ", text, Form::Schema)),
            prose.prop_map(|text| ("example ", text, Form::Whole)),
        ]
        .prop_map(|(label, text, form)| Section { label, text, form })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn a_description_keeps_to_its_room(
            pieces in prop::collection::vec(piece(), 0..5),
            room in 200_usize..3_000,
        ) {
            let text = fit("a/b", "a/b - category".to_owned(), &pieces, room);
            let cost = tokens::count(&text);
            prop_assert!(cost <= room, "{} of {}: {}", cost, room, text);
            let whole: usize = pieces.iter().map(|it| tokens::count(&it.text) + 9).sum();
            if whole < room / 2 {
                prop_assert!(!text.contains("[cut: "), "{}", text);
            }
        }
    }
}
