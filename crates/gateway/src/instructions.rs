//! The instructions for the model, which the response to `initialize` has.

use std::collections::BTreeMap;

use excerpt::tokens;
use registry::{CatalogServer, Entry, Generation, ServerCatalog};
use tool::ServerName;

use crate::{
    catalog::list_offered,
    definitions::OUR_TOKENS,
    policy::{ClientPolicy, ShownCatalog},
    render::{
        hit::{self, ServerMarks},
        join,
        search::list_counts,
    },
};

/// Tokens that the definitions and the instructions may take together (interface, section 3).
const TOKENS_MAX: usize = 320;

/// The limits for the list of servers and for that of servers being asked, in tokens by the quick
/// bound: the first pair with which everything fits is used.
const LISTS_TOKENS_MAX: [(usize, usize); 8] = [
    (120, 60),
    (95, 50),
    (75, 40),
    (60, 30),
    (45, 22),
    (30, 15),
    (15, 8),
    (0, 0),
];

/// The limit for the list of servers that are not shared, in tokens.
const APART_LIST_TOKENS_MAX: usize = 12;

/// The most tools that instructions name; more are found by a search.
const TOOLS_NAMED_MAX: usize = 10;

/// The most tokens of a list of tools, by names and by signatures.
const NAMES_TOKENS_MAX: usize = 120;
const SIGNATURES_TOKENS_MAX: usize = 450;

/// The most bytes of such a list: clients cut instructions after 2,048 characters.
const NAMED_BYTES_MAX: usize = 1_600;

/// The instructions for the model on how to use us. They are built when a session begins and fixed
/// while it lives.
///
/// Servers that this client does not see are not named. The text has servers with their counts if
/// they fit, else categories with counts, else the count alone. A server that has never sent its
/// tools is listed as being asked if it has not failed, or is in `asked`. Servers in `apart` are not
/// shared with other clients. The table of the client may say that no server is named, or each tool of
/// `tools`, unless these are too many.
pub fn instructions(
    catalog: &ServerCatalog,
    client: &ClientPolicy,
    apart: &[ServerName],
    asked: &[ServerName],
    tools: Option<&Generation>,
) -> String {
    let servers = catalog.servers.iter();
    let seen: Vec<&CatalogServer> = servers
        .filter(|server| client.sees(&server.name, &server.category))
        .collect();
    let names_none = client.catalog == ShownCatalog::None;
    let apart = not_shared(&seen, if names_none { &[] } else { apart }).unwrap_or_default();
    let is_new = |server: &&CatalogServer| {
        server.surveyed_at.is_none() && (server.stale.is_none() || asked.contains(&server.name))
    };
    let new = seen.iter().copied().filter(is_new);
    let new: Vec<&ServerName> = new.map(|server| &server.name).collect();
    let write_with = |named: &NamedTools, (list, asked)| {
        let tools = count_tools(&seen, list).map(|counted| counted + &named.list);
        let mut says = write(tools, &new, &apart, asked, named.next_step);
        if client.sees_ours() {
            says.push_str(" Many calls: proxy/run_script.");
        }
        says
    };
    let (shortest, others) = LISTS_TOKENS_MAX.split_last().expect("there are some");
    if let Some(named) = tools.and_then(|tools| name_tools(tools, client)) {
        return write_with(&named, *shortest);
    }
    let written = |limits| write_with(&NamedTools::NONE, limits);
    if names_none {
        return written(*shortest);
    }
    let mut texts = others.iter().copied().map(written);
    let room = TOKENS_MAX - OUR_TOKENS;
    let fitting = texts.find(|text| tokens::count(text) <= room);
    fitting.unwrap_or_else(|| written(*shortest))
}

/// A list of tools, and the next step for a task that may need one.
struct NamedTools {
    list: String,
    next_step: &'static str,
}

impl NamedTools {
    const NONE: Self = Self {
        list: String::new(),
        next_step: "call search_tools first, then execute_dynamic_tool",
    };
}

