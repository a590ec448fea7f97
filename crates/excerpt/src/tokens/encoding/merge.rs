//! Merges bytes to words, the lowest rank first, and the leftmost of equal ranks.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::ranks::rank;

/// Pieces of up to this many bytes are scanned for the next pair; the pairs of longer pieces are kept in
/// a heap.
const SCANNED_BYTES_MAX: usize = 100;

pub(super) fn count(piece: &[u8]) -> usize {
    if piece.len() < 2 || rank(piece).is_some() {
        return piece.len().min(1);
    }
    if piece.len() <= SCANNED_BYTES_MAX {
        count_by_scans(piece)
    } else {
        count_in_order(piece)
    }
}

const NONE: u32 = u32::MAX;

fn rank_of(piece: &[u8], from: usize, to: usize) -> u32 {
    let word = piece.get(from..to);
    word.and_then(rank).unwrap_or(NONE)
}

fn count_by_scans(piece: &[u8]) -> usize {
    // The start of each part, and the rank of the part joined with the next one.
    let mut parts: Vec<(usize, u32)> = (0..piece.len())
        .map(|at| (at, rank_of(piece, at, at + 2)))
        .collect();
    loop {
        let least = parts.iter().enumerate().min_by_key(|(_, (_, rank))| *rank);
        let Some((place, _)) = least.filter(|(_, (_, rank))| *rank != NONE) else {
            return parts.len();
        };
        parts.remove(place + 1);
        for place in place.saturating_sub(1)..=place {
            parts[place].1 = match parts.get(place + 1) {
                Some(_) => {
                    let end = parts.get(place + 2).map_or(piece.len(), |(at, _)| *at);
                    rank_of(piece, parts[place].0, end)
                }
                None => NONE,
            };
        }
    }
}

/// A part of a piece; its index is its first byte.
#[derive(Clone, Copy)]
struct MergePart {
    before: usize,
    end: usize,
    /// The rank of the part joined with the next one.
    rank: u32,
}

fn count_in_order(piece: &[u8]) -> usize {
    let part = |at: usize| MergePart {
        before: at.saturating_sub(1),
        end: at + 1,
        rank: rank_of(piece, at, at + 2),
    };
    let mut parts: Vec<MergePart> = (0..piece.len()).map(part).collect();
    let pairs = parts
        .iter()
        .enumerate()
        .map(|(at, it)| Reverse((it.rank, at)));
    let mut pairs: BinaryHeap<_> = pairs.filter(|Reverse((rank, _))| *rank != NONE).collect();
    let mut count = piece.len();
    while let Some(Reverse((rank, at))) = pairs.pop() {
        if parts[at].rank != rank {
            continue;
        }
        let next = parts[at].end;
        let end = parts[next].end;
        parts[next].rank = NONE;
        parts[at].end = end;
        if let Some(after) = parts.get_mut(end) {
            after.before = at;
        }
        count -= 1;
        let before = (at > 0).then(|| parts[at].before);
        for at in [Some(at), before].into_iter().flatten() {
            let next = parts.get(parts[at].end).map(|next| next.end);
            let rank = next.map_or(NONE, |end| rank_of(piece, at, end));
            parts[at].rank = rank;
            if rank != NONE {
                pairs.push(Reverse((rank, at)));
            }
        }
    }
    count
}
