//! Deletion of single objects and of collections.

use http::StatusCode;
use serde_json::{Value, json};

use super::respond::Answer;
use super::route::Target;
use super::{ATTEMPTS_MAX, Api, Call, Change, decode, typed};
use crate::clock;
use crate::object;
use crate::resources::{self, Resource};
use crate::status::{Cause, Failure};
use crate::store::{Expected, Revision, Written};

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    is_dry_run: bool,
    uid: Option<String>,
    revision: Option<String>,
    policy: String,
}

impl Options {
    /// Parses the body if there is one, and the query otherwise.
    fn of(call: &Call) -> Result<Options, Failure> {
        let params = &call.params;
        let mut options = Options {
            is_dry_run: params.dry_run("DeleteOptions")?,
            policy: params.get("propagationPolicy").to_owned(),
            ..Options::default()
        };
        let mut orphan = params.get("orphanDependents").to_owned();
        check_grace_period(params.get("gracePeriodSeconds"))?;
        if !call.body.is_empty() {
            let body = decode::body(&call.content_type, &call.body)?;
            typed::check_delete_options(&body)?;
            let text = |value: &Value| value.as_str().map(str::to_owned);
            options.uid = text(&body["preconditions"]["uid"]);
            options.revision = text(&body["preconditions"]["resourceVersion"]);
            if let Some(policy) = text(&body["propagationPolicy"]) {
                options.policy = policy;
            }
            if let Some(flag) = body["orphanDependents"].as_bool() {
                orphan = flag.to_string();
            }
            match body["dryRun"].as_array().map_or(&[][..], Vec::as_slice) {
                [] => {}
                [one] if one == "All" => options.is_dry_run = true,
                other => {
                    return Err(invalid(
                        "dryRun",
                        unsupported(&Value::from(other), "\"All\""),
                    ));
                }
            }
            if !body["gracePeriodSeconds"].is_null() {
                check_grace_period(&body["gracePeriodSeconds"].to_string())?;
            }
        }
        if !orphan.is_empty() && !options.policy.is_empty() {
            let message =
                "Invalid value: orphanDependents and deletionPropagation cannot be both set";
            return Err(invalid("propagationPolicy", message.to_owned()));
        }
        if orphan == "true" {
            options.policy = "Orphan".to_owned();
        }
        if !["", "Background", "Foreground", "Orphan"].contains(&&*options.policy) {
            let known = "\"Background\", \"Foreground\", \"Orphan\"";
            let policy = Value::from(&*options.policy);
            return Err(invalid("propagationPolicy", unsupported(&policy, known)));
        }
        Ok(options)
    }

    pub(super) fn meets(&self, target: &Target, name: &str, object: &Value) -> Result<(), Failure> {
        for (wanted, field, what) in [
            (&self.uid, "uid", "UID"),
            (&self.revision, "resourceVersion", "ResourceVersion"),
        ] {
            let known = object::meta(object, field);
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != known) {
                let why = format!(
                    "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {known}"
                );
                return Err(Failure::conflict(target.resource, name, why));
            }
        }
        Ok(())
    }
}

/// Checks that `gracePeriodSeconds` is a non-negative number. The value has no effect.
fn check_grace_period(text: &str) -> Result<(), Failure> {
    match text.parse::<i64>() {
        Ok(0..) => Ok(()),
        Ok(_) => {
            let message = format!("Invalid value: {text}: must be greater than or equal to 0");
            Err(invalid("gracePeriodSeconds", message))
        }
        Err(_) if text.is_empty() => Ok(()),
        Err(_) => Err(Failure::bad_request(format!(
            "strconv.ParseInt: parsing {text:?}: invalid syntax"
        ))),
    }
}

fn invalid(field: &str, message: String) -> Failure {
    Failure::invalid_options("DeleteOptions", Cause::of_field(field, message))
}

fn unsupported(value: &Value, known: &str) -> String {
    format!("Unsupported value: {value}: supported values: {known}")
}

impl Api {
    pub(super) async fn delete(&self, call: &Call, name: &str) -> Result<Change, Failure> {
        let options = Options::of(call)?;
        self.delete_one(&call.target, name, &options).await
    }

    /// Deletes an object unless it has changed since that revision.
    pub(super) async fn delete_at(&self, key: &str, revision: Revision) -> Result<(), Failure> {
        let Some((target, name)) = target_of_key(key) else {
            return Ok(());
        };
        let options = Options {
            revision: Some(revision.to_string()),
            ..Options::default()
        };
        match self.delete_one(&target, name, &options).await {
            Err(failure) if failure.code == StatusCode::NOT_FOUND => Ok(()),
            Err(failure) if failure.code == StatusCode::CONFLICT => Ok(()),
            other => other.map(drop),
        }
    }