/// The most detailed list of the tools that the client's table allows and that is short enough.
fn name_tools(tools: &Generation, client: &ClientPolicy) -> Option<NamedTools> {
    let sees = |it: &&Entry| client.sees(&it.at.server, &it.category);
    let tools: Vec<&Entry> = list_offered(tools).filter(sees).collect();
    if tools.is_empty() || tools.len() > TOOLS_NAMED_MAX {
        return None;
    }
    let named = |shown, list: String, tokens_max, next_step| {
        let is_short = tokens::count(&list) <= tokens_max && list.len() <= NAMED_BYTES_MAX;
        (client.catalog >= shown && is_short).then_some(NamedTools { list, next_step })
    };
    let marks = ServerMarks::default();
    let lines = join(tools.iter().map(|it| hit::line(it, &marks)), "\n");
    let addresses = join(tools.iter().map(|it| &it.at), ", ");
    named(
        ShownCatalog::Signatures,
        format!(":\n{lines}"),
        SIGNATURES_TOKENS_MAX,
        "call one of these with execute_dynamic_tool",
    )
    .or_else(|| {
        named(
            ShownCatalog::Names,
            format!(": {addresses}"),
            NAMES_TOKENS_MAX,
            "call describe_tool for one of these, then execute_dynamic_tool",
        )
    })
}

fn write(
    tools: Option<String>,
    new: &[&ServerName],
    apart: &str,
    asked_tokens_max: usize,
    next_step: &str,
) -> String {
    let says = match (tools, being_asked(new, asked_tokens_max)) {
        (Some(tools), Some(asked)) => format!("{tools}; {asked}"),
        (Some(tools), None) => tools,
        (None, Some(asked)) => format!("Gateway to MCP servers; {asked}"),
        (None, None) => "Gateway to MCP servers, none of which offers a tool now".to_owned(),
    };
    format!(
        "{says}.{apart} When a task needs a service, data or action beyond your built-in tools, \
         {next_step}. Never guess a tool name."
    )
}

fn count_tools(seen: &[&CatalogServer], list_tokens_max: usize) -> Option<String> {
    let known = || seen.iter().filter(|server| server.tools > 0);
    let total: usize = known().map(|server| server.tools).sum();
    let servers = known().map(|server| (server.name.as_str(), server.tools));
    let mut servers: Vec<(&str, usize)> = servers.collect();
    let mut categories: BTreeMap<&str, usize> = BTreeMap::new();
    for server in known() {
        *categories.entry(&server.category).or_default() += server.tools;
    }
    let mut categories: Vec<(&str, usize)> = categories.into_iter().collect();
    let list = whole_list(&mut servers, list_tokens_max)
        .or_else(|| whole_list(&mut categories, list_tokens_max))
        .or_else(|| first_of_list(&categories, list_tokens_max));
    let list = list.map(|list| format!(": {list}")).unwrap_or_default();
    (total > 0).then(|| {
        let plural = if total == 1 { "" } else { "s" };
        format!("Gateway to {total} tool{plural}{list}")
    })
}

/// The servers that are being asked for the first time.
fn being_asked(names: &[&ServerName], tokens_max: usize) -> Option<String> {
    let list = join(names, ", ");
    match names.len() {
        0 => None,
        _ if tokens::upper_bound(&list) <= tokens_max => Some(format!("being asked now: {list}")),
        count => Some(format!("being asked now: {count} servers")),
    }
}

/// The servers that run for this client apart from others, in a sentence.
fn not_shared(seen: &[&CatalogServer], apart: &[ServerName]) -> Option<String> {
    let names = seen.iter().map(|server| &server.name);
    let names: Vec<&ServerName> = names.filter(|it| apart.contains(it)).collect();
    let list = join(&names, ", ");
    let which = match names.len() {
        0 => return None,
        _ if tokens::upper_bound(&list) <= APART_LIST_TOKENS_MAX => list,
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    };
    Some(format!(
        " Not shared with other clients, whose variables differ: {which}."
    ))
}

/// All servers with their counts, the largest first; `None` if they do not fit.
fn whole_list(counts: &mut [(&str, usize)], tokens_max: usize) -> Option<String> {
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let list = list_counts(counts, counts.len());
    let fits = !list.is_empty() && tokens::upper_bound(&list) <= tokens_max;
    fits.then_some(list)
}

/// Entries of a list that leaves some out.
const LISTED_MAX: usize = 24;

/// As many of the first entries as fit.
fn first_of_list(counts: &[(&str, usize)], tokens_max: usize) -> Option<String> {
    let lists = (1..counts.len().min(LISTED_MAX)).rev();
    let mut lists = lists.map(|first| format!("{}, ...", list_counts(&counts[..first], first)));
    lists.find(|list| tokens::upper_bound(list) <= tokens_max)
}

#[cfg(test)]
mod tests {
    use excerpt::tokens;
    use registry::{CatalogServer, ServerCatalog};
    use tool::ServerName;

