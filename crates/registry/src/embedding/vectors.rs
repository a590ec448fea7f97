//! The vectors of one generation's tools, in one array.

use std::collections::HashSet;
use std::sync::Arc;

use encoder::DIMENSIONS;

use crate::Entry;
use crate::embedding::stored_vectors::StoredVectors;
use crate::embedding::vector::{self, Vector};
use crate::embedding::views::{EncodedText, TextKey};
use crate::loaded_tools::KnownServer;

/// The amount by which a query is more similar to a request than to a definition.
pub(crate) const REQUEST_DISTANCE: f32 = 0.035;

/// The vectors of a generation's visible tools in order, followed by those of their example
/// requests. They are one array because a query is compared with all of them: 40 MB for 100,000
/// texts.
#[derive(Debug, Default)]
pub(crate) struct Embeddings {
    rows: Vec<[i8; DIMENSIONS]>,
    /// The scale by which each row was rounded; 0 for a tool without a vector.
    scales: Vec<f32>,
    /// The number of tools.
    tools: usize,
    /// The index of the tool of each request row, which follow the rows of the tools.
    owners: Vec<u32>,
    /// The requests and descriptions of servers that have no vector yet.
    unread: HashSet<TextKey>,
    known: usize,
    /// The vector of the recipe's description of each server that has visible tools, in order.
    servers: Vec<Option<Vector>>,
}

/// The similarities between a request and the texts of a generation.
#[derive(Debug)]
pub(crate) struct Similar {
    /// The similarity to each visible tool's definition, -1 to 1.
    pub(crate) definitions: Vec<f32>,
    /// The highest similarity to any text of each tool: its definition or one of its requests.
    pub(crate) tools: Vec<f32>,
    /// The similarity to the description of each server that has visible tools, in order.
    pub(crate) servers: Vec<Option<f32>>,
}

impl Embeddings {
    pub(crate) fn of(
        visible: &[Arc<Entry>],
        servers: &[Arc<KnownServer>],
        kept: &StoredVectors,
    ) -> Self {
        let mut embeddings = Self {
            tools: visible.len(),
            ..Self::default()
        };
        for server in visible.chunk_by(|a, b| a.at.server == b.at.server) {
            let name = &server[0].at.server;
            let known = servers.iter().find(|it| it.name == *name);
            let about = known.and_then(|it| it.about.as_deref());
            let key = about.map(|about| EncodedText::Server(name, about).key());
            let vector = key.and_then(|key| kept.0.get(&key));
            embeddings.unread.extend(key.filter(|_| vector.is_none()));
            embeddings.servers.push(vector.cloned());
        }
        let requests = visible.iter().flat_map(|entry| &entry.requests);
        if kept.0.is_empty() {
            let requests = requests.map(|it| EncodedText::Request(it).key());
            embeddings.unread.extend(requests);
            embeddings.scales.resize(visible.len(), 0.0);
            return embeddings;
        }
        let texts = visible.len() + requests.count();
        embeddings.rows.reserve_exact(texts);
        for entry in visible {
            let vector = kept.0.get(&EncodedText::Tool(entry).key());
            embeddings.known += usize::from(vector.is_some());
            let (row, scale) = vector.map_or(([0; DIMENSIONS], 0.0), Vector::parts);
            embeddings.rows.push(row);
            embeddings.scales.push(scale);
        }
        for (owner, entry) in (0..).zip(visible) {
            for request in &entry.requests {
                let key = EncodedText::Request(request).key();
                embeddings.add_request(owner, key, kept);
            }
        }
        embeddings
    }

    fn add_request(&mut self, owner: u32, key: TextKey, kept: &StoredVectors) {
        let Some(vector) = kept.0.get(&key) else {
            self.unread.insert(key);
            return;
        };
        let (row, scale) = vector.parts();
        self.rows.push(row);
        self.scales.push(scale);
        self.owners.push(owner);
    }

    /// Returns true if the request or server text with this key has no vector yet.
    pub(crate) fn lacks(&self, key: &TextKey) -> bool {
        self.unread.contains(key)
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        self.scales[place] > 0.0
    }

    /// Returns the number of tools, requests and servers without a vector.
    pub(crate) fn missing(&self) -> usize {
        self.tools - self.known + self.unread.len()
    }

    /// Returns the number of texts that a query is compared with: definitions and requests.
    pub(crate) fn texts(&self) -> usize {
        self.scales.len()
    }

    /// Returns the number of tools that have a vector.
    pub(crate) fn known(&self) -> usize {
        self.known
    }

    /// Returns true if enough tools have a vector: at least half of them.
    pub(crate) fn is_known(&self) -> bool {
        self.known > 0 && self.known * 2 >= self.tools
    }

    /// Computes the similarity of a request to all tools and servers. A tool without a vector gets
    /// the mean similarity, so its words decide. Returns `None` while fewer than half of the tools
    /// have a vector.
    pub(crate) fn similar(&self, request: &Vector) -> Option<Similar> {
        if !self.is_known() {
            return None;
        }
        let (with, by) = request.parts();
        let products = encoder::products(&self.rows, &with);
        let products = products.into_iter().zip(&self.scales);
        let mut similar: Vec<f32> = products
            .map(|(it, scale)| vector::whole(it) * scale * by)
            .collect();
        let requests = similar.split_off(self.tools);
        if self.known < self.tools {
            let mean = similar.iter().sum::<f32>() / count(self.known);
            let tools = similar.iter_mut().zip(&self.scales);
            for (similar, _) in tools.filter(|(_, scale)| **scale <= 0.0) {
                *similar = mean;
            }
        }
        let servers = self.servers.iter();
        let servers = servers.map(|about| Some(about.as_ref()?.times(request)));
        let mut best = similar.clone();
        for (owner, request) in self.owners.iter().zip(requests) {
            let best = &mut best[*owner as usize];
            *best = best.max(request - REQUEST_DISTANCE);
        }
        Some(Similar {
            definitions: similar,
            tools: best,
            servers: servers.collect(),
        })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a catalogue is counted, not measured"
)]
fn count(tools: usize) -> f32 {
    tools as f32
}
