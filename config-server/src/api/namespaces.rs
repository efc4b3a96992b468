//! Namespaces: created with the first object in them, and emptied before they are deleted.

use serde_json::{Value, json};

use super::deletion::{Options, Owner, deleted, mark_deleted, target_of};
use super::respond::Answer;
use super::route::Target;
use super::{ATTEMPTS_MAX, Api, Change};
use crate::object;
use crate::resources::{self, Resource};
use crate::status::Failure;
use crate::store::{Entry, Expected, Revision, Scan, Written};

/// Name of the namespace that always exists.
pub const DEFAULT: &str = "default";

impl Api {
    /// Creates the namespace of a new object if absent.
    pub(crate) async fn ensure_namespace(&self, namespace: Option<&str>) -> Result<(), Failure> {
        let Some(namespace) = namespace else {
            return Ok(());
        };
        let resource = Resource::namespaces();
        let key = resource.key(None, namespace);
        let (found, _) = self.store.get(&key).await?;
        if let Some(found) = found {
            let object = object::read(&found, resource, "v1");
            if object::is_deleting(&object) {
                let why = "unable to create new content because the namespace is being terminated";
                return Err(Failure::forbidden(resource, namespace, why));
            }
            return Ok(());
        }
        let mut object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace},
        });
        object::prepare_new(&mut object, resource, None, false);
        // A mismatch means that another request created the namespace.
        self.put(key, Expected::Absent, &mut object).await?;
        Ok(())
    }

    /// Deletes a namespace with all objects in it. It stays in phase `Terminating` while a finalizer holds any of
    /// them.
    pub(super) async fn delete_namespace(
        &self,
        target: &Target,
        name: &str,
        options: &Options,
    ) -> Result<Change, Failure> {
        if name == DEFAULT {
            let why = "this namespace may not be deleted";
            return Err(Failure::forbidden(target.resource, name, why));
        }
        // Mark the namespace first, so that no object is created in it.
        let (before, mut after, object) = self.terminate(target, name, options).await?;
        let uid = object::meta(&object, "uid").to_owned();
        self.empty_namespace(name, &uid).await?;
        let mut answer = Answer::ok(object);
        if let Some(gone) = self.finish_namespace(name).await? {
            after = Some(gone);
            answer = Answer::ok(deleted(target.resource, name, &uid));
        }
        Ok(Change {
            answer,
            name: name.to_owned(),
            before: Some(before),
            after,
        })
    }

    /// Marks a namespace as terminating. Returns its revisions before and after, and the object.
    async fn terminate(
        &self,
        target: &Target,
        name: &str,
        options: &Options,
    ) -> Result<(Revision, Option<Revision>, Value), Failure> {
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.entry(target, name).await?;
            let mut object = object::read(&entry, target.resource, target.version);
            options.meets(target, name, &object)?;
            if object::is_deleting(&object) {
                return Ok((entry.revision, None, object));
            }
            mark_deleted(&mut object);
            object["status"]["phase"] = "Terminating".into();
            let expected = Expected::At(entry.revision);
            if let Some(after) = self.put(target.key(name), expected, &mut object).await? {
                return Ok((entry.revision, Some(after), object));
            }
        }
        Err(Failure::modified(target.resource, name))
    }

    /// Deletes the objects in a terminating namespace, and the namespace itself once it is empty.
    pub(super) async fn finish_terminating(&self, namespace: &str) -> Result<(), Failure> {
        let resource = Resource::namespaces();
        let (found, _) = self.store.get(&resource.key(None, namespace)).await?;
        let found = found.map(|entry| object::read(&entry, resource, "v1"));
        if let Some(object) = found.filter(object::is_deleting) {
            let uid = object::meta(&object, "uid");
            self.empty_namespace(namespace, uid).await?;
            self.finish_namespace(namespace).await?;
        }
        Ok(())
    }

    /// Deletes a terminating namespace if it is empty and has no finalizer. Returns the revision of the deletion;
    /// `None` if the namespace stays.
    async fn finish_namespace(&self, name: &str) -> Result<Option<Revision>, Failure> {
        let resource = Resource::namespaces();
        let key = resource.key(None, name);
        for _ in 0..ATTEMPTS_MAX {
            let (entry, latest) = self.store.get(&key).await?;
            let Some(entry) = entry else {
                // The collector has already deleted the namespace.
                return Ok(Some(latest));
            };
            let object = object::read(&entry, resource, "v1");
            if !object::is_deleting(&object) || object::has_finalizers(&object) {
                return Ok(None);
            }
            for kind in namespaced_resources() {
                if !self
                    .entries(kind.prefix(Some(name)), Some(1))
                    .await?
                    .is_empty()
                {
                    return Ok(None);
                }
            }
            let written = self
                .store
                .write(key.clone(), Expected::At(entry.revision), None);
            if let Written::Done(revision) = written.await? {
                let owner = Owner {
                    uid: object::meta(&object, "uid"),
                    namespace: None,
                    revision,
                };
                self.release_dependents(&owner, false).await?;
                return Ok(Some(revision));
            }
        }
        Err(Failure::modified(resource, name))
    }

    /// Deletes all objects in a namespace.
    async fn empty_namespace(&self, namespace: &str, uid: &str) -> Result<(), Failure> {
        for resource in namespaced_resources() {
            for entry in self.entries(resource.prefix(Some(namespace)), None).await? {
                if !self.is_terminating(namespace, uid).await? {
                    // Another request has deleted the namespace. There may be a new one of the same name.
                    return Ok(());
                }
                let name = entry.key.rsplit('/').next().unwrap_or("").to_owned();
                let target = target_of(resource, Some(namespace));
                match Box::pin(self.delete_one(&target, &name, &Options::default())).await {
                    Err(failure) if failure.code == http::StatusCode::NOT_FOUND => {}
                    other => drop(other?),
                }
            }
        }
        Ok(())
    }

    /// Whether the namespace with this UID exists and is terminating.
    async fn is_terminating(&self, namespace: &str, uid: &str) -> Result<bool, Failure> {
        let resource = Resource::namespaces();
        let (found, _) = self.store.get(&resource.key(None, namespace)).await?;
        let found = found.map(|entry| object::read(&entry, resource, "v1"));
        Ok(found.is_some_and(|object| {
            object::is_deleting(&object) && object::meta(&object, "uid") == uid
        }))
    }

    async fn entries(&self, prefix: String, limit: Option<usize>) -> Result<Vec<Entry>, Failure> {
        let scan = Scan {
            prefix,
            limit,
            ..Scan::default()
        };
        Ok(self.store.scan(scan).await?.entries)
    }
}

/// Returns the namespaced resources that are stored.
fn namespaced_resources() -> impl Iterator<Item = &'static Resource> {
    let all = resources::all().iter();
    all.filter(|resource| resource.api.is_namespaced && !resource.is_report())
}