    use crate::policy::ClientPolicy;

    fn instructions(catalog: &ServerCatalog) -> String {
        super::instructions(catalog, &ClientPolicy::default(), &[], &[], None)
    }

    fn catalog(servers: usize, tools: usize) -> ServerCatalog {
        let server = |at: usize| CatalogServer {
            name: format!("some-server-{at}").parse().expect("a good name"),
            category: format!("category-{}", at % 12),
            tags: Vec::new(),
            tools,
            tokens: 0,
            stale: None,
            surveyed_at: Some(1),
            protocol: String::new(),
            transport: None,
            asking_calls: Vec::new(),
            offer: None,
        };
        ServerCatalog {
            servers: (0..servers).map(server).collect(),
        }
    }

    #[test]
    fn definitions_and_instructions_cost_at_most_320_tokens_at_any_number_of_servers() {
        for (servers, new, apart) in [
            (0, 0, 0),
            (8, 0, 0),
            (8, 0, 1),
            (8, 0, 8),
            (8, 4, 8),
            (20, 0, 0),
            (61, 0, 0),
            (61, 30, 20),
            (0, 12, 0),
            (1_000, 500, 500),
        ] {
            let mut catalog = catalog(servers + new, 130);
            for server in &mut catalog.servers[servers..] {
                (server.tools, server.surveyed_at) = (0, None);
            }
            let apart = catalog.servers.iter().take(apart);
            let apart: Vec<ServerName> = apart.map(|it| it.name.clone()).collect();
            let says = super::instructions(&catalog, &ClientPolicy::default(), &apart, &[], None);
            let count = super::OUR_TOKENS + tokens::count(&says);
            assert!(count <= super::TOKENS_MAX, "{count} tokens: {says}");
            let told = says.contains(&format!("Gateway to {} tools", servers * 130));
            assert!(servers == 0 || told, "{says}");
        }
    }

    #[test]
    fn servers_that_are_not_shared_are_named_to_who_may_see_them() {
        let check = |apart: &[&str], says: &str| {
            let apart: Vec<ServerName> = apart.iter().map(|it| it.parse().unwrap()).collect();
            let told =
                super::instructions(&catalog(4, 7), &ClientPolicy::default(), &apart, &[], None);
            let (_, told) = told.split_once("some-server-3 7. ").unwrap();
            let (told, _) = told.split_once("When").unwrap();
            assert_eq!(told, says);
        };
        check(&[], "");
        check(&["no-such-server"], "");
        check(
            &["some-server-3"],
            "Not shared with other clients, whose variables differ: some-server-3. ",
        );
        check(
            &["some-server-1", "some-server-2", "some-server-3"],
            "Not shared with other clients, whose variables differ: 3 servers. ",
        );
    }

    #[test]
    fn the_list_gets_shorter_as_the_registry_grows() {
        let few = instructions(&catalog(3, 7));
        assert!(few.starts_with(
            "Gateway to 21 tools: some-server-0 7, some-server-1 7, some-server-2 7. When"
        ));
        let many = instructions(&catalog(60, 10));
        assert!(
            many.starts_with("Gateway to 600 tools: category-0 50, category-1 50"),
            "{many}"
        );
        let none = instructions(&catalog(0, 0));
        assert!(
            none.starts_with("Gateway to MCP servers, none of which offers a tool now. When"),
            "{none}"
        );
    }

    #[test]
    fn servers_that_were_never_asked_are_named() {
        let mut some = catalog(3, 0);
        some.servers[0].tools = 12;
        some.servers[1].surveyed_at = None;
        some.servers[2].surveyed_at = None;
        let says = instructions(&some);
        let expected = "Gateway to 12 tools: some-server-0 12; being asked now: some-server-1, \
                        some-server-2. When";
        assert!(says.starts_with(expected), "{says}");
        some.servers.remove(0);
        let says = instructions(&some);
        let expected =
            "Gateway to MCP servers; being asked now: some-server-1, some-server-2. When";
        assert!(says.starts_with(expected), "{says}");
        some.servers[0].stale = Some(registry::SurveyFailure::new("it ended"));
        assert!(!instructions(&some).contains("some-server-1"));
        // A variable that it lacked has come.
        let again = [some.servers[0].name.clone()];
        let says = super::instructions(&some, &ClientPolicy::default(), &[], &again, None);
        assert!(says.starts_with(expected), "{says}");
    }
}
