//! Rules for calls, quotas, and lists of clients and profiles that name a server: listed, rewritten for
//! another name, and removed with it.

use files::toml::keep_text_above;
use printable::{LetterCase, Pattern};
use toml_edit::{Array, DocumentMut, Item, TableLike, Value};

use super::error::EditError;

/// The rules that named a removed server: those that were removed and those that stay.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RemovedRules {
    /// Rules and entries that named only this server.
    pub removed: Vec<String>,
    /// Rules that apply to it and stay, since they apply to other servers too.
    pub stay: Vec<String>,
}

const LISTS: [&str; 2] = ["allow", "deny"];

/// The tables that have these lists.
const WITH_LISTS: [&str; 2] = ["clients", "profiles"];

/// The lists of rules, each with the word for one of them. Quotas name servers and tools as rules do.
const RULES: [(&str, &str); 2] = [("rules", "rule"), ("quotas", "quota")];

/// A rule or a quota.
struct RuleOf<'t> {
    list: &'static str,
    /// Its place in the list.
    at: usize,
    /// `rule 2`, for people.
    title: String,
    rule: &'t mut dyn TableLike,
}

/// The rules and entries that name exactly this server.
pub(super) fn list(toml: &DocumentMut, server: &str) -> Vec<String> {
    let mut toml = toml.clone();
    let mut found = Vec::new();
    for RuleOf { title, rule, .. } in rules(&mut toml) {
        for (key, item) in rule.iter() {
            let is_named = |text: &str| match key {
                "server" | "category" => is_name(text, server),
                "tool" | "prompt" => names_tool_of(text, server),
                _ => false,
            };
            if texts(item).into_iter().any(is_named) {
                found.push(show(&title, key, item));
            }
        }
    }
    for (of, key, item) in lists(&toml) {
        if texts(item).iter().any(|it| is_name(it, server)) {
            found.push(format!("{of}.{key} = {}", text_of(item)));
        }
    }
    found
}

/// Rewrites every rule and list so that it applies to the new name as it did to the old one. Returns
/// the changes.
pub(super) fn rename(
    toml: &mut DocumentMut,
    from: &str,
    to: &str,
) -> Result<Vec<String>, EditError> {
    let categories = Categories::read(toml, from);
    let (mut changes, mut doubtful) = (Vec::new(), Vec::new());
    for RuleOf { title, rule, .. } in rules(toml) {
        let servers = rule.get("server").map(texts);
        let is_in_scope = servers.is_none_or(|servers| servers.iter().any(|text| fits(text, from)));
        let keys: Vec<String> = rule.iter().map(|(key, _)| key.to_owned()).collect();
        for key in keys {
            let Some(item) = rule.get_mut(&key) else {
                continue;
            };
            let before = show(&title, &key, item);
            let is_changed = rewrite(item, &mut |text| match key.as_str() {
                "server" => rename_name(text, from, to),
                "category" if categories.is_by_name => categories.rename(text, from, to),
                "tool" | "prompt" if is_in_scope => {
                    rename_full(text, from, to).unwrap_or_else(|Doubtful| {
                        doubtful.push(before.clone());
                        None
                    })
                }
                _ => None,
            });
            if is_changed {
                changes.push(format!("{before} is now {}", text_of(item)));
            }
        }
    }
    if !doubtful.is_empty() {
        return Err(EditError::Patterns(doubtful));
    }
    for (of, key, item) in lists_mut(toml) {
        let before = text_of(item);
        if rewrite(item, &mut |text| categories.rename(text, from, to)) {
            let after = text_of(item);
            changes.push(format!("{of}.{key} = {before} is now {after}"));
        }
    }
    Ok(changes)
}

