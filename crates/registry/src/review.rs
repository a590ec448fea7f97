//! What a person has to look at: tools that are not as they were accepted.

use std::collections::HashSet;

use tool::{ServerName, ToolRef};

use crate::{
    RegistryError,
    catalog::{CATALOG, Record, Records},
    disk::{Disk, snapshot_path},
    pins::Review,
    registry::Registry,
    snapshot::Kept,
    steering::find_signs,
};

impl Registry {
    /// The tools that are not as they were accepted, of one server or of all; none of servers whose
    /// tools are not compared.
    pub fn list_reviews(&self, server: Option<&ServerName>) -> Vec<Review> {
        let records = Records::read(self.disk());
        let wanted = |name: &&String| server.is_none_or(|server| server.as_str() == *name);
        let names = records.servers.keys().filter(wanted);
        names
            .filter(|name| self.is_pinned(name))
            .flat_map(|name| reviews_of(self.disk(), &records, name))
            .collect()
    }

    /// What of the tools that there are may be meant to steer a model, tool by tool.
    pub fn list_signs(&self) -> Vec<(ToolRef, Vec<String>)> {
        let records = Records::read(self.disk());
        let mut found = Vec::new();
        for (name, record) in &records.servers {
            let others = names_of_others(&records, name);
            let Some((server, kept)) = name
                .parse::<ServerName>()
                .ok()
                .zip(read(self.disk(), record))
            else {
                continue;
            };
            for tool in &kept.tools {
                let signs = find_signs(tool, &others);
                if !signs.is_empty() {
                    found.push((ToolRef::new(server.clone(), tool.name()), signs));
                }
            }
        }
        found
    }

    /// Accepts or refuses tools of a server as they are; none named: all that wait. Answers their
    /// names. Durable when it returns; waits for another writer's turn.
    pub fn decide_on(
        &self,
        server: &ServerName,
        tools: &[String],
        is_accepted: bool,
    ) -> Result<Vec<String>, RegistryError> {
        let disk = self.disk();
        let _turn = disk.take_turn()?;
        let mut records = Records::read(disk);
        let Some(record) = records.servers.get_mut(server.as_str()) else {
            return Ok(Vec::new());
        };
        let kept = read(disk, record);
        let Some((pins, kept)) = record.pins.as_mut().zip(kept) else {
            return Ok(Vec::new());
        };
        let open: HashSet<String> = pins.open().map(|(name, _)| name.to_owned()).collect();
        let is_meant = |name: &str| {
            let is_named = tools.is_empty() || tools.iter().any(|it| it == name);
            is_named && open.contains(name)
        };
        let meant = kept.tools.iter().filter(|tool| is_meant(tool.name()));
        let mut decided = Vec::new();
        for tool in meant {
            pins.decide(tool, is_accepted);
            decided.push(tool.name().to_owned());
        }
        pins.compare(&kept.tools);
        if !decided.is_empty() {
            disk.write(CATALOG, records.to_text().as_bytes())?;
        }
        Ok(decided)
    }
}

fn reviews_of(disk: &Disk, records: &Records, name: &str) -> Vec<Review> {
    let record = &records.servers[name];
    let kept = read(disk, record);
    let (Some(pins), Some(kept), Ok(server)) = (&record.pins, kept, name.parse::<ServerName>())
    else {
        return Vec::new();
    };
    let others = names_of_others(records, name);
    let review = |(tool, is_refused): (&str, bool)| {
        let found = kept.tools.iter().find(|it| it.name() == tool)?;
        Some(Review {
            at: ToolRef::new(server.clone(), tool),
            before: pins.definition_before(tool).cloned(),
            now: found.json().to_owned(),
            is_refused,
            signs: find_signs(found, &others),
        })
    };
    pins.open().filter_map(review).collect()
}

fn names_of_others<'r>(records: &'r Records, name: &str) -> HashSet<&'r str> {
    let others = records.servers.iter().filter(|(other, _)| *other != name);
    let names = others.flat_map(|(_, record)| record.tools.iter().map(String::as_str));
    let own = &records.servers[name].tools;
    let own: HashSet<String> = own.iter().map(|name| tool::fold(name)).collect();
    names
        .filter(|name| !own.contains(&tool::fold(name)))
        .collect()
}

fn read(disk: &Disk, record: &Record) -> Option<Kept> {
    let file_name = record.snapshot.as_deref()?;
    let bytes = disk.read(&snapshot_path(file_name)).ok()?;
    Kept::read(file_name, &bytes).ok()
}
