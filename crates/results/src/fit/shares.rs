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
        TextKind::Log => share * 3 / 5,
        TextKind::Json => json_room(piece, share),
        _ => share,
    }
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
