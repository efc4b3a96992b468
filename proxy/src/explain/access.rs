//! Decision of policies alone, whatever listener accepts the request. One of a Gateway with attached policies has others.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::Method;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::answer::AuthorizationChoice;
use super::walk::choose_listener;
use super::{Question, authorization};
use crate::exchange::authorize;
use crate::exchange::downstream::connection::{Connection, DownstreamProtocol, Handshake};
use crate::exchange::downstream::origin::Origin;
use crate::exchange::message::clean;
use crate::exchange::select::find_route;
use crate::exchange::settings::ExchangeSettings;
use crate::identity::GatewaySettings;
use crate::snapshot::{ListenerKey, ListenerPolicies, Snapshot};
use traffic::authz::Subject;
use traffic::route::normalize_host;

/// Explains the decision of policies on a request to the port of its URL, or on a connection of another protocol; `None`
/// if no policy applies.
///
/// # Errors
///
/// Says why the request is refused before policies judge it.
pub fn judge(
    question: &Question,
    snapshot: &Snapshot,
    settings: &ExchangeSettings,
    gateways: &GatewaySettings,
) -> Result<Option<AuthorizationChoice>, String> {
    let Some(authorization) = &policies(question, snapshot, gateways).authorization else {
        return Ok(None);
    };
    let explain = |subject: Subject<'_>| {
        let subject = question.identified(subject);
        let choice = authorization::explain(authorization, snapshot, &subject);
        Ok(Some(choice))
    };
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let client = SocketAddr::new(question.client.unwrap_or(loopback), 0);
    let dialed = question.address.unwrap_or(loopback);
    let dialed = SocketAddr::new(dialed, question.port.unwrap_or(80));
    let key = ListenerKey::from(dialed);
    let mut connection = Connection::new(key, client, dialed, DownstreamProtocol::Http1);
    if question.tls {
        connection = connection.with_tls(Handshake {
            server_name: question.server_name.as_deref().map(Into::into),
            ..Handshake::default()
        });
    }
    let mut request = question.request();
    if request.method() == Method::CONNECT {
        let (peer, name) = (connection.peer(), connection.server_name());
        return explain(authorize::of_connection(connection.client, peer, name));
    }
    let origin = Origin::of(
        &connection,
        settings.trusted_hops,
        settings.is_sidecar,
        request.headers(),
    );
    let rng = &mut SmallRng::seed_from_u64(0);
    let mut cleaned = clean::clean(&mut request, &connection, &origin, settings, rng);
    let how = snapshot.path_normalization;
    find_route::normalize(&mut request, how).map_err(|refusal| refusal.body.to_string())?;
    cleaned.show(request.headers_mut());
    let authority = find_route::authority(&request).unwrap_or_default();
    let host = normalize_host(authority);
    let subject = authorize::of_request(&request, &connection, &origin, authority, &host);
    explain(subject)
}

/// Returns the policies of the listener that takes the request, if it has others than the proxy.
fn policies<'s>(
    question: &Question,
    snapshot: &'s Snapshot,
    gateways: &GatewaySettings,
) -> &'s ListenerPolicies {
    let request = question.request();
    let host = normalize_host(find_route::authority(&request).unwrap_or_default());
    let chosen = choose_listener(question, &host, snapshot, gateways);
    let own = chosen.and_then(|(listener, _)| {
        let is_of_port = question
            .port
            .is_none_or(|port| gateways.opened(port) == listener.key.address.port());
        let is_meant = question.listener.is_some() || is_of_port;
        listener.policies.as_deref().filter(|_| is_meant)
    });
    own.unwrap_or(&snapshot.policies)
}
