//! Explains a tool's rank, term by term.

use crate::Entry;
use crate::generation::Generation;
use crate::search::evidence::Evidence;
use crate::search::parsed_query::{ParsedQuery, QueryWords};
use crate::search::query::Query;
use crate::search::rank::Ranking;
use crate::search::search_result::SearchResult;
use crate::search::sums::coverage_factor;
use crate::search::term::{Term, saturation};
use crate::search::values;

/// Adds the evidence to every hit of a request in words.
pub(super) fn explain(
    generation: &Generation,
    query: &Query,
    text: &str,
    found: &mut SearchResult,
) {
    let parts = found.parts.clone();
    for hit in &mut found.hits {
        let text = parts.get(hit.step).map_or(text, String::as_str);
        if let ParsedQuery::Words(wanted) = ParsedQuery::of(text) {
            hit.evidence = evidence(generation, query, &wanted, text, &hit.entry);
        }
    }
}

fn evidence(
    generation: &Generation,
    query: &Query,
    wanted: &QueryWords,
    text: &str,
    entry: &Entry,
) -> Vec<Evidence> {
    let visible = generation.visible();
    let Ok(place) = visible.binary_search_by(|known| known.at.cmp(&entry.at)) else {
        return Vec::new();
    };
    let index = generation.index();
    let length = index.lengths[place] / index.length_mean;
    let (mut all, mut held, mut list) = (0.0, 0.0, Vec::new());
    for word in &wanted.words {
        let term = Term::of(index, word);
        all += term.mass;
        let times = term.tools.iter().find(|(tool, _)| *tool as usize == place);
        if let Some((_, times)) = times {
            held += term.mass;
            list.push(Evidence {
                label: format!("\"{}\"", word.exact),
                amount: term.weight * saturation(*times, length),
            });
        }
    }
    let coverage = if all > 0.0 { held / all } else { 1.0 };
    list.push(Evidence {
        label: format!("times: it covers {:.0} % of the request", 100.0 * coverage),
        amount: coverage_factor(coverage),
    });
    let ranking = Ranking::new(generation, wanted, text, query.learned.as_ref());
    list.push(Evidence {
        label: "times: the request spells its name or server".to_owned(),
        amount: ranking.name_factor(entry),
    });
    if let Some((_, similar)) = generation.similar(&values::with_kinds(text)) {
        list.push(Evidence {
            label: "meaning: how near the request's, to which words add their share".to_owned(),
            amount: similar.tools[place],
        });
    }
    if let Some(adds) = ranking.context_of(place) {
        list.push(Evidence {
            label: "meaning: what its server adds, by all of its tools".to_owned(),
            amount: adds,
        });
    }
    if let Some(gain) = ranking.learned.get(&place) {
        list.push(Evidence {
            label: "learned: what calls after similar requests add".to_owned(),
            amount: *gain,
        });
    }
    list
}
