//! Get and list.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::params::Params;
use super::route::Target;
use super::{Api, Call};
use crate::object;
use crate::selector::Selector;
use crate::status::{Cause, Failure};
use crate::store::{Page, Revision, Scan, StoreError};

/// Maximum time that a read waits for a future revision.
const WAIT_FOR_REVISION: Duration = Duration::from_secs(3);
/// Number of entries of one scan when a selector is set.
const CHUNK: usize = 500;

/// Result of a list request.
#[derive(Clone, Debug)]
pub struct List {
    /// Metadata of the list.
    pub metadata: Map<String, Value>,
    /// Objects, as served.
    pub items: Vec<Value>,
}

impl List {
    /// Returns the list as an object of kind `<Kind>List`.
    pub fn into_json(self, target: &Target) -> Value {
        let items = self.items.into_iter().map(|mut item| {
            // Items of a list name their kind, too, as those of custom resources do.
            item["kind"] = target.resource.kind.into();
            item
        });
        json!({
            "apiVersion": target.api_version(),
            "kind": format!("{}List", target.resource.kind),
            "metadata": self.metadata,
            "items": items.collect::<Vec<_>>(),
        })
    }
}

/// Decoded `continue` token.
struct Position {
    /// Revision of the list; `None` for the latest.
    at: Option<Revision>,
    /// Key of the last returned object; the list continues after it.
    after: Option<String>,
}

impl Position {
    fn token(at: Revision, after: &str) -> String {
        URL_SAFE_NO_PAD.encode(json!({"v": 1, "rv": at, "after": after}).to_string())
    }

    fn of_token(token: &str, prefix: &str) -> Result<Position, Failure> {
        let read = || -> Option<Position> {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
            let value: Value = serde_json::from_slice(&bytes).ok()?;
            let after = value["after"].as_str()?.to_owned();
            let at = value["rv"].as_u64()?;
            after.starts_with(prefix).then_some(Position {
                at: (at > 0).then_some(at),
                after: Some(after),
            })
        };
        read().ok_or_else(|| Failure::bad_request("continue key is not valid"))
    }
}

impl Api {
    /// Returns the object that a request names.
    ///
    /// # Errors
    /// 404 if there is no such object.
    pub async fn get(&self, call: &Call, name: &str) -> Result<Value, Failure> {
        if let Some(revision) = call.params.resource_version()? {
            self.reach(revision).await?;
        }
        let target = &call.target;
        let entry = self.entry(target, name).await?;
        Ok(object::read(&entry, target.resource, target.version))
    }

    /// Returns the objects that a request selects.
    ///
    /// # Errors
    /// 400 or 422 for invalid parameters, 410 for an expired revision, as in Kubernetes.
    pub async fn list(&self, call: &Call) -> Result<List, Failure> {
        let params = &call.params;
        let selector = Selector::read(
            params.get("labelSelector"),
            params.get("fieldSelector"),
            call.target.resource,
        )?;
        check_list(params)?;
        let limit = params.number("limit")?.filter(|limit| *limit > 0);
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let position = self.position(call, limit.is_some()).await?;
        self.list_from(&call.target, &selector, limit, position)
            .await
    }

    async fn position(&self, call: &Call, is_limited: bool) -> Result<Position, Failure> {
        let params = &call.params;
        let token = params.get("continue");
        if !token.is_empty() {
            return Position::of_token(token, &call.target.prefix());
        }
        let revision = params.resource_version()?.filter(|revision| *revision > 0);
        let is_exact = match params.get("resourceVersionMatch") {
            "" => is_limited,
            text => text == "Exact",
        };
        if let Some(revision) = revision {
            self.reach(revision).await?;
        }
        Ok(Position {
            at: revision.filter(|_| is_exact),
            after: None,
        })
    }

