//! The servers behind the gateway, by what it asks of them. [`Fleet`] runs real ones; a test brings
//! its own.

use std::{fmt, sync::Arc, time::Duration};

use fleet::{
    Applied, Asks, CallError, Failure, Fleet, Request, ServerSpec, ServerState, Sharing,
    Subscriber, Survey, SurveyError, Variables,
};
use futures::future::BoxFuture;
use jsonrpc::Json;
use tokio_util::sync::CancellationToken;
use tool::{ClientId, ServerName};

/// The servers of one configuration. What each method promises is said at the one of [`Fleet`].
pub trait Servers: fmt::Debug + Send + Sync {
    /// Runs a tool; dropping the future, or the token, takes the call back.
    fn call<'a>(
        &'a self,
        server: &'a ServerName,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, CallError>>;

    /// Has the person of a client log in to a server; whether there is a login then.
    fn log_in<'a>(
        &'a self,
        server: &'a ServerName,
        client: Option<&'a ClientId>,
        asks: &'a Arc<dyn Asks>,
    ) -> BoxFuture<'a, bool>;

    /// Has the sink hear of every change of a resource, until what is answered is dropped.
    fn watch<'a>(
        &'a self,
        server: &'a ServerName,
        uri: &'a str,
        subscriber: Subscriber,
    ) -> BoxFuture<'a, Result<Watched, CallError>>;

    /// Asks a server for its tools; starts it if need be.
    fn survey<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<Survey, SurveyError>>;

    /// Asks a server for its tools if it runs; none where it does not.
    fn survey_running<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Option<Result<Survey, SurveyError>>>;

    /// The next server whose tools may have changed. Waits for one.
    fn changed(&self) -> BoxFuture<'_, ServerName>;

    /// Has a server looked at again after so long.
    fn look_again(&self, server: &ServerName, after: Duration);

    /// Goes on with other specifications; calls under way are not disturbed.
    fn apply(&self, specs: Vec<ServerSpec>) -> Applied;

    /// Has a server begin anew at its next call, after the calls that it has. Whether there is such a
    /// server.
    fn restart(&self, server: &ServerName) -> bool;

    /// Starts the servers that are to run from the beginning.
    fn start_eager(&self);

    /// Takes in the variables of a client. Returns the servers that have now what they lacked.
    fn admit_client(&self, client: u64, variables: Arc<Variables>) -> Vec<ServerName>;

    /// How servers differ for each client because of its variables, where they do.
    fn sharing(&self) -> Vec<Sharing>;

    /// Ends the servers that were the client's own.
    fn forget_client(&self, client: u64);

    /// Tells the servers that are the client's own that its roots may be others now.
    fn tell_roots_changed(&self, client: u64);

    /// The state of each server, and what was counted of it.
    fn states(&self) -> Vec<ServerState>;

    /// The servers that failed last time, and why.
    fn failures(&self) -> Vec<(ServerName, Failure)>;

    /// Whether a server failed when it was last started.
    fn is_down(&self, server: &ServerName) -> bool;

    /// Whether a server failed because nobody is logged in.
    fn needs_login(&self, server: &ServerName) -> bool;

    /// The servers that failed and may not any more.
    fn list_mended(&self) -> Vec<ServerName>;

    /// Ends every server, in a hurry.
    fn stop(&self) -> BoxFuture<'_, ()>;

    /// Ends every server, with time for those that write down what they have.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// A resource is watched until it is dropped.
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
