//! Skills: listed from snapshots with the server in every URI, and read with proof that the content is
//! the listed one (0040).

use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use fleet::Request;
use jsonrpc::{Fields, Json, text_of};
use registry::{Generation, KnownServer};
use tool::{Capability, Digest, ItemKind, OfferItem, ServerName};

use super::{
    error::{ForwardError, shown},
    forwarder::Forwarder,
    owner_for_client::find_owner,
    page,
    request::{Params, json_text, replaced, text},
    seen::seen,
    server_uri,
};
use crate::{
    authorize::AuthorizationRequest,
    call_context::CallContext,
    json_text::{list_member, replace_member},
    survey,
};

/// The longest line of a skill in an answer, in characters.
const LINE_CHARS_MAX: usize = 240;

/// The shortest word of a request that can find a skill, in characters.
const WORD_CHARS_MIN: usize = 4;

/// The skills of all servers. Two servers may have one URI, and a skill is what its server says, so
/// every URI is written with its server; digests are those of the server.
pub(super) fn list(seen: &[&KnownServer], params: &Params) -> Result<Json, ForwardError> {
    let skills = seen.iter().flat_map(|server| {
        let skills = server.offer.skills.iter();
        skills.map(|it| with_server(&server.name, it.json()))
    });
    page::write(ItemKind::Skill, seen, params, skills)
}

/// An element whose URI names its server.
fn explicit(server: &ServerName, item: &str) -> String {
    let uri = Fields::of(item).and_then(|it| text_of(it.get("uri")?));
    page::with_text(
        item,
        "uri",
        &server_uri::write(server, &uri.unwrap_or_default()),
    )
}

/// An object whose elements in this list have URIs that name their server; `None` if it has no such list.
fn with_server_in(server: &ServerName, object: &str, list: &str) -> Option<String> {
    let fields = Fields::of(object)?;
    let elements = list_member(object, list)?.into_iter();
    let elements: Vec<String> = elements.map(|it| explicit(server, it.get())).collect();
    Some(replace_member(
        &fields,
        list,
        &format!("[{}]", elements.join(",")),
    ))
}

/// A read file whose URI names its server, as the entry of its skill does: a host looks for the URI
/// that it asked for.
pub(super) fn with_server_in_contents(server: &ServerName, result: Json) -> Json {
    with_server_in(server, result.as_str(), "contents").map_or(result, Json::of_built)
}

/// An entry whose URIs name its server; everything else stays as its server wrote it.
fn with_server(server: &ServerName, entry: &str) -> String {
    let entry = explicit(server, entry);
    with_server_in(server, &entry, "resources").unwrap_or(entry)
}

