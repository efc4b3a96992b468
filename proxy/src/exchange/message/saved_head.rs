//! Saved head of a request, in packed form, for sending the request again.
//!
//! A map of headers is expensive to copy and to drop, and copies are almost never needed. So the headers are packed
//! into a buffer that the worker reuses, and unpacked only when a request is sent again.

use std::rc::Rc;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use crate::upstream::Buffers;
use crate::upstream::buffers::Buffer;

/// The saved head of a request.
#[derive(Debug)]
pub struct SavedHead {
    method: Method,
    uri: Uri,
    version: Version,
    /// For each header line: length of the name, then length of the value with the highest bit for "sensitive", four
    /// bytes each; then the name and the value.
    packed: Buffer,
}

const SENSITIVE: u32 = 1 << 31;

impl SavedHead {
    /// Saves the head of a request.
    pub fn of(buffers: &Rc<Buffers>, parts: &Parts) -> Self {
        let mut packed = buffers.take();
        for (name, value) in &parts.headers {
            pack(&mut packed, name, value);
        }
        Self {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            version: parts.version,
            packed,
        }
    }

    /// Restores the head.
    pub fn parts(&self) -> Parts {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.method.clone_from(&self.method);
        parts.uri.clone_from(&self.uri);
        parts.version = self.version;
        unpack(&self.packed, &mut parts.headers);
        parts
    }
}

fn pack(packed: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    let name = name.as_str().as_bytes();
    let sensitive = if value.is_sensitive() { SENSITIVE } else { 0 };
    // a head is limited to far less than 2 GiB
    let lengths = [name.len() as u32, value.len() as u32 | sensitive];
    packed.reserve(8 + name.len() + value.len());
    packed.extend_from_slice(&lengths[0].to_ne_bytes());
    packed.extend_from_slice(&lengths[1].to_ne_bytes());
    packed.extend_from_slice(name);
    packed.extend_from_slice(value.as_bytes());
}

fn unpack(mut packed: &[u8], headers: &mut HeaderMap) {
    while let Some((name, value, rest)) = line(packed) {
        headers.append(name, value);
        packed = rest;
    }
}

fn line(packed: &[u8]) -> Option<(HeaderName, HeaderValue, &[u8])> {
    let (name_len, rest) = packed.split_first_chunk()?;
    let (value_len, rest) = rest.split_first_chunk()?;
    let value_len = u32::from_ne_bytes(*value_len);
    let (name, rest) = rest.split_at_checked(u32::from_ne_bytes(*name_len) as usize)?;
    let (value, rest) = rest.split_at_checked((value_len & !SENSITIVE) as usize)?;
    let name = HeaderName::from_bytes(name).ok()?;
    let mut value = HeaderValue::from_bytes(value).ok()?;
    value.set_sensitive(value_len & SENSITIVE != 0);
    Some((name, value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_head_round_trips() {
        let buffers = Rc::new(Buffers::default());
        for round in 0..3 {
            let mut secret = HeaderValue::from_static("Basic abc");
            secret.set_sensitive(true);
            let before = Request::builder()
                .method("DELETE")
                .uri("http://a.example/b?c=d")
                .version(Version::HTTP_2)
                .header("host", "a.example")
                .header("x-twice", "1")
                .header("x-twice", "2")
                .header("x-empty", "")
                .header("x-latin", HeaderValue::from_bytes(b"\xe9t\xe9").unwrap())
                .header("authorization", secret)
                .header("x-round", round)
                .body(())
                .unwrap()
                .into_parts()
                .0;
            let after = SavedHead::of(&buffers, &before).parts();
            assert_eq!(after.method, before.method);
            assert_eq!(after.uri, before.uri);
            assert_eq!(after.version, before.version);
            assert_eq!(after.headers, before.headers);
            assert!(after.headers["authorization"].is_sensitive());
            assert!(!after.headers["host"].is_sensitive());
        }
    }
}
