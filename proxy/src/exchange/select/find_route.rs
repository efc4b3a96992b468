//! Finds the route of a request by its head.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::uri::PathAndQuery;
use hyper::header::{HOST, LOCATION, PROXY_AUTHORIZATION};
use hyper::{Method, Request, Response, Uri, Version};

use crate::exchange::admit::admit_request;
use crate::exchange::downstream::connection::{Connection, DownstreamProtocol};
use crate::exchange::message::clean::Cleaned;
use crate::exchange::message::header_changes::HeaderChanges;
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::select::proxied::{NamedHost, Names};
use crate::exchange::worker::{SnapshotRef, Worker};
use crate::snapshot::{
    Chain, Handling, HttpHosts, Listener, Route, Security, Service, Then, VirtualHost,
};
use traffic::claims::Claims;
use traffic::cluster::Split;
use traffic::filter::{Redirect, RedirectRequest, Scheme};
use traffic::route::{PathNormalization, RequestHead, RuleIdx, normalize_host};
use wire::fields;

/// The rule that matched a request.
pub struct Found {
    virtual_host: Arc<VirtualHost>,
    rule: RuleIdx,
    /// Position of the destination whose route replaces that of the rule, once it is drawn.
    share: Option<u16>,
    /// Host that a client of the HTTP proxy named; boxed, since hardly any request has it.
    named: Option<Box<Named>>,
    /// Changes of the response that a provider of external authorization asks for.
    pub(in crate::exchange) changes: Option<Box<HeaderChanges>>,
}

/// Host that a client of the HTTP proxy named.
struct Named {
    host: NamedHost,
    /// Its address, once resolved.
    address: Option<SocketAddr>,
}

impl Found {
    /// Changes the response as a provider of external authorization asks for.
    pub(in crate::exchange) fn change_response<B>(&self, response: &mut Response<B>) {
        if let Some(changes) = &self.changes {
            changes.apply(response.headers_mut());
        }
    }

    /// Whether the client uses the sidecar as its HTTP proxy.
    pub fn is_proxied(&self) -> bool {
        self.named.is_some()
    }

    /// Address of the host named to the HTTP proxy, else the address that the client dialed.
    pub fn dialed_on(&self, connection: &Connection) -> Option<SocketAddr> {
        self.dialed().or_else(|| connection.dialed())
    }

    /// Address of the host named to the HTTP proxy.
    pub fn dialed(&self) -> Option<SocketAddr> {
        self.named.as_ref()?.address
    }

    /// Resolves the host named to the HTTP proxy.
    ///
    /// # Errors
    ///
    /// The reply if the host has no address, or one of the proxy's own.
    pub async fn find_address(
        &mut self,
        names: &Names,
        snapshot: &SnapshotRef,
    ) -> Result<(), LocalReply> {
        if let Some(named) = &mut self.named {
            named.address = Some(named.host.address(names, snapshot).await?);
        }
        Ok(())
    }

    /// Whether the client uses the sidecar as its HTTP proxy, and the address of the named host is the endpoint of a
    /// destination.
    pub fn needs_address(&self, snapshot: &SnapshotRef) -> bool {
        if !self.is_proxied() {
            return false;
        }
        let split = self.route().split.as_ref();
        let mut destinations = split.into_iter().flat_map(Split::entries);
        destinations.any(|(_, one)| {
            let cluster = snapshot.cluster(one.cluster);
            cluster.is_some_and(|cluster| cluster.dialed.is_some())
        })
    }

    /// The virtual host of the request.
    pub fn virtual_host(&self) -> &VirtualHost {
        &self.virtual_host
    }

    /// The same rule for another request of a simulation.
    pub(in crate::exchange) fn for_another(&self) -> Self {
        Self {
            virtual_host: Arc::clone(&self.virtual_host),
            rule: self.rule,
            share: None,
            named: None,
            changes: None,
        }
    }

    /// The virtual host, for longer than the request.
    pub(in crate::exchange) fn shared_host(&self) -> Arc<VirtualHost> {
        Arc::clone(&self.virtual_host)
    }

