//! Requests for proxy reports, which are in memory and not in the store.

use std::time::Instant;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::Server;
use crate::api::route::Target;
use crate::api::{Call, decode};
use crate::proxies::{self, NotTaken, ProxyView, REPORT_BYTES_MAX, Sender};
use crate::selector::Selector;
use crate::status::{Cause, Failure};

impl Server {
    /// Returns one report, or a list of reports.
    pub(super) fn read_reports(&self, call: &Call) -> Result<Value, Failure> {
        let target = &call.target;
        let revision = self.proxies.revision();
        let namespace = target.namespace.as_deref();
        if let Some(name) = &target.name {
            let found = namespace.and_then(|namespace| self.proxies.get(namespace, name));
            let found = found.ok_or_else(|| Failure::not_found(target.resource, name))?;
            return Ok(proxies::to_json(&found, revision));
        }
        let params = &call.params;
        let selector = Selector::read(
            params.get("labelSelector"),
            params.get("fieldSelector"),
            target.resource,
        )?;
        let all = self.proxies.list(namespace).into_iter();
        let all = all.map(|view| proxies::to_json(&view, revision));
        let items: Vec<Value> = all.filter(|item| selector.selects(item)).collect();
        Ok(json!({
            "apiVersion": target.api_version(), "kind": format!("{}List", target.resource.kind),
            "metadata": {"resourceVersion": revision.to_string()}, "items": items,
        }))
    }

    /// Stores a report, or removes a proxy.
    pub(super) fn write_report(&self, call: &Call, sender: Sender<'_>) -> Result<Value, Failure> {
        let target = &call.target;
        if target.namespace.is_none() {
            return Err(Failure::method_not_allowed());
        }
        let is_dry_run = call.params.dry_run("PatchOptions")?;
        let view = match (&call.method, &target.name) {
            (&Method::DELETE, Some(name)) => {
                return self.forget(target, name, sender, is_dry_run);
            }
            (&Method::PUT | &Method::PATCH, Some(_)) | (&Method::POST, None) => {
                self.take_report(call, is_dry_run, sender)?
            }
            _ => return Err(Failure::method_not_allowed()),
        };
        Ok(proxies::to_json(&view, self.proxies.revision()))
    }

    fn take_report(
        &self,
        call: &Call,
        is_dry_run: bool,
        sender: Sender<'_>,
    ) -> Result<ProxyView, Failure> {
        let target = &call.target;
        if call.body.len() > REPORT_BYTES_MAX {
            let message = format!("Request entity too large: limit is {REPORT_BYTES_MAX} bytes");
            let code = StatusCode::PAYLOAD_TOO_LARGE;
            return Err(Failure::new(code, "RequestEntityTooLarge", message));
        }
        let mut object = decode::body(&call.content_type, &call.body)?;
        decode::fits(&mut object, target)?;
        let metadata = crate::object::metadata_mut(&mut object);
        metadata.insert("namespace".to_owned(), target.namespace.clone().into());
        let name = crate::object::meta(&object, "name").to_owned();
        let invalid = |cause: Cause| Failure::invalid(target.resource, &name, vec![cause]);
        if !crate::object::is_name(&name) {
            return Err(invalid(Cause::of_field(
                "metadata.name",
                "Invalid value: no name",
            )));
        }
        let report =
            proxies::read(&object).map_err(|(field, why)| invalid(Cause::of_field(field, why)))?;
        let now = Instant::now();
        if is_dry_run {
            let taken = proxies::Proxies::default().report_by(report, sender, now);
            return taken.map_err(|why| refusal(target, &name, &why));
        }
        self.metrics.report();
        let taken = self.proxies.report_by(report, sender, now);
        taken.map_err(|why| refusal(target, &name, &why))
    }

    fn forget(
        &self,
        target: &Target,
        name: &str,
        sender: Sender<'_>,
        is_dry_run: bool,
    ) -> Result<Value, Failure> {
        let namespace = target.namespace.as_deref().unwrap_or("");
        let found = self.proxies.get(namespace, name);
        let found = found.ok_or_else(|| Failure::not_found(target.resource, name))?;
        let is_allowed = found.check_subject(sender.subject);
        is_allowed.map_err(|why| refusal(target, name, &why))?;
        // Only the replica that the proxy reports to can remove it.
        if !is_dry_run && self.proxies.remove(namespace, name).is_none() {
            return Err(Failure::not_found(target.resource, name));
        }
        Ok(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": name, "group": target.resource.group, "kind": target.resource.api.plural},
        }))
    }
}

fn refusal(target: &Target, name: &str, why: &NotTaken) -> Failure {
    match why {
        NotTaken::Full => Failure {
            retry_after: Some(20),
            ..Failure::new(
                StatusCode::TOO_MANY_REQUESTS,
                "TooManyRequests",
                why.to_string(),
            )
        },
        NotTaken::OfAnother(_) => Failure::forbidden(target.resource, name, why),
    }
}
