//! Request to explain, from user input: method, URL, headers, and optionally a listener.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::HOST;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use traffic::authz::{Peer, Subject};
use traffic::claims::Claims;
use traffic::filter::timeout;
use traffic::route::normalize_host;

/// Request to explain.
#[derive(Clone, Debug)]
pub struct Question {
    method: Method,
    target: PathAndQuery,
    headers: HeaderMap,
    /// Port of the URL; `None` for a path alone.
    pub port: Option<u16>,
    /// Whether the URL uses TLS.
    pub tls: bool,
    /// Server name (SNI) of a TLS client: the URL's host, unless it is an IP address.
    pub server_name: Option<String>,
    /// IP address of the URL, if its host is one.
    pub address: Option<IpAddr>,
    /// Address of the client, if given.
    pub client: Option<IpAddr>,
    /// SPIFFE URI of the client, as its certificate would prove it.
    identity: Option<String>,
    /// Claims of the request's token, as if it were verified.
    claims: Option<Arc<Claims>>,
    /// Requested listener.
    pub listener: Option<ListenerWish>,
    /// Whether the rules that were tried before the one that matches are of no interest, nor hints.
    pub(super) is_of_outcome: bool,
}

/// Listener by address and port, or by port only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerWish {
    /// Address and port.
    Address(SocketAddr),
    /// Port, on any address.
    Port(u16),
}

impl fmt::Display for ListenerWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Port(port) => write!(f, "port {port}"),
        }
    }
}