    /// The rule in the virtual host's table.
    pub fn rule(&self) -> RuleIdx {
        self.rule
    }

    /// The route of the rule, or of the destination that was drawn.
    pub fn route(&self) -> &Route {
        let route = self.virtual_host.route(self.rule);
        self.share.map_or(route, |at| route.share(at.into()))
    }

    /// Draws the destination, if destinations of the route have routes of their own.
    pub(in crate::exchange) fn drawn(&mut self, worker: &Worker) -> &Self {
        let route = self.virtual_host.route(self.rule);
        let split = route.split.as_ref();
        if let Some(split) = split.filter(|_| !route.shares.is_empty()) {
            let drawn = worker.random(|rng| split.pick(rng).position);
            self.share = u16::try_from(drawn).ok();
        }
        self
    }
}

/// Checks the admission of a request, normalizes its path, and finds its rule. `cleaned` is the result of cleaning its
/// head.
///
/// # Errors
///
/// The reply for a request that is refused, that no rule matches, or that is invalid.
pub fn find_route<B>(
    snapshot: &SnapshotRef,
    connection: &Connection,
    scheme: Scheme,
    request: &mut Request<B>,
    cleaned: &mut Cleaned<'_>,
) -> Result<Found, LocalReply> {
    let listener = admit_request(snapshot, connection)?;
    if request.method() == Method::CONNECT {
        return Err(LocalReply::NO_ROUTE);
    }
    if cleaned.is_refused {
        return Err(LocalReply::BAD_CONNECTION_HEADER);
    }
    normalize(request, snapshot.path_normalization)?;
    let (listener, proxied) = match listener.service {
        Service::HttpProxy => {
            let named =
                NamedHost::of_request(request, authority(request).ok_or(LocalReply::NO_HOST)?)?;
            // meant for this proxy, not for the service (RFC 9110, section 11.7.2)
            request.headers_mut().remove(PROXY_AUTHORIZATION);
            let listener = snapshot.proxied(named.port);
            (listener.ok_or(LocalReply::NO_ROUTE)?, Some(named))
        }
        _ => (listener, None),
    };
    let hosts = listener
        .http(connection.security())
        .ok_or(LocalReply::NO_ROUTE)?;
    if hosts.reads_added {
        cleaned.show(request.headers_mut());
    }
    let is_sent = cleaned.trust.from_cluster;
    let authority = authority(request).ok_or(LocalReply::NO_HOST)?;
    let host = normalize_host(authority);
    let head = matched_head(request, scheme, authority, &host);
    let (virtual_host, rule) = matching(hosts, listener, connection, &head, is_sent)?;
    Ok(Found {
        virtual_host,
        rule,
        share: None,
        changes: None,
        named: proxied.map(|host| {
            Box::new(Named {
                host,
                address: None,
            })
        }),
    })
}

/// Finds the virtual host and the rule for a request with a clean head.
fn matching<'h>(
    hosts: &'h HttpHosts,
    listener: &Listener,
    connection: &Connection,
    head: &RequestHead<'_>,
    is_sent: bool,
) -> Result<(Arc<VirtualHost>, RuleIdx), LocalReply> {
    let dialed = connection.client.destination.ip();
    let named = hosts.find_at(head.host, dialed);
    let is_misdirected = is_misdirected(listener, connection, head.host);
    let own = named.or_else(|| hosts.at(dialed));
    let own = own.filter(|_| !is_misdirected);
    // Exported services have no host: also in TLS, they come before the hosts of other servers. Other clusters connect
    // by the name of the gateway and keep the host of the request, which another server may have.
    // requests of other clusters prefer exported services to a virtual host with the same host
    let exports = hosts.exports.as_ref();
    let (first, then) = if is_sent {
        (exports, own)
    } else {
        (own, exports)
    };
    let mut candidates = first.into_iter().chain(then);
    let in_table = |host: &'h Arc<VirtualHost>| Some((host, host.table.find(head)?));
    let found = candidates.find_map(in_table);
    let in_wider = || {
        let mut wider = hosts.wider(head.host).filter(|_| !is_misdirected);
        wider.find_map(in_table)
    };
    match found.or_else(in_wider) {
        Some((virtual_host, rule)) => Ok((Arc::clone(virtual_host), rule)),
        None if is_misdirected => Err(LocalReply::MISDIRECTED),
        None => Err(LocalReply::NO_ROUTE),
    }
}

