//! DNS server with a zone that a test defines.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// Data of a DNS record.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Address(IpAddr),
    Alias(&'static str),
}

/// Returns an address record.
pub(crate) fn at(ip: &str) -> Data {
    Data::Address(ip.parse().unwrap())
}

#[derive(Default)]
struct Zone {
    names: BTreeMap<String, Vec<(u32, Data)>>,
    /// Response code for all queries, if set.
    failure: Option<u8>,
    /// Response code by query type.
    failures: BTreeMap<u16, u8>,
    asked: usize,
}

/// Running server, which runs until the process ends.
pub(crate) struct Dns {
    pub address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
}

pub(crate) const SERVFAIL: u8 = 2;
pub(crate) const NXDOMAIN: u8 = 3;

impl Dns {
    pub(crate) fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let zone = Arc::<Mutex<Zone>>::default();
        let served = Arc::clone(&zone);
        std::thread::spawn(move || {
            let mut packet = [0; 4096];
            while let Ok((length, from)) = socket.recv_from(&mut packet) {
                let answer = served.lock().unwrap().answer(&packet[..length]);
                let _ = socket.send_to(&answer, from);
            }
        });
        Self { address, zone }
    }

    /// Sets the records of a name, each with its TTL in seconds.
    pub(crate) fn set(&self, name: &str, records: &[(u32, Data)]) {
        let mut zone = self.zone.lock().unwrap();
        zone.names.insert(name.to_owned(), records.to_vec());
    }

    /// Answers all queries with an error from now on; `None` ends that.
    pub(crate) fn fail(&self, failure: Option<u8>) {
        self.zone.lock().unwrap().failure = failure;
    }

    /// Answers all queries of one type (1 for A, 28 for AAAA) with an error from now on; `None` ends that.
    pub(crate) fn fail_for(&self, kind: u16, failure: Option<u8>) {
        let failures = &mut self.zone.lock().unwrap().failures;
        match failure {
            Some(code) => failures.insert(kind, code),
            None => failures.remove(&kind),
        };
    }

    /// Returns the number of queries so far.
    pub(crate) fn asked(&self) -> usize {
        self.zone.lock().unwrap().asked
    }
}

impl Zone {
    /// Returns the response to a query with one question (RFC 1035, section 4).
    fn answer(&mut self, query: &[u8]) -> Vec<u8> {
        self.asked += 1;
        let mut labels = Vec::new();
        let mut end = 12;
        while query[end] != 0 {
            let length = usize::from(query[end]);
            labels.push(String::from_utf8(query[end + 1..=end + length].to_vec()).unwrap());
            end += 1 + length;
        }
        let question = &query[12..end + 5];
        let kind = u16::from_be_bytes([query[end + 1], query[end + 2]]);
        let mut name = labels.join(".");
        let failure = self.failure.or(self.failures.get(&kind).copied());
        let code = match failure {
            Some(failure) => failure,
            None if self.names.contains_key(&name) => 0,
            None => NXDOMAIN,
        };
        let mut records = Vec::new();
        if code == 0 {
            while let Some(found) = self.names.get(&name) {
                let mut next = None;
                for (ttl, data) in found {
                    match data {
                        Data::Address(IpAddr::V4(ip)) if kind == 1 => {
                            records.push(record(&name, 1, *ttl, &ip.octets()));
                        }
                        Data::Address(IpAddr::V6(ip)) if kind == 28 => {
                            records.push(record(&name, 28, *ttl, &ip.octets()));
                        }
                        Data::Address(_) => {}
                        Data::Alias(target) => {
                            records.push(record(&name, 5, *ttl, &encoded(target)));
                            next = Some((*target).to_owned());
                        }
                    }
                }
                match next {
                    Some(next) => name = next,
                    None => break,
                }
            }
        }
        let mut out = query[..2].to_vec();
        out.extend_from_slice(&[0x81, 0x80 | code, 0, 1]);
        out.extend_from_slice(&(records.len() as u16).to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(question);
        out.extend(records.concat());
        out
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for label in name.split('.') {
        out.push(label.len() as u8);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
    out
}

fn record(name: &str, kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut out = encoded(name);
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(data);
    out
}