/// Removes the rules that name only this server, and its name from rules that name others too.
pub(super) fn remove(toml: &mut DocumentMut, server: &str) -> RemovedRules {
    let mut outcome = RemovedRules::default();
    let mut empty = Vec::new();
    for RuleOf {
        list,
        at,
        title,
        rule,
    } in rules(toml)
    {
        let before = show_all(&title, rule);
        let holds = |key: &str, text: &str| match key {
            "server" => fits(text, server) && !is_any(text),
            "category" => is_name(text, server),
            _ => false,
        };
        let is_changed = ["server", "tool", "prompt"].map(|key| {
            let Some(item) = rule.get_mut(key) else {
                return false;
            };
            rewrite(item, &mut |text| {
                let is_named = match key {
                    "server" => is_name(text, server),
                    _ => names_tool_of(text, server),
                };
                is_named.then(Vec::new)
            })
        });
        let has_texts = |key: &str| rule.get(key).map(|item| !texts(item).is_empty());
        let names = ["tool", "prompt", "resource"].map(has_texts);
        // Without its names a rule would apply to everything.
        let is_empty = has_texts("server") == Some(false)
            || (names.contains(&Some(false)) && !names.contains(&Some(true)));
        if is_empty {
            empty.push((list, at));
        } else {
            for key in ["tool", "prompt"] {
                if rule.get(key).is_some_and(|item| texts(item).is_empty()) {
                    rule.remove(key);
                }
            }
        }
        if is_changed.contains(&true) {
            outcome.removed.push(before);
        } else if rule
            .iter()
            .any(|(key, item)| texts(item).iter().any(|it| holds(key, it)))
        {
            outcome.stay.push(before);
        }
    }
    for (list, at) in empty.into_iter().rev() {
        remove_rule(toml, list, at);
    }
    remove_from_lists(toml, server, &mut outcome);
    outcome
}

fn remove_from_lists(toml: &mut DocumentMut, server: &str, outcome: &mut RemovedRules) {
    let categories = Categories::read(toml, server);
    for (of, key, item) in lists_mut(toml) {
        let shown = format!("{of}.{key} = {}", text_of(item));
        let is_named = |text: &str| is_name(text, server);
        let names = texts(item);
        if !names.iter().any(|it| is_named(it)) {
            if names.iter().any(|it| fits(it, server) && !is_any(it)) {
                outcome.stay.push(shown);
            }
        } else if key == "allow" && names.iter().all(|it| is_named(it)) {
            outcome
                .stay
                .push(format!("{shown} (an empty list would allow everything)"));
        } else if categories.is_of_others {
            outcome.stay.push(shown);
        } else {
            rewrite(item, &mut |text| is_named(text).then(Vec::new));
            outcome.removed.push(shown);
        }
    }
}

fn remove_rule(toml: &mut DocumentMut, list: &str, at: usize) {
    match toml.get_mut(list) {
        Some(Item::ArrayOfTables(rules)) => {
            let table = rules.remove(at);
            if rules.is_empty() {
                toml.remove(list);
            }
            keep_text_above(toml, &Item::Table(table));
        }
        Some(Item::Value(Value::Array(rules))) => {
            rules.remove(at);
        }
        _ => {}
    }
}

/// A server's name is also its category, if no other is set.
#[derive(Debug)]
struct Categories {
    /// The server's category is its name.
    is_by_name: bool,
    /// True if a server or tool has a category of this name.
    is_of_others: bool,
}

impl Categories {
    fn read(toml: &DocumentMut, server: &str) -> Self {
        let mut categories = Self {
            is_by_name: true,
            is_of_others: false,
        };
        let servers = toml.get("servers").and_then(Item::as_table_like);
        for (name, item) in servers.into_iter().flat_map(TableLike::iter) {
            let own = item.get("category").and_then(Item::as_str);
            categories.is_by_name &= name != server || own.is_none();
            let overlays = item.get("overlay").and_then(Item::as_table_like);
            let overlays = overlays.into_iter().flat_map(TableLike::iter);
            let of_tools = overlays.filter_map(|(_, it)| it.get("category")?.as_str());
            let mut all = own.into_iter().chain(of_tools);
            categories.is_of_others |= all.any(|it| it.eq_ignore_ascii_case(server));
        }
        categories
    }

