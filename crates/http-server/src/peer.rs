//! The other end of a connection.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use super::places::{Place, Who};

/// The client that sent a request, as far as the gate can tell.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    /// The name of the token that let it in; none where no token is asked for.
    pub(super) token: Option<Arc<str>>,
    /// The rules that its token has it under; none: those of the name that it announces.
    pub(super) rule: Option<Arc<str>>,
    pub(super) address: IpAddr,
}

impl Peer {
    /// Those with whom its places are counted.
    pub(super) fn who(&self) -> Who {
        let token = self.token.clone().map(Who::Token);
        token.unwrap_or_else(|| Who::at(self.address))
    }
}

/// The connection on which a request came, and its place.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) local: SocketAddr,
    pub(super) from: IpAddr,
    pub(super) place: Arc<Place>,
}
