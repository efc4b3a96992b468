//! URL under test.

use std::net::{SocketAddr, ToSocketAddrs as _};

use http::Uri;

use super::error::Error;

/// Default URL: a proxy next to a workload.
pub const DEFAULT_URL: &str = "http://127.0.0.1:15001/";

/// Parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// Host name or IP address.
    pub host: String,
    /// Port; by default that of the scheme.
    pub port: u16,
    /// Authority as sent in requests.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    /// When it is not an absolute `http` or `https` URL, or contains credentials.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let wrong = |what: &str| {
            Error::Usage(format!(
                "{url:?}: {what}; write for example http://127.0.0.1:8080/path"
            ))
        };
        let uri: Uri = url.parse().map_err(|_| wrong("not a URL"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("the scheme must be http or https")),
        };
        let authority = uri
            .authority()
            .ok_or_else(|| wrong("the host is missing"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("credentials in a URL are not sent"));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            tls,
            host,
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            authority: authority.to_string(),
            path: path.to_owned(),
        })
    }

    /// Resolves the host, and returns its first address.
    ///
    /// # Errors
    /// When the name has no address.
    pub fn resolve(&self) -> Result<SocketAddr, Error> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let mut found = found.map_err(|error| {
            Error::Start(format!(
                "the host {:?} cannot be resolved: {error}",
                self.host
            ))
        })?;
        let none = || Error::Start(format!("the host {:?} has no address", self.host));
        found.next().ok_or_else(none)
    }

    /// Formats the URL as it was given.
    pub fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_has_a_scheme_a_host_and_maybe_more() {
        let address = Address::parse("https://shop.example/cart?id=1").unwrap();
        assert!(address.tls);
        assert_eq!((&*address.host, address.port), ("shop.example", 443));
        assert_eq!(address.path, "/cart?id=1");
        assert_eq!(address.url(), "https://shop.example/cart?id=1");
        let address = Address::parse("http://[::1]:8080").unwrap();
        assert_eq!(
            (&*address.host, address.port, &*address.path),
            ("::1", 8080, "/")
        );
        assert_eq!(address.authority, "[::1]:8080");
        assert_eq!(address.resolve().unwrap().to_string(), "[::1]:8080");
    }

    #[test]
    fn url_that_cannot_be_measured_says_why() {
        let cases = [
            ("127.0.0.1:8080", "scheme"),
            ("ftp://a/", "scheme"),
            ("/path", "scheme"),
            ("http://user:secret@a/", "credentials"),
            ("http://a b/", "not a URL"),
        ];
        for (url, why) in cases {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains("write for example"),
                "{url}: {error}"
            );
        }
    }

    #[test]
    fn default_is_on_this_machine() {
        let address = Address::parse(DEFAULT_URL).unwrap();
        assert!(address.resolve().unwrap().ip().is_loopback());
    }
}
