//! Messages of the etcd API, version 3.4, that Strait uses. Names and field numbers are those of etcd's `rpc.proto`.

use bytes::Bytes;
use prost::{Message, Oneof};

/// Header of every response.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ResponseHeader {
    /// Revision of the store when the request was executed.
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

/// Key with its value.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub value: Bytes,
    #[prost(int64, tag = "6")]
    pub lease: i64,
}

/// Read of keys.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// Exclusive end of the range; a single key if empty.
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub limit: i64,
    #[prost(int64, tag = "4")]
    pub revision: i64,
    #[prost(bool, tag = "9")]
    pub count_only: bool,
}

/// Result of a read.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// Total number of keys in the range, including those beyond the limit.
    #[prost(int64, tag = "4")]
    pub count: i64,
}

/// Write of a value.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
    #[prost(int64, tag = "3")]
    pub lease: i64,
}

/// Deletion of keys.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
}

/// Operation in a transaction.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3")]
    pub request: Option<Operation>,
}

/// Kinds of operation in a transaction.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum Operation {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

/// Result of an operation in a transaction. Only results of reads are decoded.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub range: Option<RangeResponse>,
}

/// Condition of a transaction: a key has this revision; 0 if the key must be absent.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Compare {
    /// Comparison: 0 is `EQUAL`.
    #[prost(int32, tag = "1")]
    pub result: i32,
    /// Compared value: 2 is `MOD`, the revision of the last change.
    #[prost(int32, tag = "2")]
    pub target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub key: Bytes,
    #[prost(oneof = "CompareTo", tags = "6")]
    pub to: Option<CompareTo>,
}

/// Operand of a condition. A `oneof` encodes a revision of 0, too.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum CompareTo {
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

/// Transaction: conditions, and the operations for each outcome.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<RequestOp>,
}

/// Result of a transaction.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub responses: Vec<ResponseOp>,
}

/// Compaction of the history up to a revision.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub revision: i64,
}

/// Response of which only the header is decoded.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct HeaderResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

/// Start of a watch.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub create: Option<WatchCreateRequest>,
}

/// Parameters of a watch.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchCreateRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub start_revision: i64,
    #[prost(bool, tag = "4")]
    pub progress_notify: bool,
    #[prost(bool, tag = "6")]
    pub prev_kv: bool,
    #[prost(bool, tag = "8")]
    pub fragment: bool,
}

/// Events of a watch.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(bool, tag = "3")]
    pub created: bool,
    #[prost(bool, tag = "4")]
    pub canceled: bool,
    /// Oldest revision from which a watch may start; 0 unless the watch was canceled because of compaction.
    #[prost(int64, tag = "5")]
    pub compact_revision: i64,
    #[prost(string, tag = "6")]
    pub cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<WatchEvent>,
}

/// Change of a key.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchEvent {
    /// Type of event: 0 is a write, 1 a deletion.
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(message, optional, tag = "2")]
    pub kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    pub prev_kv: Option<KeyValue>,
}

/// Creation of a lease.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct LeaseGrantRequest {
    /// TTL in seconds.
    #[prost(int64, tag = "1")]
    pub ttl: i64,
}

/// State of a lease.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct LeaseResponse {
    #[prost(int64, tag = "2")]
    pub id: i64,
    /// Remaining TTL in seconds; 0 if the lease has expired.
    #[prost(int64, tag = "3")]
    pub ttl: i64,
}

/// Renewal or revocation of a lease.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct LeaseRequest {
    #[prost(int64, tag = "1")]
    pub id: i64,
}

/// Request for the status of a member.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StatusRequest {}

/// Status of a member.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "2")]
    pub version: String,
}

/// Returns the revision of a response; 0 without a header.
pub(super) fn revision(header: &Option<ResponseHeader>) -> u64 {
    let revision = header.as_ref().map_or(0, |header| header.revision);
    u64::try_from(revision).unwrap_or(0)
}
