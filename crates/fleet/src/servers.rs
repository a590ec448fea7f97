//! The interface to all servers of one configuration. [`Fleet`](crate::Fleet) runs real servers;
//! tests of other crates implement it in memory.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jsonrpc::Json;
use tokio_util::sync::CancellationToken;
use tool::{ClientId, HttpCaller, ServerName};

use crate::{
    Applied, Asks, CallError, CallerLogins, ClusterNode, Failure, Request, ServerSpec, ServerState,
    Sharing, Subscriber, Survey, SurveyError, Variables, WatchGuard,
};

/// Calls of servers, for one client each.
pub trait CallServers: fmt::Debug + Send + Sync {
    /// Calls a tool and waits for its result: the `result` of the response as the server wrote it.
    ///
    /// The timeout begins here, and includes a start; progress extends it if the server's specification
    /// says so. A call that times out, is cancelled, or whose future is dropped is cancelled at the
    /// server, and its late response is dropped.
    fn call<'a>(
        &'a self,
        server: &'a ServerName,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, CallError>>;

    /// Calls the sink on every change of a resource, until the returned value is dropped. The server is
    /// started if necessary, and is not stopped for idleness meanwhile. After the server has restarted,
    /// the subscription is renewed and the resource counts as changed. An error is that of the first
    /// attempt.
    fn watch<'a>(
        &'a self,
        server: &'a ServerName,
        uri: &'a str,
        subscriber: Subscriber,
    ) -> BoxFuture<'a, Result<WatchGuard, CallError>>;

    /// Asks the user of this client to log in to a server, if the client can show URLs. Returns true if
    /// there is a login afterwards.
    fn log_in<'a>(
        &'a self,
        server: &'a ServerName,
        client: Option<&'a ClientId>,
        asks: &'a Arc<dyn Asks>,
    ) -> BoxFuture<'a, bool>;
}

/// Lists of servers, and of their tools.
pub trait ListServers: fmt::Debug + Send + Sync {
    /// Reads every page of a server's `tools/list`; starts the server if necessary.
    fn survey<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<Survey, SurveyError>>;

    /// Surveys a server that is running. Returns `None` if it is not, or if it ends meanwhile: its next
    /// start is a change.
    fn survey_running<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Option<Result<Survey, SurveyError>>>;

    /// Waits for the next server whose tools may have changed: it sent a notification, it was
    /// restarted, or its list has expired. For one listener.
    fn changed(&self) -> BoxFuture<'_, ServerName>;

    /// Reports a server as changed after this time.
    fn look_again(&self, server: &ServerName, after: Duration);

    /// Returns how servers differ for each client because of its variables, if they do.
    fn sharing(&self) -> Vec<Sharing>;

    /// Returns every server and its state. Reads `/proc`, and so blocks for a moment.
    fn states(&self) -> Vec<ServerState>;

    /// Returns the same without the memory of the servers. Reads no file.
    fn quick_states(&self) -> Vec<ServerState>;

    /// Returns the servers that are not available now and their failures, by name.
    fn failures(&self) -> Vec<(ServerName, Failure)>;

    /// Returns true if this server failed last time and was not started since.
    fn is_down(&self, server: &ServerName) -> bool;

    /// Returns true if this server failed because a login is missing.
    fn needs_login(&self, server: &ServerName) -> bool;

    /// Returns the servers that failed and may start now: a login or a secret that they lacked was added.
    fn list_mended(&self) -> Vec<ServerName>;
}

/// Starts and ends servers, and replaces their specifications.
pub trait Lifecycle: fmt::Debug + Send + Sync {
    /// Replaces the servers by those of `specs`, without losing a call: a server that changed or was
    /// removed finishes its running calls.
    fn apply(&self, specs: Vec<ServerSpec>) -> Applied;

    /// Restarts a server now, and waits until it is ready. Returns how long that took, or why it did not
    /// start. Running calls end with a failure that [`Failure::is_restart`] marks if they have not ended
    /// after 3 s; with `waits`, the server starts after they have ended. Calls that come meanwhile wait
    /// for the new process. The restart goes on if the future is dropped.
    fn restart<'a>(
        &'a self,
        server: &'a ServerName,
        waits: bool,
    ) -> BoxFuture<'a, Result<Duration, CallError>>;

    /// Starts the servers that are configured to start with the program.
    fn start_eager(&self);

    /// Adds the variables of a client, which are filled into the servers that it uses. Clients share a
    /// server that gets the same values from each of them, and none gets the value of another. Returns
    /// the servers that could not start because a variable was missing, and can be surveyed now.
    fn admit_client(&self, client: u64, variables: Arc<Variables>) -> Vec<ServerName>;

    /// Ends the servers that belong to this client alone.
    fn forget_client(&self, client: u64);

    /// Notifies this client's own servers that its roots may have changed.
    fn tell_roots_changed(&self, client: u64);

    /// Ends every server, all at once, within 1.5 s. No process of ours is left when this returns,
    /// unless the system cannot kill it.
    fn stop(&self) -> BoxFuture<'_, ()>;

    /// Ends every server, with more time for servers that save their state.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// Servers that may have a process or connection for each caller over HTTP.
pub trait CallerServices {
    /// Returns the address of ours at which the caller of this client logs in to a server, if that may
    /// help.
    fn offer_login(&self, server: &ServerName, client: Option<&ClientId>) -> Option<String>;

    /// Returns true if each caller has a process or connection of its own at this server.
    fn is_of_callers(&self, server: &ServerName) -> bool;

    /// Returns the logins that callers may begin in a browser.
    fn logins(&self) -> &Arc<CallerLogins>;

    /// Lists the values of callers that servers get ([`HttpCaller::values`]). Returns `None` if all
    /// callers are alike to all servers.
    fn values(&self) -> Option<Arc<BTreeSet<String>>>;

    /// Remembers the values of a caller. Returns the servers that can be surveyed for a new caller.
    fn meet(&self, caller: &Arc<HttpCaller>) -> Vec<ServerName>;
}

/// The servers of one configuration.
pub trait Servers: CallServers + ListServers + Lifecycle {
    /// Returns the services for callers over HTTP, if there are any.
    fn callers(&self) -> Option<&dyn CallerServices> {
        None
    }

    /// Returns this process as a node of its cluster, if it is one.
    fn cluster(&self) -> Option<Arc<dyn ClusterNode>> {
        None
    }
}
