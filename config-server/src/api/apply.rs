//! Server-side apply.

use http::StatusCode;
use serde_json::Value;

use super::changes::Options;
use super::{Api, Call, Change, decode};
use crate::fields::managers;
use crate::object;
use crate::status::{Cause, Failure};

impl Api {
    /// Applies the body, and creates the object if absent.
    pub(super) async fn apply(&self, call: &Call, name: &str) -> Result<Change, Failure> {
        if call.params.get("fieldManager").is_empty() {
            let message = "Required value: is required for apply patch";
            let cause = Cause::of_field("fieldManager", message);
            return Err(Failure::invalid_options("PatchOptions", cause));
        }
        let mut options = Options::of(call, "PatchOptions")?.with_managers();
        let force = call.params.flag("force")?;
        let mut applied = decode::body(&call.content_type, &call.body)?;
        decode::fits(&mut applied, &call.target)?;
        if !object::metadata(&applied)["managedFields"].is_null() {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        let resource = call.target.resource;
        // Unknown fields are removed first, so that they have no manager.
        options.prune(&mut applied, resource)?;
        let writer = options.writer(&call.target);
        let merge = |current: &Value| {
            let merged = managers::apply(current, &applied, &writer, force);
            let mut object = merged.map_err(|causes| {
                let message = managers::conflict_message(&causes);
                let mut failure = Failure::new(StatusCode::CONFLICT, "Conflict", message);
                failure.causes(&causes);
                failure
            })?;
            managers::note_last_applied(&mut object, &applied, &writer);
            for field in ["resourceVersion", "uid"] {
                if let Some(wanted) = object::metadata(&applied)[field].as_str() {
                    let metadata = object::metadata_mut(&mut object);
                    metadata.insert(field.to_owned(), wanted.into());
                }
            }
            Ok(object)
        };
        loop {
            match self.modify(call, name, &options, merge).await {
                Err(failure) if failure.code == StatusCode::NOT_FOUND => {}
                done => return done,
            }
            if call.target.is_status {
                return Err(Failure::not_found(resource, name));
            }
            let made = merge(&Value::Null)?;
            let target = call.target.clone();
            match self.create_one(call, &options, &target, made).await {
                // Another request created the object meanwhile.
                Err(failure) if failure.reason == "AlreadyExists" => {}
                done => return done,
            }
        }
    }
}
