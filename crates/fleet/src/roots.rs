//! The roots that are reported to a server: those of the configuration or of its client.

use std::{path::PathBuf, sync::Arc};

use jsonrpc::{Fields, Json};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::warn;

use crate::{
    ServerScope, ServerSpec, Template, Variables,
    limits::ROOTS_TIMEOUT,
    question::{Asks, ClientAnswer, QuestionKind, ServerQuestion},
};

/// The source of the answer to `roots/list`. The default announces none.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    configured: Option<Vec<PathBuf>>,
    /// The folder of the only client of the server.
    folder: Option<PathBuf>,
    /// That client, if it has roots of its own.
    client: Option<Arc<dyn Asks>>,
}

impl Roots {
    /// Returns the roots of the configuration, or else those of the server's only client.
    pub(crate) fn of(
        spec: &ServerSpec,
        variables: &Variables,
        client: Option<&Arc<dyn Asks>>,
    ) -> Self {
        if let Some(roots) = &spec.roots {
            let folders = roots.iter().filter_map(|root| expand(root, variables));
            return Self {
                configured: Some(folders.collect()),
                ..Self::default()
            };
        }
        // Some servers show tools only to clients with roots.
        let is_surveyed =
            spec.scope == ServerScope::Client && client.is_none() && spec.client_folder.is_none();
        let has_roots = |client: &&Arc<dyn Asks>| {
            let capabilities = client.capabilities();
            Fields::of(capabilities.as_str()).is_some_and(|it| it.filled("roots").is_some())
        };
        Self {
            configured: is_surveyed.then(Vec::new),
            folder: spec.client_folder.clone(),
            client: client.filter(has_roots).map(|it| it.without_call()),
        }
    }

    pub(crate) fn are_announced(&self) -> bool {
        self.configured.is_some() || self.folder.is_some() || self.client.is_some()
    }

    /// Returns true if the roots can change while the server runs.
    pub(crate) fn can_change(&self) -> bool {
        self.client.is_some()
    }

    /// Returns the answer to `roots/list`. The client is asked over the call of this `caller`, or else
    /// over an open connection; if it does not answer, its folder is used.
    pub(crate) async fn list(&self, caller: Option<Arc<dyn Asks>>) -> ClientAnswer {
        if let Some(client) = &self.client
            && let Ok(Some(roots)) = timeout(ROOTS_TIMEOUT, ask_for_roots(caller, client)).await
        {
            return roots;
        }
        if !self.are_announced() {
            return ClientAnswer::refuse("roots/list: no roots were announced");
        }
        let folders = self.configured.iter().flatten().chain(&self.folder);
        let roots: Vec<Value> = folders.filter_map(|it| root_at(it)).collect();
        ClientAnswer::result(&json!({"roots": roots}))
    }
}

/// Asks a client for its roots; returns the folders on this machine. A client without roots, or without an
/// answer in time, has none.
pub async fn list_client_roots(client: Arc<dyn Asks>) -> Vec<PathBuf> {
    let answer = timeout(ROOTS_TIMEOUT, ask_for_roots(None, &client)).await;
    let Ok(Some(ClientAnswer::Result(answer))) = answer else {
        return Vec::new();
    };
    let answer: Value = serde_json::from_str(answer.as_str()).unwrap_or_default();
    let roots = answer["roots"].as_array().into_iter().flatten();
    let urls = roots.filter_map(|it| Url::parse(it["uri"].as_str()?).ok());
    urls.filter_map(|it| it.to_file_path().ok()).collect()
}

async fn ask_for_roots(
    caller: Option<Arc<dyn Asks>>,
    home: &Arc<dyn Asks>,
) -> Option<ClientAnswer> {
    for client in caller.iter().chain([home]) {
        let question = ServerQuestion {
            kind: QuestionKind::Roots,
            params: Json::of_built("{}".to_owned()),
        };
        let answer = client.ask(question).await;
        if matches!(answer, ClientAnswer::Result(_)) {
            return Some(answer);
        }
    }
    None
}

fn expand(root: &Template, variables: &Variables) -> Option<PathBuf> {
    let expanded = root.expand(|name| variables.get(name).map(str::to_owned));
    let expanded = expanded.inspect_err(|error| warn!(%error, "a root is left out"));
    expanded.ok().map(PathBuf::from)
}

fn root_at(folder: &std::path::Path) -> Option<Value> {
    let url = Url::from_directory_path(folder).ok()?;
    Some(json!({"uri": url.as_str().trim_end_matches('/')}))
}

#[cfg(test)]
mod tests {
    use super::Roots;
    use crate::{Launch, ServerScope, ServerSpec, Template, Variables, question::ClientAnswer};

    #[tokio::test]
    async fn a_server_of_one_client_each_is_asked_what_it_has_as_by_a_client_with_roots() {
        let launch = Launch::Child {
            command: Template::parse("x").unwrap(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
        };
        let mut spec = ServerSpec::new("any".parse().unwrap(), launch);
        let roots = |spec: &ServerSpec| Roots::of(spec, &Variables::default(), None);
        assert!(!roots(&spec).are_announced());
        assert!(matches!(
            roots(&spec).list(None).await,
            ClientAnswer::Error(_)
        ));
        spec.scope = ServerScope::Client;
        assert!(roots(&spec).are_announced() && !roots(&spec).can_change());
        let ClientAnswer::Result(listed) = roots(&spec).list(None).await else {
            panic!("it is refused");
        };
        assert_eq!(listed.as_str(), r#"{"roots":[]}"#);
        let (folder, address) = if cfg!(windows) {
            (r"C:\a", "file:///C:/a")
        } else {
            ("/a", "file:///a")
        };
        spec.client_folder = Some(folder.into());
        let ClientAnswer::Result(listed) = roots(&spec).list(None).await else {
            panic!("it is refused");
        };
        let expected = format!(r#"{{"roots":[{{"uri":"{address}"}}]}}"#);
        assert_eq!(listed.as_str(), expected);
    }
}
