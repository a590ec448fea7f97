//! A name that a client wrote, resolved to an entry.

use std::sync::Arc;

use registry::{Entry, Generation};
use tool::{ServerName, ToolRef};

use super::Catalog;
use crate::{
    error::ToolError,
    find::{admit, damaged, find},
    policy::ClientPolicy,
    surveys::WaitsFor,
};

impl Catalog {
    /// The tool that a name means, or the error that a client would get.
    pub async fn find(
        &self,
        generation: &Arc<Generation>,
        asked: &str,
    ) -> Result<Arc<Entry>, ToolError> {
        find(generation, asked, &ClientPolicy::default()).await
    }

    /// The tool that a name means to a client. For a canonical name no other server is loaded; an
    /// unknown name waits for servers that are being asked for their tools.
    pub(crate) async fn resolve(
        &self,
        asked: &str,
        policy: &ClientPolicy,
    ) -> Result<Arc<Entry>, ToolError> {
        if let Some(entry) = self.named(asked).await {
            return admit(&entry, policy);
        }
        let sees = |server: &ServerName| self.shows(policy, server);
        loop {
            let end = self.surveys.next_end();
            let generation = self.generation().await?;
            let error = match find(&generation, asked, policy).await {
                Ok(entry) => return Ok(entry),
                Err(error) => error,
            };
            let (waits_for, untold) = match &error {
                ToolError::UnknownTool { instead: None, .. } => (WaitsFor::AnyTools, None),
                // The server has never sent its tools, and may be about to.
                ToolError::ServerUnavailable { server, .. }
                | ToolError::LoginRequired { server, .. } => {
                    (WaitsFor::FirstTools, Some(server.clone()))
                }
                _ => return Err(error),
            };
            if untold.is_none()
                && let Some(mistakes) = self.mistakes_that_hide_servers()
            {
                return Err(ToolError::Misconfigured(mistakes));
            }
            let concerns = |server: &ServerName| match &untold {
                Some(untold) => server == untold,
                None => sees(server),
            };
            if !self.surveys.wait_for(end, waits_for, concerns).await {
                let ToolError::UnknownTool { asked, near, .. } = error else {
                    return Err(error);
                };
                let missing = self.surveys.missing(sees);
                let is_mending = self.due.damaged.lock().is_mended;
                let damaged = damaged(&generation, &asked, policy, is_mending);
                return Err(damaged.unwrap_or(ToolError::UnknownTool {
                    asked,
                    near,
                    instead: None,
                    missing,
                }));
            }
        }
    }

    /// The tool that a name was meant for, whether it may be called or not.
    pub(crate) async fn intended(&self, asked: &str) -> Option<ToolRef> {
        let generation = self.generation().await.ok()?;
        generation.intended(asked)
    }

    pub(crate) fn shows(&self, policy: &ClientPolicy, server: &ServerName) -> bool {
        let sees = self.read_record(server, |it| policy.sees(&it.name, &it.category));
        sees.unwrap_or(true)
    }
}
