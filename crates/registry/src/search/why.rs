//! Explains a tool's rank, term by term.

use crate::Entry;
use crate::generation::Generation;
use crate::search::query::Query;
use crate::search::rank::Ranking;
use crate::search::search_result::{Evidence, SearchResult};
use crate::search::sums::coverage_factor;
use crate::search::term::{Term, saturation};
use crate::search::values;
use crate::search::weights::COVERED_WEIGHT;
use crate::words::{ParsedQuery, QueryWords};

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
    let index = &generation.index;
    let length = index.lengths[place] / index.length_mean;
    let ranking = Ranking::new(generation, wanted, text, query.learned.as_ref());
    let adds = ranking.context.as_ref().map(|context| context[place]);
    let terms = wanted
        .words
        .iter()
        .map(|word| (word, Term::of(index, word)));
    let terms: Vec<_> = terms.collect();
    let all: f32 = terms.iter().map(|(_, term)| term.mass).sum();
    let (mut held, mut list) = (0.0, Vec::new());
    let mut add = |label: &str, amount: f32| {
        let label = label.to_owned();
        list.push(Evidence { label, amount });
    };
    for (word, term) in &terms {
        let times = term.tools.iter().find(|(tool, _)| *tool as usize == place);
        if let Some((_, times)) = times {
            held += term.mass;
            let amount = match adds {
                Some(_) => COVERED_WEIGHT * term.mass / all.max(f32::MIN_POSITIVE),
                None => term.weight * saturation(*times, length),
            };
            add(&format!("\"{}\"", word.exact), amount);
        }
    }
    if let Some(adds) = adds {
        if let Some((_, similar)) = generation.similar(&values::with_kinds(text)) {
            let label = "meaning: how near the request's, to which words add a little";
            add(label, similar.tools[place]);
        }
        let label = "meaning: what its server adds, by its name, description and tools";
        add(label, adds);
    } else {
        let coverage = if all > 0.0 { held / all } else { 1.0 };
        let label = format!("times: it covers {:.0} % of the request", 100.0 * coverage);
        add(&label, coverage_factor(coverage));
        let label = "times: the request spells its name or server";
        add(label, ranking.name_factor(entry));
    }
    let gain = u32::try_from(place)
        .ok()
        .and_then(|at| ranking.learned.get(&at));
    if let Some(gain) = gain {
        add("learned: what calls after similar requests add", *gain);
    }
    list
}
