//! `proxy add https://HOST`: a server by the card of its host.

use recipes::Recipe;
use setup::{
    add::AddArguments,
    cards::{HostCard, bare_host, discover},
    naming::name_of_url,
};

use super::{
    answers::{Prepared, by_answers},
    args::AddArgs,
    listed::render,
};
use crate::{event_loop::run_async, exit::refuse, report};

/// Looks for cards if the address is a host alone. `None` if it has none: then the address is that of
/// the server.
pub(super) fn prepare(wanted: &AddArguments, given: &AddArgs) -> anyhow::Result<Option<Prepared>> {
    let (name, address) = match (&wanted.name, &wanted.url) {
        (Some(name), None) if name.contains("://") => (None, name),
        (name, Some(url)) => (name.as_deref(), url),
        _ => return Ok(None),
    };
    let Some(host) = bare_host(address).filter(|_| wanted.command.is_empty()) else {
        return Ok(None);
    };
    let cards = run_async(discover(&host))?;
    if cards.is_empty() {
        return Ok(None);
    }
    let card = choose(&cards, given.card.as_deref()).map_err(refuse)?;
    let Some(way) = card.server.ways.first() else {
        return Ok(None);
    };
    report::say(&render(&card.server, way, &card.place));
    if !card.is_here && !given.yes {
        let question = "the server is at another address than this host. add it? [y]es, [n]o:";
        if !report::can_ask() || !report::confirm(question) {
            return Err(refuse(
                "nothing was added: the server is at another address than this host\nhint: --yes, or add \
                 that address",
            ));
        }
    }
    let proposed = name.map(str::to_owned);
    let proposed = proposed.or_else(|| name_of_url(address).map(|it| it.to_string()));
    let proposed = proposed
        .ok_or_else(|| refuse("no name can be derived from this\nhint: proxy add NAME URL"))?;
    // Recipes live as long as the program; this one is the only one of its kind.
    let recipe: &'static Recipe = Box::leak(Box::new(way.recipe.clone()));
    by_answers(&proposed, (recipe, &proposed), given.set.iter(), given).map(Some)
}

fn choose<'c>(cards: &'c [HostCard], asked: Option<&str>) -> Result<&'c HostCard, String> {
    let is_meant = |card: &&HostCard| {
        let name = &card.server.name;
        asked.is_none_or(|asked| own_name(name) == asked || name == asked)
    };
    let mut meant = cards.iter().filter(is_meant);
    if let (Some(one), None) = (meant.next(), meant.next()) {
        return Ok(one);
    }
    let rows = cards.iter().map(|it| {
        let row = format!("{}: {}", own_name(&it.server.name), it.server.description);
        format!("\n  {}", printable::one_line(&row))
    });
    let rows: String = rows.collect();
    Err(format!(
        "the host names several servers{rows}\nhint: --card NAME"
    ))
}

fn own_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}
