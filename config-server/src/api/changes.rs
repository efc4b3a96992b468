//! Create, replace and patch.

use http::{Method, StatusCode};
use serde_json::Value;

use super::decode::{self, media_type};
use super::deletion::Owner;
use super::duplicates::duplicates;
use super::params::FieldValidation;
use super::respond::Answer;
use super::route::Target;
use super::{ATTEMPTS_MAX, Api, Call, Change};
use super::{metadata, operations, strategic, validation};
use crate::fields::managers::{self, Writer};
use crate::object;
use crate::resources::Resource;
use crate::status::{Cause, Failure};
use crate::store::{Expected, Revision, Written};

/// Query options of a write.
pub(super) struct Options {
    is_dry_run: bool,
    fields: FieldValidation,
    manager: String,
    /// Whether the write still has to record the manager of changed fields.
    records_managers: bool,
    /// Warnings of the response so far.
    warnings: Vec<String>,
}

impl Options {
    /// Parses the options of a write; `name` is the Kubernetes name of the options type, for errors.
    pub(super) fn of(call: &Call, name: &str) -> Result<Options, Failure> {
        let params = &call.params;
        let fields = params.field_validation(name)?;
        Ok(Options {
            is_dry_run: params.dry_run(name)?,
            fields,
            manager: params.field_manager(name, &call.user_agent)?,
            records_managers: true,
            warnings: duplicates_in(call, fields)?,
        })
    }

    /// Returns the same options for a write whose fields have their managers already, such as an apply.
    pub(super) fn with_managers(self) -> Options {
        Options {
            records_managers: false,
            ..self
        }
    }

    /// Removes the fields that the kind does not have, and records a warning for each.
    pub(super) fn prune(&mut self, object: &mut Value, resource: &Resource) -> Result<(), Failure> {
        let warnings = validation::prune(resource, object, self.fields)?;
        self.warnings.extend(warnings);
        Ok(())
    }

    /// Returns the field manager of the write.
    pub(super) fn writer(&self, target: &Target) -> Writer {
        Writer {
            manager: self.manager.clone(),
            api_version: target.api_version(),
            is_status: target.is_status,
        }
    }

    /// Records in `managedFields` which fields the write changes, unless it does so itself.
    fn note(&self, new: &mut Value, old: &Value, target: &Target) {
        if self.records_managers {
            managers::note_update(new, old, &self.writer(target));
        }
    }
}

impl Api {
    pub(super) async fn create(&self, call: &Call) -> Result<Change, Failure> {
        let options = Options::of(call, "CreateOptions")?;
        let mut object = decode::body(&call.content_type, &call.body)?;
        let mut target = call.target.clone();
        if target.namespace.is_none() && target.resource.api.is_namespaced {
            return Err(Failure::method_not_allowed());
        }
        decode::fits(&mut object, &target)?;
        let base = object::meta(&object, "generateName").to_owned();
        let is_generated = object::meta(&object, "name").is_empty() && !base.is_empty();
        for _ in 0..ATTEMPTS_MAX {
            let mut object = object.clone();
            if is_generated {
                let name = format!("{base}{}", object::random_suffix());
                object::metadata_mut(&mut object).insert("name".to_owned(), name.into());
            }
            target.name = Some(object::meta(&object, "name").to_owned());
            match self.create_one(call, &options, &target, object).await {
                Err(failure) if is_generated && failure.reason == "AlreadyExists" => {}
                done => return done,
            }
        }
        Err(Failure::internal("no generated name is free"))
    }

