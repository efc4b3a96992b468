//! Calls of the etcd API: reads, conditional writes, compaction, leases.

use bytes::Bytes;
use futures_util::stream;
use tonic::{Code, Status};

use super::client::{Called, Client};
use super::messages::{
    CompactionRequest, Compare, CompareTo, DeleteRangeRequest, HeaderResponse, KeyValue,
    LeaseGrantRequest, LeaseRequest, LeaseResponse, Operation, PutRequest, RangeRequest,
    RangeResponse, RequestOp, StatusRequest, StatusResponse, TxnRequest, TxnResponse, WatchRequest,
    WatchResponse, revision,
};
use crate::store::{Expected, Revision, StoreError};

/// Numbers of `Compare.EQUAL` and `Compare.MOD` in the etcd API.
const EQUAL: i32 = 0;
const MOD_REVISION: i32 = 2;

/// Result of a conditional write.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Durable write, with its revision.
    Done(Revision),
    /// Precondition that did not match, with the current value of the key.
    Mismatch(Option<KeyValue>),
}

impl Client {
    /// Reads a range of keys.
    ///
    /// # Errors
    /// If etcd fails.
    pub(super) async fn range(&self, request: &RangeRequest) -> Result<RangeResponse, StoreError> {
        let called = self.call("/etcdserverpb.KV/Range", request).await;
        called.map(|called| called.response).map_err(failed)
    }

    /// Reads one key, and the revision of the whole store.
    ///
    /// # Errors
    /// If etcd fails.
    pub(super) async fn read(
        &self,
        key: String,
    ) -> Result<(Option<KeyValue>, Revision), StoreError> {
        let request = RangeRequest {
            key: key.into(),
            ..RangeRequest::default()
        };
        let mut found = self.range(&request).await?;
        Ok((found.kvs.pop(), revision(&found.header)))
    }

    /// Writes a value, or deletes the key if `value` is `None`, if the precondition matches.
    ///
    /// # Errors
    /// If etcd fails. It is then unknown whether the write happened.
    pub(super) async fn write_if(
        &self,
        key: &str,
        expected: Expected,
        value: Option<Bytes>,
        lease: i64,
    ) -> Result<Outcome, StoreError> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        let request = transaction(key, expected, value.clone(), lease);
        let called: Called<TxnResponse> = self
            .call("/etcdserverpb.KV/Txn", &request)
            .await
            .map_err(failed)?;
        let response = called.response;
        let done = revision(&response.header);
        if response.succeeded {
            return Ok(Outcome::Done(done));
        }
        let range = response.responses.into_iter().find_map(|op| op.range);
        let found = range.and_then(|range| range.kvs.into_iter().next());
        // An attempt whose response was lost may have succeeded. The key then has the value of this write.
        let is_ours = found.as_ref().map(|found| &found.value) == value.as_ref();
        if called.is_repeated && is_ours {
            let at = found.map_or(done, |found| number(found.mod_revision));
            return Ok(Outcome::Done(at));
        }
        Ok(Outcome::Mismatch(found))
    }

    /// Compacts the history up to a revision.
    ///
    /// # Errors
    /// If etcd fails, except when that revision is compacted already.
    pub(super) async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        let request = CompactionRequest {
            revision: i64::try_from(revision).unwrap_or(i64::MAX),
        };
        let called: Result<Called<HeaderResponse>, Status> =
            self.call("/etcdserverpb.KV/Compact", &request).await;
        match called.map_err(failed) {
            Ok(_) | Err(StoreError::Compacted) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Creates a lease with this TTL, in seconds.
    ///
    /// # Errors
    /// If etcd fails.
    pub(super) async fn grant(&self, seconds: i64) -> Result<i64, StoreError> {
        let request = LeaseGrantRequest { ttl: seconds };
        let called: Called<LeaseResponse> = self
            .call("/etcdserverpb.Lease/LeaseGrant", &request)
            .await
            .map_err(failed)?;
        Ok(called.response.id)
    }

    /// Renews a lease. Returns false if it has expired.
    ///
    /// # Errors
    /// If etcd fails.
    pub(super) async fn keep(&self, lease: i64) -> Result<bool, StoreError> {
        let request = LeaseRequest { id: lease };
        let messages = stream::iter([request]);
        let mut answers = self
            .stream::<LeaseRequest, LeaseResponse>("/etcdserverpb.Lease/LeaseKeepAlive", messages)
            .await
            .map_err(failed)?;
        let answer = answers.message().await.map_err(failed)?;
        Ok(answer.is_some_and(|answer| answer.ttl > 0))
    }

    /// Returns the version of a member.
    ///
    /// # Errors
    /// If etcd fails.
    pub(super) async fn version(&self) -> Result<String, StoreError> {
        let called: Called<StatusResponse> = self
            .call("/etcdserverpb.Maintenance/Status", &StatusRequest {})
            .await
            .map_err(failed)?;
        Ok(called.response.version)
    }

    /// Starts a watch at the current member.
    ///
    /// # Errors
    /// If that member cannot be reached.
    pub(super) async fn watch(
        &self,
        request: WatchRequest,
    ) -> Result<tonic::Streaming<WatchResponse>, Status> {
        // The stream of requests must stay open for as long as the watch lasts.
        let open = stream::pending::<WatchRequest>();
        let messages = futures_util::StreamExt::chain(stream::iter([request]), open);
        self.stream("/etcdserverpb.Watch/Watch", messages).await
    }
}

fn transaction(key: Bytes, expected: Expected, value: Option<Bytes>, lease: i64) -> TxnRequest {
    let known = match expected {
        Expected::Absent => 0,
        Expected::At(revision) => i64::try_from(revision).unwrap_or(i64::MAX),
    };
    let step = |operation| RequestOp {
        request: Some(operation),
    };
    let write = match value {
        Some(value) => Operation::Put(PutRequest {
            key: key.clone(),
            value,
            lease,
        }),
        None => Operation::Delete(DeleteRangeRequest {
            key: key.clone(),
            range_end: Bytes::new(),
        }),
    };
    let read = Operation::Range(RangeRequest {
        key: key.clone(),
        ..RangeRequest::default()
    });
    TxnRequest {
        compare: vec![Compare {
            result: EQUAL,
            target: MOD_REVISION,
            key,
            to: Some(CompareTo::ModRevision(known)),
        }],
        success: vec![step(write)],
        failure: vec![step(read)],
    }
}

/// Converts a revision of the etcd API.
pub(super) fn number(revision: i64) -> Revision {
    Revision::try_from(revision).unwrap_or(0)
}

/// Converts a gRPC status of etcd to a store error.
pub(super) fn failed(status: Status) -> StoreError {
    let said = status.message();
    if status.code() == Code::OutOfRange && said.contains("compacted") {
        return StoreError::Compacted;
    }
    if status.code() == Code::OutOfRange && said.contains("future") {
        return StoreError::Future { current: 0 };
    }
    if said.contains("database space exceeded") {
        let why = "etcd is full: compact and defragment it, raise --quota-backend-bytes, and then run `etcdctl alarm disarm`";
        return StoreError::Full(why.to_owned());
    }
    StoreError::Failed(format!("etcd: {:?}: {said}", status.code()))
}
