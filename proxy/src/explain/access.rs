//! Decision of policies alone, whatever listener accepts the request.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::Method;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::answer::AuthorizationChoice;
use super::{Question, authorization};
use crate::exchange::authorize;
use crate::exchange::downstream::connection::{Connection, DownstreamProtocol, Handshake};
use crate::exchange::downstream::origin::Origin;
use crate::exchange::message::clean;
use crate::exchange::select::find_route;
use crate::exchange::settings::ExchangeSettings;
use crate::snapshot::{ListenerKey, Snapshot};
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
) -> Result<Option<AuthorizationChoice>, String> {
    let Some(authorization) = &snapshot.authorization else {
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
    let host = find_route::authority(&request)
        .unwrap_or_default()
        .to_owned();
    let host = normalize_host(&host);
    explain(authorize::of_request(&request, &connection, &origin, &host))
}
