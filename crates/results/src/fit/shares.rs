//! Divides the room among several texts.

use excerpt::{
    TextKind, TextPiece,
    tokens::{self, Counter},
};

/// The smallest shown part of a text, in tokens; if there are more texts than fit with it, the later
/// ones are left out.
pub(super) const SHARE_MIN: usize = 100;

/// The room of binary data, in tokens: enough to recognize it.
pub(super) const BINARY_ROOM: usize = 64;

/// The number of texts of which a part can be shown.
pub(super) fn texts_shown(room: usize) -> usize {
    (room / SHARE_MIN).max(1)
}

/// Divides the room among texts: short texts are shown whole, long ones get equal shares. The last
/// texts are members beside the content, of which only a recognizable beginning is shown.
pub(super) fn share_out(pieces: &[TextPiece<'_>], beside: usize, room: usize) -> Vec<usize> {
    let (content, beside) = pieces.split_at(pieces.len() - beside);
    let aside = beside.len().min(texts_shown(room)).min(2) * SHARE_MIN;
    let aside = if content.is_empty() {
        room
    } else {
        aside.min(room / 2)
    };
    let mut shares = share_equally(content, room - aside);
    shares.extend(share_equally(beside, aside));
    shares
}

fn share_equally(pieces: &[TextPiece<'_>], room: usize) -> Vec<usize> {
    if pieces.is_empty() {
        return Vec::new();
    }
    let shown = (room / SHARE_MIN).clamp(1, pieces.len().max(1));
    let costs = Counter::with(|counter| {
        let cost = |piece: &TextPiece<'_>| counter.count_to(piece.text, room);
        pieces.iter().take(shown).map(cost).collect::<Vec<_>>()
    });
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by_key(|place| costs[*place]);
    let mut shares = vec![0; pieces.len()];
    let mut left = room;
    for (nth, place) in order.iter().enumerate() {
        shares[*place] = costs[*place].min(left / (costs.len() - nth));
        left -= shares[*place];
    }
    shares
}

/// The room of the first part: the texts before the first that is cut, and its own share.
pub(super) fn first_room(pieces: &[TextPiece<'_>], shares: &[usize]) -> usize {
    let mut room = 0;
    for (piece, share) in pieces.iter().zip(shares) {
        let cost = Counter::with(|counter| counter.count_to(piece.text, *share));
        if cost > *share {
            return room + head_room(piece, *share);
        }
        room += cost;
    }
    room
}

/// The room that the head of a text may take of its share.
pub(super) fn head_room(piece: &TextPiece<'_>, share: usize) -> usize {
    match piece.kind {
        TextKind::Binary => share.min(BINARY_ROOM),
        TextKind::Json => json_room(piece, share),
        _ => share - tail_share(piece, share),
    }
}

/// The room that the last lines of a text may take of its share, with the mark before them; 0 for
/// texts that are not lines, and if the last line does not fit.
fn tail_share(piece: &TextPiece<'_>, share: usize) -> usize {
    let room = match piece.kind {
        TextKind::Log => share * 2 / 5,
        TextKind::Text | TextKind::Search | TextKind::JsonLines => share / 4,
        _ => return 0,
    };
    let fits = find_tail(piece.text, room).is_some();
    if fits { room } else { 0 }
}

/// The mark between the first and the last lines of a text.
pub(super) fn tail_mark(lines: usize) -> String {
    format!("[… {} lines between …]\n", printable::group_digits(lines))
}

/// Finds the beginning of the last lines of a text, if one that ends at `end` bytes is shown.
pub(super) fn tail_start(piece: &TextPiece<'_>, end: usize, share: usize) -> Option<usize> {
    let start = end + find_tail(&piece.text[end..], tail_share(piece, share))?;
    (start > end).then_some(start)
}

/// Returns the beginning of the last lines that fit with their mark.
fn find_tail(text: &str, room: usize) -> Option<usize> {
    let room = room.checked_sub(tokens::count(&tail_mark(1_000_000_000)) + 1)?;
    let body = text.strip_suffix('\n').unwrap_or(text);
    Counter::with(|counter| {
        let (mut used, mut from) = (0, text.len());
        for line_end in memchr::memrchr_iter(b'\n', body.as_bytes()) {
            used += counter.count_to(&text[line_end + 1..from], room);
            if used > room {
                break;
            }
            from = line_end + 1;
        }
        (from < text.len()).then_some(from)
    })
}

/// Leaves room for the brackets that close cut JSON, as far as they can be closed at all.
fn json_room(piece: &TextPiece<'_>, share: usize) -> usize {
    let mut room = share.saturating_sub(4);
    for _ in 0..4 {
        let cut = excerpt::find_first_cut(piece, room);
        let Some(closed) = excerpt::close(&piece.text[..cut.end]) else {
            return room;
        };
        let excess = tokens::count(&closed).saturating_sub(share);
        if excess == 0 {
            return room;
        }
        room = room.saturating_sub(excess + room / 16);
    }
    share
}
