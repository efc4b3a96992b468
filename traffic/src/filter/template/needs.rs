//! Headers that formats and expressions read, so that a request keeps these alone until its end.

use http::{HeaderMap, HeaderName};

/// Headers that formats and expressions read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Whether all request headers are read.
    pub all_request_headers: bool,
    /// Whether all response headers are read.
    pub all_response_headers: bool,
    request: Vec<HeaderName>,
    response: Vec<HeaderName>,
    trailers: Vec<HeaderName>,
}

impl Needs {
    /// Adds a request header.
    pub fn request(&mut self, name: HeaderName) {
        insert(&mut self.request, name);
    }

    /// Adds a response header.
    pub fn response(&mut self, name: HeaderName) {
        insert(&mut self.response, name);
    }

    /// Adds a trailer of the response.
    pub fn trailer(&mut self, name: HeaderName) {
        insert(&mut self.trailers, name);
    }

    /// Iterates over the names of single headers and trailers that are read.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        let of_request = self.request.iter();
        of_request.chain(&self.response).chain(&self.trailers)
    }

    /// Whether anything of a response is read.
    pub fn reads_response(&self) -> bool {
        self.all_response_headers || !self.response.is_empty()
    }

    /// The request headers to keep.
    pub fn of_request(&self, headers: &HeaderMap) -> HeaderMap {
        kept(headers, &self.request, self.all_request_headers)
    }

    /// The response headers to keep.
    pub fn of_response(&self, headers: &HeaderMap) -> HeaderMap {
        kept(headers, &self.response, self.all_response_headers)
    }

    /// The trailers to keep.
    pub fn of_trailers(&self, trailers: &HeaderMap) -> HeaderMap {
        kept(trailers, &self.trailers, false)
    }
}

fn insert(names: &mut Vec<HeaderName>, name: HeaderName) {
    if !names.contains(&name) {
        names.push(name);
    }
}

/// Returns the lines with these names. Values are shared, not copied.
fn kept(headers: &HeaderMap, names: &[HeaderName], all: bool) -> HeaderMap {
    if all {
        return headers.clone();
    }
    let mut kept = HeaderMap::new();
    for name in names {
        if let Some(value) = headers.get(name) {
            kept.insert(name.clone(), value.clone());
        }
    }
    kept
}