impl Question {
    /// Parses a method and a URL: `http://host:port/path?query`, the same without its scheme, or a path alone. For
    /// connections without requests: `CONNECT` and `tcp://host:port`, or `tls://name:port`.
    ///
    /// # Errors
    ///
    /// Says what is wrong; the text is for users.
    pub fn parse(method: &str, url: &str) -> Result<Self, String> {
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| format!("{method:?} is not a method, such as GET or POST"))?;
        let url = url.split_once('#').map_or(url, |(before, _)| before);
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, url),
        };
        let tls = match scheme.as_deref() {
            None | Some("http") => false,
            Some("tcp") => false,
            Some("https" | "tls") => true,
            Some(other) => {
                let expected = "expected http://, https://, tcp:// or tls://";
                return Err(format!("{expected}, found {other}://"));
            }
        };
        let (authority, target) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None if rest == "*" => ("", "*"),
            None => (rest, ""),
        };
        if authority.is_empty() && scheme.is_some() {
            return Err("the URL names no host".to_owned());
        }
        let mut question = Self {
            method,
            target: path_and_query(target)?,
            headers: HeaderMap::new(),
            port: None,
            tls,
            server_name: None,
            address: None,
            client: None,
            identity: None,
            claims: None,
            listener: None,
            is_of_outcome: false,
        };
        if !authority.is_empty() {
            question.assign_all_traffic(authority)?;
        }
        Ok(question)
    }

    /// Asks for the outcome and the rule that matches alone, which takes much less time.
    pub fn outcome_only(mut self) -> Self {
        self.is_of_outcome = true;
        self
    }

    /// Sets the authority of the URL; as clients do, without the default port of the scheme.
    fn assign_all_traffic(&mut self, text: &str) -> Result<(), String> {
        if text.contains('@') {
            return Err("a user name in the URL is not sent; leave it out".to_owned());
        }
        let authority: Authority = text
            .parse()
            .ok()
            .filter(|authority: &Authority| !authority.host().is_empty())
            .ok_or_else(|| format!("{text:?} is not a host with an optional port"))?;
        let own_port = if self.tls { 443 } else { 80 };
        let port = authority.port_u16();
        let sent = match port {
            Some(port) if port != own_port => authority.as_str(),
            _ => authority.host(),
        };
        self.port = Some(port.unwrap_or(own_port));
        let name = normalize_host(authority.host());
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        self.address = bare.parse().ok().map(|ip: IpAddr| ip.to_canonical());
        let is_name = self.tls && self.address.is_none();
        self.server_name = is_name.then(|| name.into_owned());
        let value = HeaderValue::from_str(sent).map_err(|_| format!("{text:?} is not a host"))?;
        self.headers.insert(HOST, value);
        Ok(())
    }

    /// Adds a header, `Name: value`. `Host` replaces the URL's host.
    ///
    /// # Errors
    ///
    /// Says what is wrong; the text is for users.
    pub fn header(&mut self, line: &str) -> Result<(), String> {
        let (name, value) = line
            .split_once(':')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("{line:?}: expected 'Name: value'"))?;
        let name = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| format!("{name:?} is not a header name"))?;
        let value = HeaderValue::from_str(value.trim())
            .map_err(|_| format!("the value of {name} has control characters"))?;
        if name == HOST {
            self.headers.insert(name, value);
        } else {
            self.headers.append(name, value);
        }
        Ok(())
    }

    /// Sets the listener, by `IP:PORT` or by port.
    ///
    /// # Errors
    ///
    /// Fails when `text` is neither.
    pub fn at_listener(&mut self, text: &str) -> Result<(), String> {
        let wish = match (text.parse(), text.parse()) {
            (Ok(port), _) => ListenerWish::Port(port),
            (_, Ok(address)) => ListenerWish::Address(address),
            _ => return Err(format!("{text:?}: expected a port or IP:PORT")),
        };
        self.listener = Some(wish);
        Ok(())
    }

    /// Sets the IP address of the client.
    ///
    /// # Errors
    ///
    /// Fails when `text` is not an IP address.
    pub fn by_client(&mut self, text: &str) -> Result<(), String> {
        let client = text.parse();
        self.client = Some(client.map_err(|_| format!("{text:?}: expected an IP address"))?);
        Ok(())
    }

    /// Sets the identity of the client: `DOMAIN/ns/NAMESPACE/sa/ACCOUNT`, or the same as a SPIFFE URI.
    ///
    /// # Errors
    ///
    /// Fails when `text` has another form.
    pub fn with_identity(&mut self, text: &str) -> Result<(), String> {
        let uri = match text.starts_with("spiffe://") {
            true => text.to_owned(),
            false => format!("spiffe://{text}"),
        };
        if Peer::parse(&uri).is_none() {
            return Err(format!(
                "{text:?}: expected TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT"
            ));
        }
        self.identity = Some(uri);
        Ok(())
    }

    /// Sets the claims of the request's token: a JSON object.
    ///
    /// # Errors
    ///
    /// Fails when `text` is something else.
    pub fn with_claims(&mut self, text: &str) -> Result<(), String> {
        let claims = Claims::parse(text.as_bytes());
        let claims =
            claims.map_err(|error| format!("{text:?}: expected a JSON object: {error}"))?;
        self.claims = Some(Arc::new(claims.with_words(&[])));
        Ok(())
    }

    /// Adds the identity of the client and the claims to what policies compare.
    pub(super) fn identified<'a>(&'a self, subject: Subject<'a>) -> Subject<'a> {
        Subject {
            peer: self.identity.as_deref().and_then(Peer::parse),
            claims: self.claims.as_deref().filter(|_| subject.request.is_some()),
            ..subject
        }
    }

    /// Makes the request as it reaches the proxy, with the address of its client as an extension.
    pub fn request(&self) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = Uri::from(self.target.clone());
        *request.headers_mut() = self.headers.clone();
        if timeout::is_grpc(&self.headers) {
            *request.version_mut() = Version::HTTP_2;
        }
        if let Some(client) = self.client {
            request.extensions_mut().insert(client);
        }
        if let Some(claims) = &self.claims {
            request.extensions_mut().insert(Arc::clone(claims));
        }
        request
    }
}

fn path_and_query(target: &str) -> Result<PathAndQuery, String> {
    let target = match target {
        "" => "/".to_owned(),
        query if query.starts_with('?') => format!("/{query}"),
        target => target.to_owned(),
    };
    if !target.is_ascii() || target.contains([' ', '\t']) {
        return Err("the path has characters that must be percent-encoded".to_owned());
    }
    PathAndQuery::try_from(target).map_err(|error| format!("the path is malformed: {error}"))
}

#[cfg(test)]
mod tests;
