//! Stores of objects: large messages, lists of tools, kept results.

use async_nats::jetstream::{
    object_store::{self, ObjectMetadata, ObjectStore},
    stream::Stream,
};
use bytes::Bytes;
use tokio::{io::AsyncReadExt as _, time::timeout};

use crate::bus_error::{BusError, NATS_TIMEOUT};

/// The size of the pieces in which a large object is stored.
const CHUNK_BYTES: usize = 512 * 1_024;

/// The stores of objects. Each has its own limit, so that none takes the room of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Objects {
    /// Messages over the payload limit of NATS.
    Parcels,
    /// Lists of tools.
    Lists,
    /// Kept results.
    Results,
}

/// A store of objects.
#[derive(Clone)]
pub(crate) struct Bucket {
    pub(crate) store: ObjectStore,
    /// The stream behind it.
    pub(crate) stream: Stream,
}

impl Bucket {
    /// Reads an object. `None`: there is none.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<Bytes>, BusError> {
        let info = match self.store.info(name).await {
            Ok(info) if !info.deleted => info,
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == object_store::InfoErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(BusError::of(error)),
        };
        if info.chunks == 1 {
            // One piece needs no consumer: a hundred nodes that read a list at once would make a hundred.
            let subject = format!("$O.{}.C.{}", info.bucket, info.nuid);
            let piece = self.stream.direct_get_last_for_subject(subject).await;
            if let Ok(piece) = piece
                && piece.payload.len() == info.size
            {
                return Ok(Some(piece.payload));
            }
        }
        read_pieces(&self.store, name).await
    }

    pub(crate) async fn put(&self, name: &str, sealed: &[u8]) -> Result<(), BusError> {
        let about = ObjectMetadata {
            name: name.to_owned(),
            chunk_size: Some(CHUNK_BYTES),
            ..ObjectMetadata::default()
        };
        let mut bytes = sealed;
        self.store
            .put(about, &mut bytes)
            .await
            .map_err(BusError::of)?;
        Ok(())
    }
}

async fn read_pieces(store: &ObjectStore, name: &str) -> Result<Option<Bytes>, BusError> {
    let mut object = match store.get(name).await {
        Ok(object) => object,
        Err(error) if error.kind() == object_store::GetErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BusError::of(error)),
    };
    let mut bytes = Vec::with_capacity(object.info().size);
    let reading = timeout(4 * NATS_TIMEOUT, object.read_to_end(&mut bytes)).await;
    reading
        .map_err(|_| BusError(format!("the object {name} was not read in time")))?
        .map_err(BusError::of)?;
    Ok(Some(bytes.into()))
}