/// Returns the entry of one skill: the listed one, else that of its server, which need not list
/// all. Its URIs have the form in which it was asked for.
pub(super) async fn get_skill(
    forwarder: &Forwarder,
    generation: &Generation,
    params: &Params,
    context: &CallContext,
) -> Result<Json, ForwardError> {
    let asked = text(params, "uri")?;
    let unknown = || ForwardError::params(format!("No skill is served at {}", shown(&asked)));
    let owner = find_owner(generation, &asked, context).map_err(|error| match error {
        held @ ForwardError::Own { code, .. } if code != ForwardError::NOT_FOUND => held,
        _ => unknown(),
    })?;
    let (server, uri) = (owner.server, owner.uri.as_str());
    let in_form = |entry: &str| {
        if uri == asked {
            entry.to_owned()
        } else {
            with_server(&server.name, entry)
        }
    };
    let entry = match server.offer.skills.iter().find(|it| it.id() == uri) {
        Some(listed) => in_form(listed.json()),
        None if server.offer.has(Capability::Skills) && !server.holds_new => {
            let answer = ask_for_skill(forwarder, server, uri, params, context).await?;
            let entry = Fields::of(answer.as_str()).and_then(|it| it.get("skill"));
            let entry = entry.map(|it| in_form(it.get()));
            entry.ok_or_else(|| ForwardError::internal("the server answered without a skill"))?
        }
        None => return Err(unknown()),
    };
    Ok(Json::of_built(format!(r#"{{"skill":{entry}}}"#)))
}

async fn ask_for_skill(
    forwarder: &Forwarder,
    server: &KnownServer,
    uri: &str,
    params: &Params,
    context: &CallContext,
) -> Result<Json, ForwardError> {
    let asked = AuthorizationRequest::resource(server, uri);
    let authorized = forwarder.authorize("resource", &asked, context).await?;
    let request = Request::new("skills/get", replaced(params, "uri", json_text(uri)));
    forwarder.ask(server, request, authorized, context).await
}

/// Refuses content of a skill that is not the listed one, and asks its server again.
pub(super) fn check_skill_file(
    forwarder: &Forwarder,
    server: &KnownServer,
    uri: &str,
    result: &Json,
) -> Result<(), ForwardError> {
    let Err(why) = check_file(server, uri, result.as_str()) else {
        return Ok(());
    };
    let (catalog, name) = (forwarder.catalog.clone(), server.name.clone());
    tokio::spawn(async move { survey::survey_now(&catalog, &name).await });
    Err(ForwardError::internal(format!(
        "{} {why}: it is not shown. Its server is asked for its skills again; list them, then read it",
        shown(uri)
    )))
}

/// Compares a read file with the entries of all skills that contain it.
fn check_file(server: &KnownServer, uri: &str, result: &str) -> Result<(), &'static str> {
    let skills = server.offer.skills.iter();
    let skills = skills.filter(|it| it.is_skill_file(uri));
    for files in skills.filter_map(OfferItem::skill_files) {
        let listed = files.iter().find(|it| it.uri == uri);
        let listed = listed.ok_or("is in no list of its skill")?;
        let bytes = content(result, uri).ok_or("has no content")?;
        let digest = format!("sha256:{}", Digest::of_bytes(&bytes));
        if bytes.len() as u64 != listed.size || digest != listed.digest {
            return Err("is not what its skill lists");
        }
    }
    Ok(())
}

/// The bytes of this URI in a result of `resources/read`.
fn content(result: &str, uri: &str) -> Option<Vec<u8>> {
    // More than one content could show another text than the checked one.
    let [only] = list_member(result, "contents")?[..] else {
        return None;
    };
    let fields = Fields::of(only.get())?;
    let text = |key: &str| fields.get(key).and_then(text_of);
    if text("uri")? != uri {
        return None;
    }
    match (text("text"), text("blob")) {
        (Some(text), None) => Some(text.into_owned().into_bytes()),
        (None, Some(blob)) => BASE64_STANDARD.decode(blob.as_bytes()).ok(),
        _ => None,
    }
}

/// The skill that a model reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SkillOrigin {
    pub(crate) server: ServerName,
    /// The other files of the skill, with their server.
    pub(crate) files: Vec<String>,
}

/// Returns the skill that a URI belongs to, if it is one.
pub(crate) fn origin_of_skill(
    generation: &Generation,
    uri: &str,
    context: &CallContext,
) -> Option<SkillOrigin> {
    let owner = find_owner(generation, uri, context).ok()?;
    let skills = owner.server.offer.skills.iter();
    let skill = skills
        .filter(|it| it.is_skill_file(&owner.uri))
        .max_by_key(|it| it.id().len())?;
    let files = skill.skill_files().unwrap_or_default().into_iter();
    let others = files.filter(|it| it.uri != owner.uri && skill.id() == owner.uri);
    let server = owner.server.name.clone();
    let files = others
        .map(|it| server_uri::write(&server, &it.uri))
        .collect();
    Some(SkillOrigin { server, files })
}

/// The line of a skill: how it is read, and its description.
pub(super) fn line(server: &KnownServer, skill: &OfferItem) -> String {
    let uri = server_uri::write(&server.name, skill.id());
    let says = skill.frontmatter("description").unwrap_or_default();
    printable::one_line_of(&format!("[skill] {uri} - {says}"), LINE_CHARS_MAX)
}

/// The skills that a request finds by the words of their names and descriptions: with two words of it,
/// or all of them. The best first.
pub(crate) fn skill_lines(
    generation: &Generation,
    query: &str,
    context: &CallContext,
    most: usize,
) -> Vec<String> {
    if context.policy.hides_resources {
        return Vec::new();
    }
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|it| it.chars().count() >= WORD_CHARS_MIN);
        words.map(str::to_lowercase).collect()
    };
    let mut wanted = words(query);
    let asks_for_skills = wanted.remove("skill") | wanted.remove("skills");
    let enough = if asks_for_skills {
        1
    } else {
        wanted.len().clamp(1, 2)
    };
    let mut found = Vec::new();
    for server in seen(generation, &context.policy) {
        for skill in &server.offer.skills {
            let said = |key: &str| skill.frontmatter(key).unwrap_or_default();
            let has = words(&format!("{} {}", said("name"), said("description")));
            let is_alike = |word: &&String| {
                let stem = |it: &str| it.trim_end_matches('s').to_owned();
                has.iter().any(|it| stem(it) == stem(word))
            };
            let score = wanted.iter().filter(is_alike).count();
            if score >= enough || asks_for_skills && wanted.is_empty() {
                found.push((score, line(server, skill)));
            }
        }
    }
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().take(most).map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_uri_of_an_entry_names_its_server() {
        let entry = r#"{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a", "x":1.0},"resources":[{"uri":"skill://a/SKILL.md","digest":"sha256:00","size":1}],"n":1}"#;
        let server = "git".parse().unwrap();
        assert_eq!(
            with_server(&server, entry),
            r#"{"uri":"proxy://git/skill://a/SKILL.md","frontmatter":{"name":"a", "x":1.0},"resources":[{"uri":"proxy://git/skill://a/SKILL.md","digest":"sha256:00","size":1}],"n":1}"#
        );
        let dynamic = r#"{"uri":"skill://a/SKILL.md","resources":"dynamic"}"#;
        assert_eq!(
            with_server(&server, dynamic),
            r#"{"uri":"proxy://git/skill://a/SKILL.md","resources":"dynamic"}"#
        );
    }

    #[test]
    fn the_bytes_of_one_content_are_compared() {
        let check = |result: &str, expected: Option<&[u8]>| {
            assert_eq!(content(result, "s://a").as_deref(), expected, "{result}");
        };
        check(
            r#"{"contents":[{"uri":"s://a","text":"\u00e9"}]}"#,
            Some("é".as_bytes()),
        );
        check(
            r#"{"contents":[{"uri":"s://a","blob":"AAE="}]}"#,
            Some(&[0, 1]),
        );
        check(r#"{"contents":[{"uri":"s://b","text":"x"}]}"#, None);
        check(
            r#"{"contents":[{"uri":"s://a","text":"x"},{"uri":"s://b","text":"y"}]}"#,
            None,
        );
        check(
            r#"{"contents":[{"uri":"s://a","text":"x","blob":"AAE="}]}"#,
            None,
        );
        check("{}", None);
    }
}
