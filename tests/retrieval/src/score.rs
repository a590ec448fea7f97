//! The score of a search configuration on a set. Recall and the other scores are computed as in
//! `score.py` of the shared sets.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use registry::{Generation, MatchKind, Query, SearchResult};

use crate::set::{Catalogue, JudgedQuery, SetResult, Texts, ToolName};

/// A search configuration to measure.
#[derive(Debug)]
pub struct Configuration {
    pub name: &'static str,
    pub texts: Texts,
    pub query: fn(&str) -> Query,
}

/// All configurations to measure.
pub const CONFIGURATIONS: &[Configuration] = &[
    Configuration {
        name: "lexical",
        texts: Texts {
            meaning: false,
            requests: false,
        },
        query: |text| Query::words(text),
    },
    Configuration {
        name: "encoder",
        texts: Texts {
            meaning: true,
            requests: false,
        },
        query: |text| Query::words(text),
    },
    Configuration {
        name: "requests",
        texts: Texts {
            meaning: true,
            requests: true,
        },
        query: |text| Query::words(text),
    },
];

/// Means over requests, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Marks {
    pub recall: [f64; 4],
    pub ndcg_at_5: f64,
    pub mrr: f64,
}

/// Ranks at which recall is taken.
pub const RECALL_AT: [usize; 4] = [1, 3, 5, 10];

/// The scores of one configuration on one set.
#[derive(Debug)]
pub struct Report {
    pub marks: Marks,
    /// The same for each kind of request, if the set has kinds.
    pub by_kind: BTreeMap<String, (usize, Marks)>,
    /// The share of requests with a matching tool whose response is that no tool surely fits.
    pub false_refusals: f64,
    /// The share of requests with a matching tool whose response has no tool at all.
    pub hidden: f64,
    /// The share of requests without a matching tool that got a tool as a sure hit; none if not
    /// measured.
    pub false_offers: Option<f64>,
    pub half: Duration,
    pub most: Duration,
    /// The tokens of a response with five hits.
    pub tokens: f64,
    pub rankings: Vec<(String, Vec<ToolName>)>,
}

impl Report {
    /// Scores a configuration. `unservable` is the number of requests that are repeated on a
    /// catalogue without the tools that serve them. Requests that no tool serves are searched on
    /// the whole catalogue.
    pub fn of(
        catalogue: &Catalogue,
        requests: &[JudgedQuery],
        configuration: &Configuration,
        unservable: usize,
    ) -> SetResult<Self> {
        let generation = catalogue.generation(configuration.texts)?;
        let (served, hopeless): (Vec<&JudgedQuery>, Vec<&JudgedQuery>) =
            requests.iter().partition(|it| !it.relevant.is_empty());
        let (mut times, mut rankings, mut marks) = (Vec::new(), Vec::new(), Vec::new());
        let (mut refused, mut hidden, mut tokens) = (0, 0, 0);
        for request in &served {
            let began = Instant::now();
            let found = generation.search(&(configuration.query)(&request.text));
            times.push(began.elapsed());
            refused += usize::from(is_refusal(&found));
            hidden += usize::from(found.kind == MatchKind::Nothing);
            tokens += answer_tokens(&found);
            let ranking = ranking(catalogue, &generation, configuration, &request.text);
            marks.push(Marks::of(&request.relevant, &ranking));
            rankings.push((request.id.clone(), ranking));
        }
        times.sort_unstable();
        let offers = offers(catalogue, &served, configuration, unservable)?
            + hopeless_offers(&generation, &hopeless, configuration);
        let kinds = served.iter().map(|request| request.kind.as_str());
        Ok(Self {
            marks: mean(marks.iter()),
            by_kind: by_kind(kinds, &marks),
            false_refusals: share(refused, served.len()),
            hidden: share(hidden, served.len()),
            false_offers: offers.share(),
            half: times[times.len() / 2],
            most: times[times.len() * 99 / 100],
            tokens: share(tokens, served.len()),
            rankings,
        })
    }
}

/// Returns true if the response is that no tool surely fits, with or without the nearest ones.
fn is_refusal(found: &SearchResult) -> bool {
    matches!(found.kind, MatchKind::Nothing | MatchKind::Nearest)
}

fn ranking(
    catalogue: &Catalogue,
    generation: &Generation,
    configuration: &Configuration,
    text: &str,
) -> Vec<ToolName> {
    let query = Query {
        limit: RANKED,
        ..(configuration.query)(text)
    };
    let hits = generation.search(&query).hits;
    let mut ranking: Vec<ToolName> = Vec::new();
    for name in hits.iter().flat_map(|hit| catalogue.named(hit)) {
        if !ranking.contains(&name) {
            ranking.push(name);
        }
    }
    ranking.truncate(RANKED);
    ranking
}

