//! What is known of a kind.

use std::sync::Arc;

use super::api::Api;
use super::draft::{Body, Draft};
use crate::kind::Kind;
use crate::parse::FieldInfo;
use crate::resource::AnyObject;

/// How one kind is read.
#[derive(Debug)]
pub struct Row {
    /// The kind.
    pub kind: Kind,
    /// The apiVersions that are read, the preferred one first.
    pub api_versions: &'static [&'static str],
    /// How it is served by an API server.
    pub api: Api,
    /// Which part of a document the raw type is.
    pub body: Body,
    /// From the draft to the checked object; none if it is rejected.
    pub(crate) read: fn(&mut Draft<'_>) -> Option<Arc<dyn AnyObject>>,
    /// The fields of the raw type.
    pub fields: fn() -> Vec<FieldInfo>,
}
