//! The state that the calls of one session share.

use std::{
    path::Path,
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use crate::{
    authorize::permissions::{Arrival, PermissionScope, Permissions},
    forward::UriLedger,
    policy::ClientPolicy,
    recent_searches::RecentSearches,
    sent_instructions::SentInstructions,
    settings::Settings,
};

/// A policy, and what it was made of: the settings, and whether the client had a name.
type MadePolicy = (Arc<Settings>, bool, Arc<ClientPolicy>);

pub(super) struct SessionMemory {
    pub(super) searches: Arc<RecentSearches>,
    /// The servers whose instructions the model has received.
    pub(super) instructions: Arc<SentInstructions>,
    /// True for each of the three tools that was called.
    pub(super) used: [AtomicBool; 3],
    policy: Mutex<Option<MadePolicy>>,
    /// True if the client was asked for its roots since they changed.
    pub(super) knows_roots: AsyncMutex<bool>,
    permissions: Arc<Permissions>,
    pub(super) uris: OnceLock<Arc<UriLedger>>,
}

impl SessionMemory {
    pub(super) fn in_folder(folder: Option<&Path>) -> Self {
        Self {
            searches: Arc::new(RecentSearches::in_folder(folder)),
            instructions: Arc::default(),
            used: [const { AtomicBool::new(false) }; 3],
            policy: Mutex::default(),
            knows_roots: AsyncMutex::default(),
            permissions: Arc::new(Permissions::new(PermissionScope::Session)),
            uris: OnceLock::new(),
        }
    }

    /// Returns the policy in these settings, which is made once.
    pub(super) fn policy(
        &self,
        settings: &Arc<Settings>,
        is_named: bool,
        make: impl FnOnce(&Settings) -> ClientPolicy,
    ) -> Arc<ClientPolicy> {
        let mut held = self.policy.lock();
        match &*held {
            Some((of, named, policy)) if Arc::ptr_eq(of, settings) && *named == is_named => {
                Arc::clone(policy)
            }
            _ => {
                let policy = Arc::new(make(settings));
                *held = Some((Arc::clone(settings), is_named, Arc::clone(&policy)));
                policy
            }
        }
    }

    /// Has the policy made again.
    pub(super) fn forget_policy(&self) {
        self.policy.lock().take();
    }

    /// Counts a call that arrives now. Permissions given to a request that stands alone end with it.
    pub(super) fn arrive(&self, is_stateless: bool) -> Arrival {
        if is_stateless {
            Arc::new(Permissions::new(PermissionScope::Request)).arrive()
        } else {
            self.permissions.arrive()
        }
    }
}
