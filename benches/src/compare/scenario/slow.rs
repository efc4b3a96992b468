//! Memory per client or upstream that stops halfway: slow readers, stalled uploads, requests without a response.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::notes::{installed, note};
use crate::compare::bench::{Bench, Shape};
use crate::compare::client::request;
use crate::compare::configure::{Proxy, Work};
use crate::compare::failure::{Failure, context};
use crate::compare::report::{Report, Section, number, ratio};
use crate::compare::say;
use crate::compare::statistics::median;
use crate::compare::tls;
use crate::compare::upstream::http::{HELD_PATH, HUGE_PATH};

/// Maximum number of rounds; memory hardly differs between rounds.
const ROUNDS_MAX: u32 = 3;

/// Number of idle connections per slow client: a slow client takes hundreds of KiB of kernel buffers, so there are
/// fewer.
const SHARE_OF_CONNECTIONS: u32 = 10;

/// Receive buffer of a client that does not read, in bytes; it is small, so that most of the response stays in the
/// proxy.
const RECEIVE_BUFFER: usize = 4096;

/// Size of an upload, in bytes; more than any proxy of the table buffers by default.
const UPLOAD_BYTES: usize = 512 * 1024;

/// Time without progress after which an upload counts as stalled.
const STALL: Duration = Duration::from_millis(50);

/// Behavior of the clients of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behavior {
    /// Requests 16 MiB, which is more than kernel buffers hold, and reads nothing.
    SlowReader,
    /// Sends a body to an upstream that reads nothing.
    StalledUpload,
    /// Waits for a response that is never sent.
    Unanswered,
}

impl Behavior {
    const ALL: [Self; 3] = [Self::SlowReader, Self::StalledUpload, Self::Unanswered];

    fn name(self) -> &'static str {
        match self {
            Self::SlowReader => "slow reader",
            Self::StalledUpload => "stalled upload",
            Self::Unanswered => "unanswered request",
        }
    }

    /// Connects to a port of 127.0.0.1 and sends the request, up to the point where the client stops.
    fn begin(self, port: u16) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        if self == Self::SlowReader {
            socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        }
        socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
        let mut stream = TcpStream::from(socket);
        match self {
            Self::SlowReader => stream.write_all(&request(HUGE_PATH))?,
            Self::Unanswered => stream.write_all(&request(HELD_PATH))?,
            Self::StalledUpload => {
                let head = format!(
                    "POST {HELD_PATH} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
                    tls::HOST,
                    2 * UPLOAD_BYTES
                );
                stream.write_all(head.as_bytes())?;
                offer(&mut stream)?;
            }
        }
        Ok(stream)
    }
}

/// Sends an upload until it stalls.
fn offer(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(STALL))?;
    let body = [b'x'; 16 * 1024];
    let mut sent = 0;
    while sent < UPLOAD_BYTES {
        match stream.write(&body) {
            Ok(written) => sent += written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Memory per client, in KiB.
type Each = f64;

/// Opens the connections in every proxy in turn, and adds the table.
pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let proxies: Vec<Proxy> = installed(bench, Work::Http).collect();
    let mut rows = Vec::new();
    for behavior in Behavior::ALL {
        let mut results: Vec<Vec<Each>> = proxies.iter().map(|_| Vec::new()).collect();
        for round in 0..bench.arguments.rounds.min(ROUNDS_MAX) {
            for (proxy, results) in proxies.iter().zip(&mut results) {
                let what = format!("{}, {}", behavior.name(), proxy.name());
                let each = note(report, &what, one_round(bench, *proxy, behavior))?;
                let Some(each) = each.flatten() else { continue };
                say(&format!("  round {} {what}: {each:.1} KiB each", round + 1));
                results.push(each);
            }
        }
        let medians = results.into_iter().map(median);
        rows.push((behavior, proxies.iter().copied().zip(medians).collect()));
    }
    report.sections.push(section(clients(bench), &rows));
    Ok(())
}

/// Returns the number of clients.
fn clients(bench: &Bench) -> u32 {
    (bench.arguments.connections / SHARE_OF_CONNECTIONS).max(1)
}

fn one_round(bench: &Bench, proxy: Proxy, behavior: Behavior) -> Result<Option<Each>, Failure> {
    let wanted = clients(bench);
    let Some(mut running) = bench.start(proxy, &Shape::catch_all(wanted + 64))? else {
        return Ok(None);
    };
    let idle = bench.settled_kib(&mut running)?;
    let mut open = Vec::new();
    for index in 0..wanted {
        bench.launcher.cancel().check()?;
        let failed = format!("{} {} of {wanted}", behavior.name(), index + 1);
        open.push(
            behavior
                .begin(running.plan.listen)
                .map_err(context(failed))?,
        );
    }
    let full = bench.settled_kib(&mut running)?;
    for stream in &open {
        expect_open(stream, behavior)?;
    }
    Ok(Some(full.saturating_sub(idle) as f64 / f64::from(wanted)))
}

/// Checks that the proxy has not closed a connection, whose memory would then be missing.
fn expect_open(stream: &TcpStream, behavior: Behavior) -> Result<(), Failure> {
    stream.set_nonblocking(true).map_err(context("a client"))?;
    match stream.peek(&mut [0; 1]) {
        Ok(1) if behavior == Behavior::SlowReader => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Ok(0) => Err(Failure::new("the proxy closed a connection")),
        Ok(_) => Err(Failure::new(
            "the proxy answered, though the upstream did not",
        )),
        Err(error) => Err(Failure::new(format!("a connection broke: {error}"))),
    }
}

type Row = (Behavior, Vec<(Proxy, Option<Each>)>);

fn section(clients: u32, rows: &[Row]) -> Section {
    let rows = rows.iter().flat_map(|(behavior, sizes)| {
        let of = |wanted: Proxy| {
            let size = sizes.iter().find(|(proxy, _)| *proxy == wanted);
            size.and_then(|(_, each)| *each)
        };
        sizes.iter().filter_map(move |(proxy, each)| {
            let each = (*each)?;
            Some(vec![
                behavior.name().to_owned(),
                proxy.name().to_owned(),
                number(each),
                ratio(Some(each), of(Proxy::Haproxy)),
                ratio(Some(each), of(Proxy::Envoy)),
            ])
        })
    });
    let columns = ["client", "proxy", "KiB each", "to HAProxy", "to Envoy"];
    Section {
        title: "Memory: clients and upstreams that stop halfway".to_owned(),
        text: format!(
            "Resident memory over that of the idle process, divided by {clients} clients: slow readers ask for 16 MiB \
             and read nothing, stalled uploads send a body to an upstream that reads nothing, unanswered requests wait \
             for an upstream that does not answer. Buffers in the kernel are not counted."
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_compares_each_kind_of_client_with_the_other_proxies() {
        let sizes = vec![
            (Proxy::Strait, Some(90.0)),
            (Proxy::Haproxy, Some(45.0)),
            (Proxy::Envoy, None),
        ];
        let section = section(500, &[(Behavior::SlowReader, sizes)]);
        assert_eq!(
            section.rows[0],
            ["slow reader", "Strait", "90.0", "2.00x", "-"]
        );
        assert_eq!(
            section.rows.len(),
            2,
            "a proxy that was not measured has no row"
        );
    }
}
