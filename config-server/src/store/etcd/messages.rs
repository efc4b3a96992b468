//! The messages of etcd's API, version 3.4, as far as they are used. Names and numbers are those of etcd's `rpc.proto`.

use bytes::Bytes;
use prost::{Message, Oneof};

/// On every response.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ResponseHeader {
    /// The revision of the store when the request was carried out.
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

/// A key with its value.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub value: Bytes,
    #[prost(int64, tag = "6")]
    pub lease: i64,
}

/// A read of keys.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// The first key that is too far; only `key` if it is empty.
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub limit: i64,
    #[prost(int64, tag = "4")]
    pub revision: i64,
    #[prost(bool, tag = "9")]
    pub count_only: bool,
}

/// What a read found.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// How many keys there are, with those beyond the limit.
    #[prost(int64, tag = "4")]
    pub count: i64,
}

/// A write of a value.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
    #[prost(int64, tag = "3")]
    pub lease: i64,
}

/// A deletion of keys.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
}

/// One step of a transaction.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3")]
    pub request: Option<Operation>,
}

/// What a step does.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum Operation {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

/// What one step of a transaction returned. Only that of a read is looked at.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub range: Option<RangeResponse>,
}

/// A condition of a transaction: that a key has a revision, 0 if it must be absent.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Compare {
    /// 0 is "equal".
    #[prost(int32, tag = "1")]
    pub result: i32,
    /// 2 is the revision of the last change.
    #[prost(int32, tag = "2")]
    pub target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub key: Bytes,
    #[prost(oneof = "CompareTo", tags = "6")]
    pub to: Option<CompareTo>,
}

/// What a condition compares with. A choice, so that a revision of 0 is written, too.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum CompareTo {
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

/// A transaction.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<RequestOp>,
}

/// What became of a transaction.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub responses: Vec<ResponseOp>,
}

/// Drops the history up to a revision.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub revision: i64,
}

/// A response of which only the header counts.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct HeaderResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

/// Starts a watch.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub create: Option<WatchCreateRequest>,
}

/// Which watch.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WatchCreateRequest {
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

/// What a watch tells.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(bool, tag = "3")]
    pub created: bool,
    #[prost(bool, tag = "4")]
    pub canceled: bool,
    /// The oldest revision that a watch may start after; 0 unless the watch was canceled for that.
    #[prost(int64, tag = "5")]
    pub compact_revision: i64,
    #[prost(string, tag = "6")]
    pub cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<WatchEvent>,
}

/// A change of a key.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WatchEvent {
    /// 0 is a write, 1 a deletion.
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(message, optional, tag = "2")]
    pub kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    pub prev_kv: Option<KeyValue>,
}

/// Makes a lease.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LeaseGrantRequest {
    /// Seconds.
    #[prost(int64, tag = "1")]
    pub ttl: i64,
}

/// A lease, or how long it still lasts.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LeaseResponse {
    #[prost(int64, tag = "2")]
    pub id: i64,
    /// Seconds; 0 if the lease is over.
    #[prost(int64, tag = "3")]
    pub ttl: i64,
}

/// Keeps a lease, or ends it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LeaseRequest {
    #[prost(int64, tag = "1")]
    pub id: i64,
}

/// Asks a member how it is.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct StatusRequest {}

/// How a member is.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct StatusResponse {
    #[prost(string, tag = "2")]
    pub version: String,
}

/// The revision of a response; 0 if it has none.
pub fn revision(header: &Option<ResponseHeader>) -> u64 {
    let revision = header.as_ref().map_or(0, |header| header.revision);
    u64::try_from(revision).unwrap_or(0)
}