/// The number of requests without a matching tool, and the number of those that got a tool as a
/// sure hit.
#[derive(Debug, Default)]
struct Offers {
    offered: usize,
    asked: usize,
}

impl std::ops::Add for Offers {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            asked: self.asked + other.asked,
        }
    }
}

impl Offers {
    fn ask(&mut self, generation: &Generation, configuration: &Configuration, text: &str) {
        let found = generation.search(&(configuration.query)(text));
        self.asked += 1;
        self.offered +=
            usize::from(!is_refusal(&found) && !found.is_guess && !found.without_filter);
    }

    fn share(&self) -> Option<f64> {
        (self.asked > 0).then(|| share(self.offered, self.asked))
    }
}

/// Removes the tools that serve a request from the catalogue, then searches. The requests are
/// evenly distributed over the set.
fn offers(
    catalogue: &Catalogue,
    served: &[&JudgedQuery],
    configuration: &Configuration,
    unservable: usize,
) -> SetResult<Offers> {
    let mut offers = Offers::default();
    let step = served.len().div_ceil(unservable.max(1)).max(1);
    for request in served.iter().step_by(step).take(unservable) {
        let generation = catalogue.without(&request.relevant, configuration.texts)?;
        offers.ask(&generation, configuration, &request.text);
    }
    Ok(offers)
}

fn hopeless_offers(
    generation: &Generation,
    hopeless: &[&JudgedQuery],
    configuration: &Configuration,
) -> Offers {
    let mut offers = Offers::default();
    for request in hopeless {
        offers.ask(generation, configuration, &request.text);
    }
    offers
}

impl Marks {
    /// Computes the scores of one ranking.
    #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
    pub fn of(relevant: &[ToolName], ranking: &[ToolName]) -> Self {
        let is_right: Vec<bool> = ranking.iter().map(|it| relevant.contains(it)).collect();
        let right_in = |k: usize| is_right.iter().take(k).filter(|it| **it).count();
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let first = is_right.iter().position(|it| *it);
        let ideal: f64 = (0..relevant.len().min(5)).map(gain).sum();
        let gained: f64 = (0..is_right.len().min(5))
            .filter(|rank| is_right[*rank])
            .map(gain)
            .sum();
        Self {
            recall: RECALL_AT.map(|k| share(right_in(k), k.min(relevant.len()))),
            ndcg_at_5: gained / ideal,
            mrr: first.map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
        }
    }
}

fn by_kind<'a>(
    kinds: impl Iterator<Item = &'a str>,
    marks: &[Marks],
) -> BTreeMap<String, (usize, Marks)> {
    let mut sorted: BTreeMap<String, Vec<Marks>> = BTreeMap::new();
    for (kind, marks) in kinds.zip(marks).filter(|(kind, _)| !kind.is_empty()) {
        sorted.entry(kind.to_owned()).or_default().push(*marks);
    }
    let means = sorted.into_iter();
    means
        .map(|(kind, marks)| (kind, (marks.len(), mean(marks.iter()))))
        .collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sets have thousands of requests"
)]
fn mean<'a>(marks: impl ExactSizeIterator<Item = &'a Marks>) -> Marks {
    let count = marks.len().max(1) as f64;
    let sum = marks.fold(Marks::default(), |sum, one| Marks {
        recall: std::array::from_fn(|at| sum.recall[at] + one.recall[at]),
        ndcg_at_5: sum.ndcg_at_5 + one.ndcg_at_5,
        mrr: sum.mrr + one.mrr,
    });
    Marks {
        recall: sum.recall.map(|sum| sum / count),
        ndcg_at_5: sum.ndcg_at_5 / count,
        mrr: sum.mrr / count,
    }
}

/// Estimates the tokens of the hits: one token for 4 bytes of ASCII, one for every other character.
fn answer_tokens(found: &SearchResult) -> usize {
    let lines = found.hits.iter().map(|hit| {
        let (entry, at) = (&hit.entry, &hit.entry.at);
        format!("{at}{} - {}\n", entry.signature(), entry.purpose())
    });
    let text: String = lines.collect();
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(4) + text.chars().filter(|c| !c.is_ascii()).count()
}

/// Returns the ratio of a part to a whole, between 0 and 1.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The maximum length of a ranking.
const RANKED: usize = 20;
