use std::io::{Read, Write};
use std::os::unix::net::UnixStream as Blocking;
use std::time::Duration;

use tokio::net::UnixStream;

use super::super::Counts;
use super::*;
use crate::telemetry::{BuildInfo, Telemetry, WorkerId};

const PING: u8 = 6;

/// Reads a frame: its type and flags.
fn frame(peer: &mut Blocking) -> Option<(u8, u8)> {
    let mut head = [0; 9];
    peer.read_exact(&mut head).ok()?;
    let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; len as usize];
    peer.read_exact(&mut payload).ok()?;
    Some((head[3], head[4]))
}

/// Connects to a peer that sends SETTINGS and answers this many PINGs; returns the number of PINGs that it received.
async fn pings(keep_alive: Option<keep_alive::KeepAlive>, answered: usize) -> usize {
    let (ours, mut theirs) = Blocking::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let peer = std::thread::spawn(move || {
        let mut preface = [0; 24];
        theirs.read_exact(&mut preface).unwrap();
        theirs.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
        let mut pings = 0;
        while let Some((kind, _)) = frame(&mut theirs) {
            if kind == PING {
                pings += 1;
                if pings <= answered {
                    theirs.write_all(&[0, 0, 8, PING, 1, 0, 0, 0, 0]).unwrap();
                    theirs.write_all(b"is alive").unwrap();
                }
            }
        }
        pings
    });
    let build = BuildInfo {
        version: String::new(),
        revision: String::new(),
    };
    let counts = Counts::new(Telemetry::new(1, build), WorkerId(0));
    let stream = Stream::Unix(UnixStream::from_std(ours).unwrap());
    let memory = Rc::default();
    let sender = Sender::new(stream, Counted::opened(&counts), &memory, keep_alive);
    match keep_alive {
        Some(_) => {
            while !sender.is_closed() {
                sender.limit().changed().await;
            }
        }
        None => sender.limit().changed().await,
    }
    drop(sender);
    while !peer.is_finished() {
        tokio::task::yield_now().await;
    }
    peer.join().unwrap()
}

#[tokio::test]
async fn silent_peer_times_out_after_a_ping() {
    let keep_alive = keep_alive::KeepAlive {
        interval: Duration::from_millis(20),
        timeout: Duration::from_millis(20),
    };
    let tasks = tokio::task::LocalSet::new();
    let counted = tasks.run_until(async {
        // the first answer may be late on a busy machine
        let silent = pings(Some(keep_alive), 0).await;
        let answering = pings(Some(keep_alive), 2).await;
        (silent, answering, pings(None, 0).await)
    });
    let (silent, answering, never) = counted.await;
    assert_eq!((silent, never), (1, 0));
    assert!((1..=3).contains(&answering), "{answering}");
}