    fn rename(&self, text: &str, from: &str, to: &str) -> Option<Vec<String>> {
        let renamed = rename_name(text, from, to)?;
        if self.is_of_others {
            return Some(vec![text.to_owned(), to.to_owned()]);
        }
        Some(renamed)
    }
}

fn is_any(text: &str) -> bool {
    text.chars().all(|c| c == '*')
}

/// Returns the patterns of an item: one text or a list of them.
fn texts(item: &Item) -> Vec<&str> {
    match item.as_value() {
        Some(Value::Array(array)) => array.iter().filter_map(Value::as_str).collect(),
        Some(value) => value.as_str().into_iter().collect(),
        None => Vec::new(),
    }
}

fn compile(pattern: &str) -> Option<Pattern> {
    Pattern::new(pattern, LetterCase::Ignored).ok()
}

/// Returns true if a name matches the pattern, ignoring case.
fn fits(pattern: &str, name: &str) -> bool {
    compile(pattern).is_some_and(|pattern| pattern.matches(name))
}

/// Returns true if the pattern matches this name and no other.
fn is_name(pattern: &str, name: &str) -> bool {
    compile(pattern).is_some_and(|pattern| pattern.is_exact() && pattern.matches(name))
}

/// Returns true if the pattern begins with this name and a `/`.
fn names_tool_of(pattern: &str, server: &str) -> bool {
    strip_server(pattern, server).is_some()
}

fn strip_server<'a>(pattern: &'a str, server: &str) -> Option<&'a str> {
    let (head, rest) = pattern.split_at_checked(server.len())?;
    let rest = rest.strip_prefix('/')?;
    head.eq_ignore_ascii_case(server).then_some(rest)
}

/// Returns the patterns of names that match `to` where this one matches `from`; `None` if it can stay.
fn rename_name(pattern: &str, from: &str, to: &str) -> Option<Vec<String>> {
    if is_name(pattern, from) {
        return Some(vec![to.to_owned()]);
    }
    let is_lost = fits(pattern, from) && !fits(pattern, to);
    is_lost.then(|| vec![pattern.to_owned(), to.to_owned()])
}

/// A pattern that matches tools of the former name, and not clearly the same tools of the new one.
#[derive(Debug, PartialEq, Eq)]
struct Doubtful;

/// Returns the patterns of `server/name` that match `to/name` where this one matches `from/name`;
/// `None` if it can stay.
fn rename_full(pattern: &str, from: &str, to: &str) -> Result<Option<Vec<String>>, Doubtful> {
    if let Some(rest) = strip_server(pattern, from) {
        return Ok(Some(vec![format!("{to}/{rest}")]));
    }
    if let Some((server, rest)) = pattern.split_once('/') {
        let Some(of_server) = compile(server) else {
            // The `/` is within braces or brackets.
            let is_named = pattern.to_lowercase().contains(&from.to_lowercase());
            return if is_named { Err(Doubtful) } else { Ok(None) };
        };
        if of_server.matches(from) && !of_server.matches(to) {
            // `*` may match the `/` as well.
            let is_sure = !server.contains('*');
            let added = format!("{to}/{rest}");
            return if is_sure {
                Ok(Some(vec![pattern.to_owned(), added]))
            } else {
                Err(Doubtful)
            };
        }
    }
    let may_begin_with = |server: &str| {
        let beginning = format!("{server}/");
        let heads = (1..=pattern.len()).filter_map(|end| pattern.get(..end));
        heads.into_iter().any(|head| fits(head, &beginning))
    };
    let is_lost = may_begin_with(from) && !may_begin_with(to);
    if is_lost { Err(Doubtful) } else { Ok(None) }
}

fn rewrite(item: &mut Item, change: &mut dyn FnMut(&str) -> Option<Vec<String>>) -> bool {
    match item.as_value_mut() {
        Some(Value::Array(array)) => rewrite_array(array, change),
        Some(value) => {
            let Some(new) = value.as_str().and_then(change) else {
                return false;
            };
            let decor = value.decor().clone();
            *value = match new.as_slice() {
                [one] => one.into(),
                all => Value::Array(all.iter().collect()),
            };
            *value.decor_mut() = decor;
            true
        }
        None => false,
    }
}

