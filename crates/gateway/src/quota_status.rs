//! The quotas of the configuration with their use.

use crate::{gateway::Gateway, quotas::QuotaStatus};

/// Returns the quotas of the configuration, with their use at this moment.
pub fn list_quotas(gateway: &Gateway) -> Vec<QuotaStatus> {
    let settings = gateway.settings();
    gateway.dispatcher.quotas.list_uses(&settings.quotas)
}
