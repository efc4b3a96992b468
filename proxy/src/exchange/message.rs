//! Heads of requests and responses: added and removed fields, saved heads, local replies.

pub mod added;
pub mod clean;
pub mod grpc_messages;
pub mod header_changes;
pub mod headers;
pub mod local_reply;
pub mod readdress;
pub mod saved_head;
