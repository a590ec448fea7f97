//! Names for servers that come from several places.

use std::path::Path;

use clients::ImportedServer;
use tool::{SERVER_NAME_CHARS_MAX, ServerName};

use crate::naming::{name_of_command, name_of_url, valid_name};

/// Returns a name for a server: its own if that is free, else with the name of its project or its
/// client appended, else with a number. `None` if no name can be made.
pub(super) fn name(taken: &ImportedServer, is_free: impl Fn(&str) -> bool) -> Option<ServerName> {
    let entry = taken.entries.first()?;
    let base = valid_name(&entry.name).or_else(|| of_launch(taken))?;
    let client = entry
        .place
        .as_ref()
        .map(|place| place.file.client.id.as_str());
    let project = entry.project_folder().and_then(Path::file_name);
    let project = project.and_then(|folder| valid_name(&folder.to_string_lossy()));
    let of_project = project.map(|project| with_end(base.as_str(), project.as_str()));
    let numbered = (2..100).map(|number| with_end(base.as_str(), &number.to_string()));
    let of_client = client.map(|client| with_end(base.as_str(), client));
    let names = std::iter::once(base.to_string())
        .chain(of_project)
        .chain(of_client)
        .chain(numbered);
    names
        .filter(|name| is_free(name))
        .find_map(|name| name.parse().ok())
}

fn of_launch(taken: &ImportedServer) -> Option<ServerName> {
    let server = &taken.server;
    match (&server.url, &server.command) {
        (Some(url), _) => name_of_url(url),
        (None, Some(command)) => {
            let args = server.args.iter().map(String::as_str);
            name_of_command(
                &std::iter::once(command.as_str())
                    .chain(args)
                    .collect::<Vec<_>>(),
            )
        }
        (None, None) => None,
    }
}

fn with_end(base: &str, end: &str) -> String {
    let room = SERVER_NAME_CHARS_MAX.saturating_sub(end.len() + 1);
    let base = base.get(..room).unwrap_or(base).trim_end_matches('-');
    format!("{base}-{end}")
}