    async fn list_from(
        &self,
        target: &Target,
        selector: &Selector,
        limit: Option<usize>,
        position: Position,
    ) -> Result<List, Failure> {
        let Position { mut at, mut after } = position;
        let mut items = Vec::new();
        let wanted = limit.unwrap_or(usize::MAX);
        let (revision, remaining) = loop {
            // With a selector, scan whole chunks, since some entries may not match.
            let page_limit = match (limit, selector.is_everything()) {
                (None, _) => None,
                (Some(_), true) => Some(wanted - items.len()),
                (Some(_), false) => Some(CHUNK),
            };
            let scan = Scan {
                prefix: target.prefix(),
                after: after.clone(),
                limit: page_limit,
                at,
            };
            let page = self.scan_or_restart(scan, after.as_deref()).await?;
            at = Some(page.revision);
            let mut left = page.remaining + page.entries.len();
            for entry in &page.entries {
                if items.len() == wanted {
                    break;
                }
                left -= 1;
                after = Some(entry.key.to_string());
                let object = object::read(entry, target.resource, target.version);
                if selector.selects(&object) {
                    items.push(object);
                }
            }
            if left == 0 || items.len() >= wanted {
                break (page.revision, left);
            }
        };
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
        if let Some(after) = after.filter(|_| remaining > 0) {
            metadata.insert(
                "continue".to_owned(),
                Position::token(revision, &after).into(),
            );
            if selector.is_everything() {
                metadata.insert("remainingItemCount".to_owned(), remaining.into());
            }
        }
        Ok(List { metadata, items })
    }

    /// Scans the store. If the revision has expired, the error has a `continue` token for the latest revision.
    async fn scan_or_restart(&self, scan: Scan, after: Option<&str>) -> Result<Page, Failure> {
        let page = self.store.scan(scan).await;
        page.map_err(|error| match (error, after) {
            (StoreError::Compacted, Some(after)) => Failure {
                continue_token: Some(Position::token(0, after).into()),
                ..Failure::expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a \
                     new list without the continue parameter, or use the continue token in this response to retrieve \
                     the remainder of the results.",
                )
            },
            (other, _) => other.into(),
        })
    }

    /// Waits until the store has reached that revision.
    pub(crate) async fn reach(&self, revision: Revision) -> Result<(), Failure> {
        // A new revision may be a change of another replica that has not arrived yet. Reads see it all the same, and
        // watches get it in order.
        if self.store.history().latest() >= revision || self.store.latest().await? >= revision {
            return Ok(());
        }
        let mut latest = self.store.history().subscribe();
        let reached = latest.wait_for(|latest| *latest >= revision);
        if tokio::time::timeout(WAIT_FOR_REVISION, reached)
            .await
            .is_ok()
        {
            return Ok(());
        }
        let current = self.store.history().latest();
        let message =
            format!("Timeout: Too large resource version: {revision}, current: {current}");
        let mut failure = Failure::new(http::StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        failure.causes(&[cause]);
        failure.retry_after = Some(1);
        Err(failure)
    }
}

/// Checks that the parameters of a list request are consistent.
fn check_list(params: &Params) -> Result<(), Failure> {
    let invalid = |field: &str, message: &str| {
        Err(Failure::invalid_options(
            "ListOptions",
            Cause::of_field(field, message),
        ))
    };
    let revision = params.get("resourceVersion");
    if params.has("sendInitialEvents") {
        return invalid(
            "sendInitialEvents",
            "Forbidden: sendInitialEvents is forbidden for list",
        );
    }
    if !params.get("continue").is_empty() && !["", "0"].contains(&revision) {
        return Err(Failure::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    match params.get("resourceVersionMatch") {
        "" => Ok(()),
        "Exact" | "NotOlderThan" if !params.get("continue").is_empty() => {
            let why = "Forbidden: resourceVersionMatch is forbidden when continue is provided";
            invalid("resourceVersionMatch", why)
        }
        "Exact" | "NotOlderThan" if revision.is_empty() => {
            let why =
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
            invalid("resourceVersionMatch", why)
        }
        "Exact" if revision == "0" => {
            let why =
                "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            invalid("resourceVersionMatch", why)
        }
        "Exact" | "NotOlderThan" => Ok(()),
        other => {
            let message = format!(
                "Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\""
            );
            invalid("resourceVersionMatch", &message)
        }
    }
}
