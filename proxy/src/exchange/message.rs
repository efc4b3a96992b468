//! Heads of requests and responses: what the proxy adds, removes, keeps and replies by itself.

pub mod added;
pub mod clean;
pub mod grpc_messages;
pub mod headers;
pub mod local_reply;
pub mod readdress;
pub mod saved_head;
