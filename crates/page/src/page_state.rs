//! The parts of a page that its routes share.

use std::sync::Arc;

use daemon::page::PageDaemon;

use crate::{changes::Changes, configure::Configure, entrance::Entrance, hub::Hub, logins::Logins};

/// A page, as its routes see it.
pub(crate) struct PageState {
    pub(crate) daemon: PageDaemon,
    pub(crate) configure: Arc<dyn Configure>,
    pub(crate) entrance: Entrance,
    pub(crate) hub: Hub,
    pub(crate) changes: Changes,
    pub(crate) logins: Arc<Logins>,
}

impl PageState {
    pub(crate) fn new(daemon: PageDaemon, configure: Arc<dyn Configure>) -> Self {
        Self {
            daemon,
            configure,
            entrance: Entrance::default(),
            hub: Hub::default(),
            changes: Changes::default(),
            logins: Arc::default(),
        }
    }
}
