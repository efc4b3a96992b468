//! Resolver for the names that clients of a sidecar's HTTP proxy request. Workers use the control thread's resolver.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::Settings;
use super::start_error::{StartError, failed};
use crate::control::dns::{LookupRequest, system_lookup};
use crate::exchange::select::proxied::ResolveName;

/// Makes the resolver; `None` without an HTTP proxy. Must be called within the runtime that runs the lookups.
pub(super) fn resolver(settings: &Settings) -> Result<Option<ResolveName>, StartError> {
    if settings.identity.sockets.http_proxy.is_none() {
        return Ok(None);
    }
    let no_resolver = failed("the DNS resolver cannot be set up");
    let lookup = system_lookup(&settings.dns_servers).map_err(no_resolver)?;
    let runtime = Handle::current();
    Ok(Some(Arc::new(move |name| {
        let question = LookupRequest {
            name,
            held: Arc::default(),
        };
        let answer = runtime.spawn(lookup(question));
        Box::pin(async move {
            let found = answer.await.map_err(|error| error.to_string())??;
            Ok((found.addresses, found.ttl))
        })
    })))
}