fn rewrite_array(array: &mut Array, change: &mut dyn FnMut(&str) -> Option<Vec<String>>) -> bool {
    let (mut at, mut is_changed) = (0, false);
    while let Some(value) = array.get(at) {
        let Some(new) = value.as_str().and_then(&mut *change) else {
            at += 1;
            continue;
        };
        is_changed = true;
        let decor = array.remove(at).decor().clone();
        if let (true, 0, Some(next)) = (new.is_empty(), at, array.get_mut(0)) {
            *next.decor_mut() = decor.clone();
        }
        for (index, text) in new.into_iter().enumerate() {
            let mut value = Value::from(text);
            if index == 0 {
                *value.decor_mut() = decor.clone();
            } else {
                value.decor_mut().set_prefix(" ");
            }
            array.insert_formatted(at, value);
            at += 1;
        }
    }
    is_changed
}

fn rules(toml: &mut DocumentMut) -> Vec<RuleOf<'_>> {
    let mut all = Vec::new();
    for (key, item) in toml.iter_mut() {
        let Some((list, noun)) = RULES.into_iter().find(|(list, _)| *list == key.get()) else {
            continue;
        };
        let tables: Vec<&mut dyn TableLike> = match item {
            Item::ArrayOfTables(rules) => rules.iter_mut().map(|it| it as _).collect(),
            Item::Value(Value::Array(rules)) => {
                let tables = rules.iter_mut().filter_map(Value::as_inline_table_mut);
                tables.map(|it| it as _).collect()
            }
            _ => continue,
        };
        all.extend(tables.into_iter().enumerate().map(|(at, rule)| RuleOf {
            list,
            at,
            title: format!("{noun} {}", at + 1),
            rule,
        }));
    }
    all
}

/// Returns each list with the table that it is in, `clients.cursor`.
fn lists(toml: &DocumentMut) -> Vec<(String, &'static str, &Item)> {
    let mut all = Vec::new();
    for of in WITH_LISTS {
        let tables = toml.get(of).and_then(Item::as_table_like);
        for (name, table) in tables.into_iter().flat_map(TableLike::iter) {
            let lists = LISTS
                .into_iter()
                .filter_map(|key| Some((key, table.get(key)?)));
            all.extend(lists.map(|(key, item)| (format!("{of}.{name}"), key, item)));
        }
    }
    all
}

fn lists_mut(toml: &mut DocumentMut) -> Vec<(String, &'static str, &mut Item)> {
    let mut all = Vec::new();
    for (of, tables) in toml.iter_mut() {
        let of = of.get().to_owned();
        let tables = tables.as_table_like_mut();
        let tables = tables.filter(|_| WITH_LISTS.contains(&of.as_str()));
        for (name, table) in tables.into_iter().flat_map(|it| it.iter_mut()) {
            let Some(table) = table.as_table_like_mut() else {
                continue;
            };
            for (key, item) in table.iter_mut() {
                if let Some(key) = LISTS.into_iter().find(|it| *it == key.get()) {
                    all.push((format!("{of}.{}", name.get()), key, item));
                }
            }
        }
    }
    all
}

fn text_of(item: &Item) -> String {
    let Some(mut value) = item.as_value().cloned() else {
        return String::new();
    };
    value.decor_mut().clear();
    value.to_string()
}

fn show(title: &str, key: &str, item: &Item) -> String {
    format!("{title}: {key} = {}", text_of(item))
}

fn show_all(title: &str, rule: &dyn TableLike) -> String {
    let one = |(key, item): (&str, &Item)| format!("{key} = {}", text_of(item));
    let members: Vec<String> = rule.iter().map(one).collect();
    format!("{title}: {}", members.join(", "))
}

#[cfg(test)]
mod tests;