    pub(super) async fn delete_one(
        &self,
        target: &Target,
        name: &str,
        options: &Options,
    ) -> Result<Change, Failure> {
        if target.resource == Resource::namespaces() && !options.is_dry_run {
            return Box::pin(self.delete_namespace(target, name, options)).await;
        }
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.entry(target, name).await?;
            let mut object = object::read(&entry, target.resource, target.version);
            options.meets(target, name, &object)?;
            let uid = object::meta(&object, "uid").to_owned();
            let owner = |revision| Owner {
                uid: &uid,
                namespace: target.namespace.as_deref(),
                revision,
            };
            let is_orphan = options.policy == "Orphan";
            if (options.policy == "Foreground" || is_orphan) && !options.is_dry_run {
                // Dependents are released before the object is deleted: the collector deletes dependents without an
                // owner.
                let latest = self.store.latest().await?;
                self.release_dependents(&owner(latest), is_orphan).await?;
            }
            let change = |answer, after| Change {
                answer,
                name: name.to_owned(),
                before: Some(entry.revision),
                after,
            };
            if object::has_finalizers(&object) {
                let was_deleting = object::is_deleting(&object);
                mark_deleted(&mut object);
                if options.is_dry_run || was_deleting {
                    return Ok(change(Answer::ok(object), None));
                }
                let expected = Expected::At(entry.revision);
                if let Some(after) = self.put(target.key(name), expected, &mut object).await? {
                    return Ok(change(Answer::ok(object), Some(after)));
                }
                continue;
            }
            let answer = Answer::ok(deleted(target.resource, name, &uid));
            if options.is_dry_run {
                return Ok(change(answer, None));
            }
            let expected = Expected::At(entry.revision);
            let written = self.store.write(target.key(name), expected, None).await?;
            if let Written::Done(after) = written {
                if options.policy != "Foreground" && !is_orphan {
                    self.release_dependents(&owner(after), false).await?;
                }
                return Ok(change(answer, Some(after)));
            }
        }
        Err(Failure::modified(target.resource, name))
    }

    pub(super) async fn delete_collection(&self, call: &Call) -> Result<Change, Failure> {
        let options = Options::of(call)?;
        let target = &call.target;
        let is_of_all = target.namespace.is_none() && target.resource.api.is_namespaced;
        if is_of_all || target.resource == Resource::namespaces() {
            return Err(Failure::method_not_allowed());
        }
        for object in self.list(call).await?.items {
            let name = object::meta(&object, "name");
            match self.delete_one(target, name, &options).await {
                Err(failure) if failure.code == StatusCode::NOT_FOUND => {}
                other => drop(other?),
            }
        }
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"group": target.resource.group, "kind": target.resource.api.plural},
        });
        Ok(Change {
            answer: Answer::ok(status),
            name: String::new(),
            before: None,
            after: Some(self.store.history().latest()),
        })
    }

    /// Deletes the dependents that have no other owner, or removes the owner reference if `is_orphan`. A namespaced
    /// owner has dependents in its namespace only.
    pub(super) async fn release_dependents(
        &self,
        owner: &Owner<'_>,
        is_orphan: bool,
    ) -> Result<(), Failure> {
        if owner.uid.is_empty() {
            return Ok(());
        }
        for key in self
            .owners
            .dependents(&*self.store, owner.uid, owner.revision)
            .await?
        {
            self.release(&key, owner, is_orphan).await?;
        }
        Ok(())
    }

    async fn release(&self, key: &str, owner: &Owner<'_>, is_orphan: bool) -> Result<(), Failure> {
        let Some(resource) = resources::of_key(key) else {
            return Ok(());
        };
        for _ in 0..ATTEMPTS_MAX {
            let Some(entry) = self.store.get(key).await?.0 else {
                return Ok(());
            };
            let mut object = object::read(&entry, resource, resource.versions[0]);
            let namespace = object::meta(&object, "namespace").to_owned();
            if owner
                .namespace
                .is_some_and(|of_owner| of_owner != namespace)
            {
                return Ok(());
            }
            let metadata = object::metadata_mut(&mut object);
            let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") else {
                return Ok(());
            };
            owners.retain(|named| named["uid"] != owner.uid);
            if owners.is_empty() && !is_orphan {
                let name = object::meta(&object, "name").to_owned();
                let namespace = Some(&*namespace).filter(|namespace| !namespace.is_empty());
                let target = target_of(resource, namespace);
                let options = Options::default();
                let deleted = self.delete_one(&target, &name, &options);
                return match Box::pin(deleted).await {
                    Err(failure) if failure.code == StatusCode::NOT_FOUND => Ok(()),
                    other => other.map(drop),
                };
            }
            let expected = Expected::At(entry.revision);
            if self
                .put(key.to_owned(), expected, &mut object)
                .await?
                .is_some()
            {
                return Ok(());
            }
        }
        Err(Failure::modified(resource, key))
    }
}

/// Deleted object, as the owner of dependents.
pub(super) struct Owner<'a> {
    pub(super) uid: &'a str,
    pub(super) namespace: Option<&'a str>,
    /// Revision of the deletion. Dependents written before it are found.
    pub(super) revision: Revision,
}

/// Returns the target and the name of the object with that key.
pub(super) fn target_of_key(key: &str) -> Option<(Target, &str)> {
    let resource = resources::of_key(key)?;
    let mut parts = key.rsplit('/');
    let name = parts.next()?;
    let namespace = parts.next().filter(|_| resource.api.is_namespaced);
    Some((target_of(resource, namespace), name))
}

pub(super) fn target_of(resource: &'static Resource, namespace: Option<&str>) -> Target {
    Target {
        resource,
        version: resource.versions[0],
        namespace: namespace.map(str::to_owned),
        name: None,
        is_status: false,
    }
}

pub(super) fn mark_deleted(object: &mut Value) {
    let metadata = object::metadata_mut(object);
    if !metadata.contains_key("deletionTimestamp") {
        metadata.insert("deletionTimestamp".to_owned(), clock::now().into());
        metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        let generation = metadata.get("generation").and_then(Value::as_i64);
        metadata.insert(
            "generation".to_owned(),
            (generation.unwrap_or(0) + 1).into(),
        );
    }
}

/// Returns the response to a deletion after which the object is gone.
pub(super) fn deleted(resource: &Resource, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": resource.api.plural, "uid": uid});
    if !resource.group.is_empty() {
        details["group"] = resource.group.into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
