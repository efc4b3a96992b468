//! Prepared requests of a run.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HOST, TE};
use http::{HeaderValue, Method, Request, Uri, Version};

use super::address::Address;
use super::error::Error;
use super::headers_file::Block;
use super::protocol::Protocol;

/// Parts that all requests share.
#[derive(Clone, Debug)]
pub struct SharedProperties {
    /// Method; if `None`, GET, or POST with a body.
    pub method: Option<Method>,
    /// Headers of every request.
    pub headers: Block,
    /// Body, or the message of a gRPC call.
    pub body: Bytes,
}

/// Prepared requests, which are sent in turn.
#[derive(Clone, Debug)]
pub struct Requests {
    heads: Vec<Request<()>>,
    body: Bytes,
}

impl Requests {
    /// Prepares one request per block; a single one if there are no blocks.
    ///
    /// # Errors
    /// When a block does not fit the protocol.
    pub fn new(
        protocol: Protocol,
        address: &Address,
        common: &SharedProperties,
        blocks: &[Block],
    ) -> Result<Self, Error> {
        let none = [Block::default()];
        let blocks = if blocks.is_empty() { &none } else { blocks };
        let heads = blocks
            .iter()
            .map(|block| head(protocol, address, common, block));
        let body = match protocol {
            Protocol::Grpc => framed(&common.body),
            Protocol::Http1 | Protocol::Http2 => common.body.clone(),
        };
        Ok(Self {
            heads: heads.collect::<Result<_, _>>()?,
            body,
        })
    }

    /// Returns the request with this number, without its body.
    pub fn head(&self, number: u64) -> Request<()> {
        let count = self.heads.len() as u64;
        self.heads[(number % count) as usize].clone()
    }

    /// Returns the body of every request.
    pub fn body(&self) -> Bytes {
        self.body.clone()
    }
}

fn head(
    protocol: Protocol,
    address: &Address,
    common: &SharedProperties,
    block: &Block,
) -> Result<Request<()>, Error> {
    let host = block.host.as_ref().or(common.headers.host.as_ref());
    let host = host.unwrap_or(&address.authority);
    let path = block.path.as_ref().or(common.headers.path.as_ref());
    let path = path.unwrap_or(&address.path);
    let method = block.method.as_ref().or(common.method.as_ref());
    let method = method.cloned().unwrap_or(match protocol {
        Protocol::Grpc => Method::POST,
        _ if common.body.is_empty() => Method::GET,
        _ => Method::POST,
    });
    check(protocol, path, &method)?;
    let mut request = Request::new(());
    *request.method_mut() = method;
    let headers = request.headers_mut();
    for (name, value) in common.headers.headers.iter().chain(&block.headers) {
        if protocol.is_http2() && name == http::header::CONNECTION {
            return Err(Error::Usage(
                "`connection` is a header of HTTP/1.1 only".to_owned(),
            ));
        }
        headers.append(name, value.clone());
    }
    if protocol == Protocol::Grpc {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    let uri = if protocol.is_http2() {
        let scheme = if address.tls { "https" } else { "http" };
        Uri::builder()
            .scheme(scheme)
            .authority(host.as_str())
            .path_and_query(path.as_str())
            .build()
    } else {
        let value = HeaderValue::from_str(host);
        headers.insert(
            HOST,
            value.map_err(|error| Error::Usage(format!("{host:?}: {error}")))?,
        );
        Uri::builder().path_and_query(path.as_str()).build()
    };
    *request.uri_mut() = uri.map_err(|error| Error::Usage(format!("{host}{path}: {error}")))?;
    *request.version_mut() = if protocol.is_http2() {
        Version::HTTP_2
    } else {
        Version::HTTP_11
    };
    Ok(request)
}

fn check(protocol: Protocol, path: &str, method: &Method) -> Result<(), Error> {
    if method == Method::CONNECT {
        return Err(Error::Usage(
            "tunnels of CONNECT cannot be measured".to_owned(),
        ));
    }
    if protocol == Protocol::Grpc && path.trim_matches('/').split('/').count() < 2 {
        return Err(Error::Usage(format!(
            "a call of gRPC needs a method, and the path is {path}; \
             write for example http://127.0.0.1:8080/package.Service/Method"
        )));
    }
    Ok(())
}

/// Returns a gRPC message with its prefix: a compression flag of 0, and the length.
fn framed(message: &Bytes) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    framed.put_u32(length);
    framed.put_slice(message);
    framed.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(body: &'static str) -> SharedProperties {
        let body = Bytes::from_static(body.as_bytes());
        SharedProperties {
            method: None,
            headers: Block::default(),
            body,
        }
    }

    fn requests(
        protocol: Protocol,
        url: &str,
        common: &SharedProperties,
        lines: &[&str],
    ) -> Requests {
        let block = |line: &&str| {
            let mut block = Block::default();
            block.add(line).unwrap();
            block
        };
        let blocks: Vec<_> = lines.iter().map(block).collect();
        Requests::new(protocol, &Address::parse(url).unwrap(), common, &blocks).unwrap()
    }

    #[test]
    fn blocks_take_turns_and_replace_what_is_common() {
        let mut common = common("");
        common.headers.add("host: all.example").unwrap();
        let lines = ["host: a.example", ":path: /b", ":method: DELETE"];
        let requests = requests(Protocol::Http1, "http://127.0.0.1:1/x", &common, &lines);
        let of = |number| {
            let head = requests.head(number);
            let host = head.headers()["host"].to_str().unwrap().to_owned();
            format!("{} {} {host}", head.method(), head.uri())
        };
        assert_eq!(of(0), "GET /x a.example");
        assert_eq!(of(1), "GET /b all.example");
        assert_eq!(of(2), "DELETE /x all.example");
        assert_eq!(of(3), of(0));
    }

    #[test]
    fn http2_has_the_host_in_the_uri() {
        let requests = requests(
            Protocol::Http2,
            "https://127.0.0.1/",
            &common("x"),
            &["host: a.example"],
        );
        let head = requests.head(0);
        assert_eq!(head.uri(), "https://a.example/");
        assert_eq!(head.method(), Method::POST);
        assert!(head.headers().is_empty());
    }

    #[test]
    fn call_of_grpc_has_a_framed_message() {
        let requests = requests(Protocol::Grpc, "http://a/p.S/M", &common("abc"), &[]);
        assert_eq!(requests.body(), &b"\0\0\0\0\x03abc"[..]);
        assert_eq!(requests.head(9).headers()["te"], "trailers");
    }

    #[test]
    fn what_a_protocol_does_not_have_is_refused() {
        let address = Address::parse("http://a/").unwrap();
        let mut block = Block::default();
        block.add("connection: close").unwrap();
        let refused = |protocol, block| {
            Requests::new(protocol, &address, &common(""), &[block])
                .unwrap_err()
                .to_string()
        };
        assert!(refused(Protocol::Http2, block).contains("HTTP/1.1 only"));
        assert!(refused(Protocol::Grpc, Block::default()).contains("needs a method"));
        let connect = Block {
            method: Some(Method::CONNECT),
            ..Block::default()
        };
        assert!(refused(Protocol::Http1, connect).contains("CONNECT"));
    }
}
