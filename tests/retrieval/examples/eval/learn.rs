//! The effect of learning: half of the needs are searched in one wording and their tool is called, then
//! all are searched in the other wording.

use std::collections::BTreeSet;
use std::sync::Arc;

use registry::{Generation, Learned, Query, RelevanceFeedback};

use retrieval::score::{Configuration, Marks, share};
use retrieval::set::{Catalogue, JudgedQuery, SetResult, ToolName};

/// Prints the scores before and after learning: of the needs that were taught, of the needs of other
/// tools, and of the requests that no tool serves.
pub(crate) fn board(
    catalogue: &Catalogue,
    requests: &[JudgedQuery],
    configuration: &Configuration,
) -> SetResult<()> {
    let generation = catalogue.generation(configuration.texts)?;
    for (taught, asked) in [("action", "own"), ("own", "action")] {
        let folder = tempfile::tempdir()?;
        let learned = Learned {
            feedback: Arc::new(RelevanceFeedback::open(
                folder.path(),
                configuration.texts.meaning,
            )),
            whose: "eval@eval".to_owned(),
        };
        let of_kind = |kind: &'static str| requests.iter().filter(move |it| it.kind == kind);
        let (mut needs, mut tools, mut calls) = (BTreeSet::new(), BTreeSet::<&ToolName>::new(), 0);
        for request in of_kind(taught).step_by(2) {
            needs.insert(need(request));
            if teach(catalogue, &generation, configuration, &learned, request) {
                tools.extend(&request.relevant);
                calls += 1;
            }
        }
        println!(
            "{}: {} of {} needs taught by {taught}",
            configuration.name,
            calls,
            needs.len()
        );
        let (same, others): (Vec<_>, Vec<_>) =
            of_kind(asked).partition(|it| needs.contains(need(it)));
        let is_other = |it: &&JudgedQuery| !it.relevant.iter().any(|tool| tools.contains(tool));
        let others = others.into_iter().filter(is_other).collect();
        let foreign = requests
            .iter()
            .filter(|it| it.relevant.is_empty())
            .collect();
        for (name, requests) in [
            ("taught", same),
            ("other tools", others),
            ("served by none", foreign),
        ] {
            for (when, learned) in [("before", None), ("after", Some(&learned))] {
                let row = row(catalogue, &generation, configuration, &requests, learned);
                println!("  {asked:8}{name:16}{when:8}{row}");
            }
        }
    }
    Ok(())
}

/// Returns the id of a request without its wording.
fn need(request: &JudgedQuery) -> &str {
    request
        .id
        .rsplit_once('-')
        .map_or(&request.id, |(need, _)| need)
}

/// Searches, and calls the first right tool of the five hits; returns false if there is none.
fn teach(
    catalogue: &Catalogue,
    generation: &Generation,
    configuration: &Configuration,
    learned: &Learned,
    request: &JudgedQuery,
) -> bool {
    let found = generation.search(&(configuration.query)(&request.text));
    let is_right = |name: &ToolName| request.relevant.contains(name);
    let mut hits = found.hits.iter();
    let Some(hit) = hits.find(|hit| catalogue.named(hit).iter().any(is_right)) else {
        return false;
    };
    let Some(lesson) = registry::find_lesson(generation, &request.text) else {
        return false;
    };
    learned
        .feedback
        .learn(&learned.whose, &lesson, &hit.entry, true, 0);
    true
}

fn row(
    catalogue: &Catalogue,
    generation: &Generation,
    configuration: &Configuration,
    requests: &[&JudgedQuery],
    learned: Option<&Learned>,
) -> String {
    let (mut first, mut five, mut refused, mut sure) = (0.0, 0.0, 0, 0);
    for request in requests {
        let query = Query {
            learned: learned.cloned(),
            ..(configuration.query)(&request.text)
        };
        let found = generation.search(&query);
        let is_refusal = found.hits.is_empty() || found.kind == registry::MatchKind::Nearest;
        refused += usize::from(is_refusal);
        sure += usize::from(!is_refusal && !found.is_guess);
        let ranking: Vec<ToolName> = found
            .hits
            .iter()
            .flat_map(|hit| catalogue.named(hit))
            .collect();
        let marks = Marks::of(&request.relevant, &ranking);
        first += marks.recall[0];
        five += marks.recall[2];
    }
    let count = requests.len();
    let all = share(count.max(1), 1);
    format!(
        "n {count:4}  r@1 {:.3}  r@5 {:.3}  refused {:.3}  sure {:.3}",
        first / all,
        five / all,
        share(refused, count),
        share(sure, count)
    )
}
