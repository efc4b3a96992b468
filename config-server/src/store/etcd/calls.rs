//! What is asked of etcd: reads, conditional writes, compaction, leases.

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

/// `equal` and `revision of the last change` of a condition.
const EQUAL: i32 = 0;
const MOD_REVISION: i32 = 2;

/// What became of a conditional write.
#[derive(Debug)]
pub enum Outcome {
    /// It is durable.
    Done(Revision),
    /// The key was not as expected; this is what it was.
    Mismatch(Option<KeyValue>),
}

impl Client {
    /// Reads keys.
    ///
    /// # Errors
    /// As etcd does.
    pub async fn range(&self, request: &RangeRequest) -> Result<RangeResponse, StoreError> {
        let called = self.call("/etcdserverpb.KV/Range", request).await;
        called.map(|called| called.response).map_err(failed)
    }

    /// Reads one key; with it comes the revision of the whole store.
    ///
    /// # Errors
    /// As etcd does.
    pub async fn read(&self, key: String) -> Result<(Option<KeyValue>, Revision), StoreError> {
        let request = RangeRequest {
            key: key.into(),
            ..RangeRequest::default()
        };
        let mut found = self.range(&request).await?;
        Ok((found.kvs.pop(), revision(&found.header)))
    }

    /// Puts a value, or deletes the key, if the key is as expected.
    ///
    /// # Errors
    /// As etcd does. Whether the write happened is not known then.
    pub async fn write_if(
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
        // An attempt whose answer was lost may have written: what is there then is what was to be written.
        let is_ours = found.as_ref().map(|found| &found.value) == value.as_ref();
        if called.is_repeated && is_ours {
            let at = found.map_or(done, |found| number(found.mod_revision));
            return Ok(Outcome::Done(at));
        }
        Ok(Outcome::Mismatch(found))
    }

    /// Drops the history up to a revision.
    ///
    /// # Errors
    /// As etcd does, unless that history is gone already.
    pub async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
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

    /// Makes a lease of so many seconds.
    ///
    /// # Errors
    /// As etcd does.
    pub async fn grant(&self, seconds: i64) -> Result<i64, StoreError> {
        let request = LeaseGrantRequest { ttl: seconds };
        let called: Called<LeaseResponse> = self
            .call("/etcdserverpb.Lease/LeaseGrant", &request)
            .await
            .map_err(failed)?;
        Ok(called.response.id)
    }

    /// Prolongs a lease. False if it is over.
    ///
    /// # Errors
    /// As etcd does.
    pub async fn keep(&self, lease: i64) -> Result<bool, StoreError> {
        let request = LeaseRequest { id: lease };
        let messages = stream::iter([request]);
        let mut answers = self
            .stream::<LeaseRequest, LeaseResponse>("/etcdserverpb.Lease/LeaseKeepAlive", messages)
            .await
            .map_err(failed)?;
        let answer = answers.message().await.map_err(failed)?;
        Ok(answer.is_some_and(|answer| answer.ttl > 0))
    }

    /// The version of a member.
    ///
    /// # Errors
    /// As etcd does.
    pub async fn version(&self) -> Result<String, StoreError> {
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
    pub async fn watch(
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

/// A revision as it is counted here.
pub fn number(revision: i64) -> Revision {
    Revision::try_from(revision).unwrap_or(0)
}

/// What a status of etcd means.
pub fn failed(status: Status) -> StoreError {
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
