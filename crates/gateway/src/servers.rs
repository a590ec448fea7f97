//! The interface of the gateway to its servers. [`Fleet`] runs real servers; a test has an
//! implementation of its own.

use std::{fmt, sync::Arc, time::Duration};

use fleet::{
    Applied, Asks, CallError, Failure, Fleet, Request, ServerSpec, ServerState, Sharing,
    Subscriber, Survey, SurveyError, Variables,
};
use futures::future::BoxFuture;
use jsonrpc::Json;
use tokio_util::sync::CancellationToken;
use tool::{ClientId, ServerName};

/// The servers of one configuration. The contract of each method is documented at the method of
/// [`Fleet`].
pub trait Servers: fmt::Debug + Send + Sync {
    /// Calls a tool; dropping the future, or cancelling the token, cancels the call.
    fn call<'a>(
        &'a self,
        server: &'a ServerName,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, CallError>>;

    /// Has the person of a client log in to a server. Returns true if there is a login then.
    fn log_in<'a>(
        &'a self,
        server: &'a ServerName,
        client: Option<&'a ClientId>,
        asks: &'a Arc<dyn Asks>,
    ) -> BoxFuture<'a, bool>;

    /// Reports every change of a resource to the sink, until the returned value is dropped.
    fn watch<'a>(
        &'a self,
        server: &'a ServerName,
        uri: &'a str,
        subscriber: Subscriber,
    ) -> BoxFuture<'a, Result<Watched, CallError>>;

    /// Asks a server for its tools; starts it if necessary.
    fn survey<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<Survey, SurveyError>>;

    /// Asks a server for its tools if it runs; returns `None` if it does not.
    fn survey_running<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Option<Result<Survey, SurveyError>>>;

    /// Waits for the next server whose tools may have changed.
    fn changed(&self) -> BoxFuture<'_, ServerName>;

    /// Schedules another survey of a server after this time.
    fn look_again(&self, server: &ServerName, after: Duration);

    /// Applies other specifications; calls in progress are not disturbed.
    fn apply(&self, specs: Vec<ServerSpec>) -> Applied;

    /// Restarts a server at its next call, after its calls in progress. Returns true if there is
    /// such a server.
    fn restart(&self, server: &ServerName) -> bool;

    /// Starts the servers that are configured to run from the beginning.
    fn start_eager(&self);

    /// Admits the variables of a client. Returns the servers that lacked one and now have it.
    fn admit_client(&self, client: u64, variables: Arc<Variables>) -> Vec<ServerName>;

    /// The differences of servers between clients because of their variables, for servers that have
    /// any.
    fn sharing(&self) -> Vec<Sharing>;

    /// Ends the servers that belong to the client alone.
    fn forget_client(&self, client: u64);

    /// Notifies the servers that belong to the client alone that its roots may have changed.
    fn tell_roots_changed(&self, client: u64);

    /// The state of each server, with its counts.
    fn states(&self) -> Vec<ServerState>;

    /// The servers that failed last time, and why.
    fn failures(&self) -> Vec<(ServerName, Failure)>;

    /// Returns true if a server failed when it was last started.
    fn is_down(&self, server: &ServerName) -> bool;

    /// Returns true if a server failed because nobody is logged in.
    fn needs_login(&self, server: &ServerName) -> bool;

    /// The servers that failed and may work again.
    fn list_mended(&self) -> Vec<ServerName>;

    /// Ends every server quickly.
    fn stop(&self) -> BoxFuture<'_, ()>;

    /// Ends every server, with time for servers that save their data.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// A guard for a watched resource: the watch ends when it is dropped.
pub type Watched = Box<dyn Send + Sync>;

impl Servers for Fleet {
    fn log_in<'a>(
        &'a self,
        server: &'a ServerName,
        client: Option<&'a ClientId>,
        asks: &'a Arc<dyn Asks>,
    ) -> BoxFuture<'a, bool> {
        Box::pin(Self::log_in(self, server, client, asks))
    }

    fn watch<'a>(
        &'a self,
        server: &'a ServerName,
        uri: &'a str,
        subscriber: Subscriber,
    ) -> BoxFuture<'a, Result<Watched, CallError>> {
        Box::pin(async move {
            let watch = Self::watch(self, server, uri, subscriber).await?;
            Ok(Box::new(watch) as Watched)
        })
    }

    fn call<'a>(
        &'a self,
        server: &'a ServerName,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        Box::pin(Self::call(self, server, request, cancel))
    }

    fn survey<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<Survey, SurveyError>> {
        Box::pin(Self::survey(self, server))
    }

    fn survey_running<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Option<Result<Survey, SurveyError>>> {
        Box::pin(Self::survey_running(self, server))
    }

    fn changed(&self) -> BoxFuture<'_, ServerName> {
        Box::pin(Self::changed(self))
    }

    fn look_again(&self, server: &ServerName, after: Duration) {
        Self::look_again(self, server, after);
    }

    fn apply(&self, specs: Vec<ServerSpec>) -> Applied {
        Self::apply(self, specs)
    }

    fn restart(&self, server: &ServerName) -> bool {
        Self::restart(self, server)
    }

    fn start_eager(&self) {
        Self::start_eager(self);
    }

    fn admit_client(&self, client: u64, variables: Arc<Variables>) -> Vec<ServerName> {
        Self::admit_client(self, client, variables)
    }

    fn sharing(&self) -> Vec<Sharing> {
        Self::sharing(self)
    }

    fn forget_client(&self, client: u64) {
        Self::forget_client(self, client);
    }

    fn tell_roots_changed(&self, client: u64) {
        Self::tell_roots_changed(self, client);
    }

    fn states(&self) -> Vec<ServerState> {
        Self::states(self)
    }

    fn failures(&self) -> Vec<(ServerName, Failure)> {
        Self::failures(self)
    }

    fn is_down(&self, server: &ServerName) -> bool {
        Self::is_down(self, server)
    }

    fn needs_login(&self, server: &ServerName) -> bool {
        Self::needs_login(self, server)
    }

    fn list_mended(&self) -> Vec<ServerName> {
        Self::list_mended(self)
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::stop(self))
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::end(self))
    }
}
