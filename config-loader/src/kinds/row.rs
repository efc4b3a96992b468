//! Row of the table of kinds.

use std::sync::Arc;

use super::api::Api;
use super::draft::{Body, Draft};
use crate::kind::Kind;
use crate::parse::FieldInfo;
use crate::resource::AnyObject;

/// Description of one kind: names, reader and fields.
#[derive(Debug)]
pub struct Row {
    /// Kind of the row.
    pub kind: Kind,
    /// Supported apiVersions, the preferred one first.
    pub api_versions: &'static [&'static str],
    /// Kubernetes API names and table columns.
    pub api: Api,
    /// Part of a document that the raw type represents.
    pub body: Body,
    /// Function that reads and checks an object; returns `None` if it is rejected.
    pub(crate) read: fn(&mut Draft<'_>) -> Option<Arc<dyn AnyObject>>,
    /// Function that lists the fields of the raw type.
    pub fields: fn() -> Vec<FieldInfo>,
}