/// Whether the host of a request belongs to another server of the port, with stricter requirements for clients, so that
/// no client avoids the certificate by another SNI, or over HTTP/2. HTTP/2 clients reuse a connection if one
/// certificate is for both hosts (RFC 9113, section 9.1.1), and open another one after a 421.
fn is_misdirected(listener: &Listener, connection: &Connection, host: &str) -> bool {
    let (Service::Tls(chains), Security::Tls(sni)) = (&listener.service, connection.security())
    else {
        return false;
    };
    if chains.chains.len() < 2 || sni == Some(host) {
        return false;
    }
    let (Some(used), Some(meant)) = (chains.find(sni), chains.find(Some(host))) else {
        return false;
    };
    let serves = |chain: &Chain| match &chain.handling {
        Handling::Terminate {
            then: Then::Http(hosts),
            ..
        } => hosts.find(host).is_some(),
        _ => false,
    };
    !std::ptr::eq(used, meant)
        && (meant.protects_beyond(used)
            || (chains.is_isolated || connection.protocol == DownstreamProtocol::Http2)
                && serves(meant))
}

/// The properties of a request that rules match on; its path must be normalized.
pub fn matched_head<'a, B>(
    request: &'a Request<B>,
    scheme: Scheme,
    authority: &'a str,
    host: &'a str,
) -> RequestHead<'a> {
    let claims = request.extensions().get::<Arc<Claims>>();
    RequestHead {
        is_http2: request.version() == Version::HTTP_2,
        method: request.method(),
        scheme: scheme.as_str(),
        authority,
        host,
        path: request.uri().path(),
        query: request.uri().query(),
        headers: request.headers(),
        claims: claims.map(|claims| &**claims),
    }
}

/// Authority of a request: of its target, else of its Host header (RFC 9112, section 3.2.2).
pub fn authority<B>(request: &Request<B>) -> Option<&str> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.as_str());
    }
    let host = fields::first(request.headers(), &HOST)?.to_str().ok();
    host.filter(|host| !host.is_empty())
}

/// Normalizes the path of a request, for matching and for the upstream.
///
/// # Errors
///
/// The reply for a path that is malformed or leaves the root.
pub(crate) fn normalize<B>(
    request: &mut Request<B>,
    how: PathNormalization,
) -> Result<(), LocalReply> {
    let uri = request.uri();
    // `http://a?b` has the path `/` without containing it
    let written = uri
        .path_and_query()
        .is_none_or(|path| !path.as_str().starts_with('?'));
    let normal = match how.normalize(uri.path()) {
        Ok(Cow::Borrowed(same)) if written && same.len() == uri.path().len() => return Ok(()),
        Ok(normal) => normal,
        Err(_) => return Err(LocalReply::BAD_PATH),
    };
    let text = match uri.query() {
        Some(query) => format!("{normal}?{query}"),
        None => normal.into_owned(),
    };
    let path = PathAndQuery::try_from(text).map_err(|_| LocalReply::BAD_PATH)?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| LocalReply::BAD_PATH)?;
    Ok(())
}

/// Creates the response of a redirect rule.
pub fn redirect<B>(
    redirect: &Redirect,
    connection: &Connection,
    scheme: Scheme,
    request: &Request<B>,
) -> Response<Bytes> {
    let location = redirect.location(&RedirectRequest {
        scheme: scheme.as_str(),
        authority: authority(request).unwrap_or_default(),
        path: request.uri().path(),
        query: request.uri().query(),
        listener_port: connection.listener.address.port(),
    });
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = redirect.code;
    if let Some(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
