//! Near-duplicates: the same tool on several servers is one line of a response, not five.

use std::collections::{BTreeSet, HashMap};

use tool::fold;

use crate::Entry;
use crate::generation::Generation;
use crate::limits::SECOND_LOOK;
use crate::search::sums::Scored;
use crate::words;

/// One line of a response: the best tool of its kind, and the others in their order.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) best: Scored,
    pub(super) others: Vec<u32>,
}

impl Group {
    pub(super) fn of_one(tool: &Scored) -> Self {
        Self {
            best: *tool,
            others: Vec::new(),
        }
    }
}

/// The first lines of an answer, at least `shown` if there are so many. Tools are grouped only among the
/// candidates that were ranked twice, because lines after those are rarely read.
pub(super) fn group(generation: &Generation, tools: &[Scored], shown: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut named: HashMap<&BTreeSet<String>, Vec<usize>> = HashMap::new();
    for (seen, tool) in tools.iter().enumerate() {
        if seen >= SECOND_LOOK && groups.len() >= shown {
            break;
        }
        let entry = tool.entry(generation);
        let same_name = named.entry(entry.name_stems()).or_default();
        let home = same_name.iter().copied().find(|group| {
            let group: &Group = &groups[*group];
            may_join(generation, group, entry) && is_alike(group.best.entry(generation), entry)
        });
        match home {
            Some(group) => groups[group].others.push(tool.place),
            None => {
                same_name.push(groups.len());
                groups.push(Group::of_one(tool));
            }
        }
    }
    groups
}

/// A group has at most one tool per server and no built-in tool.
fn may_join(generation: &Generation, group: &Group, entry: &Entry) -> bool {
    let server = &entry.at.server;
    let others = group.others.iter();
    let mut servers = others.map(|place| &generation.visible()[*place as usize].at.server);
    !server.is_built_in()
        && group.best.entry(generation).at.server != *server
        && servers.all(|other| other != server)
}

/// Returns true if two tools of one name have nearly the same arguments and description.
fn is_alike(one: &Entry, other: &Entry) -> bool {
    let takes = |entry: &Entry| -> BTreeSet<String> {
        let parameters = tool::parameters(&entry.input_schema());
        parameters.into_iter().map(|it| fold(&it.name)).collect()
    };
    let says =
        |entry: &Entry| -> BTreeSet<String> { words::stems(entry.purpose()).into_iter().collect() };
    is_mostly(&takes(one), &takes(other)) && is_mostly(&says(one), &says(other))
}

/// Returns true if at least half of the union is in the intersection.
fn is_mostly(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    2 * one.intersection(other).count() >= one.union(other).count()
}