    /// Creates one object, whose name is known.
    pub(super) async fn create_one(
        &self,
        call: &Call,
        options: &Options,
        target: &Target,
        mut object: Value,
    ) -> Result<Change, Failure> {
        let resource = target.resource;
        let name = target.name.clone().unwrap_or_default();
        check_name(resource, &name)?;
        let rv = object::meta(&object, "resourceVersion");
        if !rv.is_empty() {
            return Err(Failure::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let namespace = call.target.namespace.as_deref();
        object::prepare_new(&mut object, resource, namespace, false);
        let mut warnings = options.warnings.clone();
        warnings.extend(validation::check(resource, &mut object, options.fields)?);
        metadata::check(&object, None, resource)?;
        options.note(&mut object, &Value::Null, target);
        let key = target.key(&name);
        let after = if options.is_dry_run {
            let (found, _) = self.store.get(&key).await?;
            if found.is_some() {
                return Err(Failure::already_exists(resource, &name));
            }
            None
        } else {
            self.ensure_namespace(namespace).await?;
            let stored = self.put(key, Expected::Absent, &mut object).await?;
            Some(stored.ok_or_else(|| Failure::already_exists(resource, &name))?)
        };
        Ok(Change {
            answer: Answer {
                code: StatusCode::CREATED,
                object,
                warnings,
            },
            name,
            before: None,
            after,
        })
    }

    pub(super) async fn replace(&self, call: &Call, name: &str) -> Result<Change, Failure> {
        let options = Options::of(call, "UpdateOptions")?;
        let mut wanted = decode::body(&call.content_type, &call.body)?;
        decode::fits(&mut wanted, &call.target)?;
        let resource = call.target.resource;
        // Updates of most built-in kinds of Kubernetes do not require a `resourceVersion`.
        let is_any = resource.is_of_kubernetes() && resource.kind != "Lease";
        if object::meta(&wanted, "resourceVersion").is_empty() && !is_any {
            let message = "Invalid value: 0x0: must be specified for an update";
            let cause = Cause::of_field("metadata.resourceVersion", message);
            // A missing object is 404, whatever the `resourceVersion`.
            self.entry(&call.target, name).await?;
            return Err(Failure::invalid(resource, name, vec![cause]));
        }
        self.modify(call, name, &options, |_| Ok(wanted.clone()))
            .await
    }

    pub(super) async fn patch(&self, call: &Call, name: &str) -> Result<Change, Failure> {
        let options = Options::of(call, "PatchOptions")?;
        let media = media_type(&call.content_type);
        if call.params.has("force") && media != "application/apply-patch+yaml" {
            let message = "Forbidden: may not be specified for non-apply patch";
            let cause = Cause::of_field("force", message);
            return Err(Failure::invalid_options("PatchOptions", cause));
        }
        let patch = || decode::body("application/json", &call.body);
        match media {
            "application/apply-patch+yaml" => self.apply(call, name).await,
            "application/merge-patch+json" => {
                let patch = patch()?;
                self.merge(call, name, &options, |object| {
                    json_patch::merge(object, &patch)
                })
                .await
            }
            // Custom resources have none, and their clients know that.
            "application/strategic-merge-patch+json" if call.target.resource.is_of_kubernetes() => {
                let patch = patch()?;
                self.merge(call, name, &options, |object| {
                    strategic::merge(object, &patch)
                })
                .await
            }
            "application/json-patch+json" => {
                let patch = operations::read(patch()?)?;
                self.modify(call, name, &options, |current| {
                    operations::apply(&patch, current)
                })
                .await
            }
            other => {
                let message = format!(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json; not {other}"
                );
                let code = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                Err(Failure::new(code, "UnsupportedMediaType", message))
            }
        }
    }

    async fn merge(
        &self,
        call: &Call,
        name: &str,
        options: &Options,
        merge: impl Fn(&mut Value),
    ) -> Result<Change, Failure> {
        self.modify(call, name, options, |current| {
            let mut object = current.clone();
            merge(&mut object);
            Ok(object)
        })
        .await
    }

    /// Changes an object by `edit`, which gets the current object. Retries after a conflicting write, unless the
    /// result names the `resourceVersion` that it requires.
    pub(super) async fn modify(
        &self,
        call: &Call,
        name: &str,
        options: &Options,
        edit: impl Fn(&Value) -> Result<Value, Failure>,
    ) -> Result<Change, Failure> {
        let target = &call.target;
        let resource = target.resource;
        let unreadable = |failure: Failure| match failure.code {
            StatusCode::BAD_REQUEST if call.method == Method::PATCH => {
                failure.invalid_patch(resource, name)
            }
            _ => failure,
        };
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.entry(target, name).await?;
            let current = object::read(&entry, resource, target.version);
            let mut object = edit(&current)?;
            decode::fits(&mut object, target).map_err(unreadable)?;
            needs(&object, &current, resource, name)?;
            object::prepare_change(&mut object, &current, resource, target.is_status);
            let check = match target.is_status {
                true => validation::check_status,
                false => validation::check,
            };
            let warnings = check(resource, &mut object, options.fields).map_err(unreadable)?;
            metadata::check(&object, Some(&current), resource)?;
            if !target.is_status {
                validation::check_change(resource, &current, &object)?;
            }
            // After the check, which drops the fields that the kind does not have.
            object::raise_generation(&mut object, &current);
            options.note(&mut object, &current, target);
            let stored = if options.is_dry_run || object::is_same(&object, &current) {
                super::set_revision(&mut object, entry.revision);
                Some(None)
            } else {
                self.store_change(target, name, entry.revision, &mut object)
                    .await?
                    .map(Some)
            };
            if let Some(after) = stored {
                let mut answer = Answer::ok(object);
                answer.warnings.clone_from(&options.warnings);
                answer.warnings.extend(warnings);
                return Ok(Change {
                    answer,
                    name: name.to_owned(),
                    before: Some(entry.revision),
                    after,
                });
            }
        }
        Err(Failure::modified(resource, name))
    }

    /// Stores a changed object. If it is being deleted and its last finalizer is gone, deletes the object and its
    /// dependents.
    async fn store_change(
        &self,
        target: &Target,
        name: &str,
        revision: Revision,
        object: &mut Value,
    ) -> Result<Option<Revision>, Failure> {
        let key = target.key(name);
        let is_namespace = target.resource == Resource::namespaces();
        if object::is_deleting(object) && !object::has_finalizers(object) && !is_namespace {
            let written = self.store.write(key, Expected::At(revision), None).await?;
            let Written::Done(revision) = written else {
                return Ok(None);
            };
            let owner = Owner {
                uid: object::meta(object, "uid"),
                namespace: target.namespace.as_deref(),
                revision,
            };
            self.release_dependents(&owner, false).await?;
            return Ok(Some(revision));
        }
        // The collector deletes a terminating namespace once it is empty.
        self.put(key, Expected::At(revision), object).await
    }
}

/// Returns warnings about duplicate fields in the body.
///
/// # Errors
/// 400 if field validation is strict.
fn duplicates_in(call: &Call, fields: FieldValidation) -> Result<Vec<String>, Failure> {
    let is_json = media_type(&call.content_type).ends_with("json");
    if fields == FieldValidation::Ignore || !(is_json || call.content_type.is_empty()) {
        return Ok(Vec::new());
    }
    let found = duplicates(&call.body).into_iter();
    let texts: Vec<String> = found
        .map(|path| format!("duplicate field {path:?}"))
        .collect();
    if fields == FieldValidation::Strict && !texts.is_empty() {
        let message = format!("strict decoding error: {}", texts.join(", "));
        return Err(Failure::bad_request(message));
    }
    Ok(texts)
}

/// Checks that the result of an edit has the `resourceVersion` and UID of the current object, if it names them.
fn needs(new: &Value, current: &Value, resource: &Resource, name: &str) -> Result<(), Failure> {
    let wanted = object::meta(new, "resourceVersion");
    if !wanted.is_empty() && wanted != object::meta(current, "resourceVersion") {
        return Err(Failure::modified(resource, name));
    }
    let (uid, known) = (object::meta(new, "uid"), object::meta(current, "uid"));
    if !uid.is_empty() && uid != known {
        let why =
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {known}");
        return Err(Failure::conflict(resource, name, why));
    }
    Ok(())
}

fn check_name(resource: &Resource, name: &str) -> Result<(), Failure> {
    let message = if name.is_empty() {
        "Required value: name or generateName is required".to_owned()
    } else if object::is_name(name) {
        return Ok(());
    } else {
        format!(
            "Invalid value: {name:?}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
             characters, '-' or '.', and must start and end with an alphanumeric character"
        )
    };
    let cause = Cause::of_field("metadata.name", message);
    Err(Failure::invalid(resource, name, vec![cause]))
}
