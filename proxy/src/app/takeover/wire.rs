//! Wire format of the handover: a length, a list in JSON, and then the file descriptors in batches.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

/// File descriptors per message; the kernel limit is 253.
const BATCH: usize = 64;

/// Maximum number of sockets of a process: more than listeners times workers of a large one.
const SOCKETS_MAX: usize = 16_384;

/// Maximum length of the list, in bytes.
const LIST_BYTES_MAX: usize = 64 * SOCKETS_MAX;

/// Purpose of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// The admin server.
    Admin,
    /// The health pages.
    Health,
    /// A listener of the configuration.
    Listener,
    /// Socket on which the next successor asks.
    Takeover,
}

/// Entry of the list for one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Purpose of the socket.
    pub(super) role: Role,
    /// Whether the service manager has it open as well.
    pub(super) is_managed: bool,
}

/// Sends sockets.
///
/// # Errors
///
/// Fails when the other side is gone, or takes too long.
pub(super) fn send(mut stream: &UnixStream, sockets: &[(Entry, OwnedFd)]) -> io::Result<()> {
    let entries: Vec<Entry> = sockets.iter().map(|(entry, _)| *entry).collect();
    let list = serde_json::to_vec(&entries).map_err(io::Error::other)?;
    let length = u32::try_from(list.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_le_bytes())?;
    stream.write_all(&list)?;
    let files: Vec<BorrowedFd<'_>> = sockets.iter().map(|(_, file)| file.as_fd()).collect();
    for files in files.chunks(BATCH) {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(BATCH))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::Error::other("too many file descriptors in a message"));
        }
        let byte = [IoSlice::new(&[0])];
        sendmsg(stream, &byte, &mut control, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// Receives sockets.
///
/// # Errors
///
/// Fails when the other side is gone, takes too long, or sends something else.
pub(super) fn receive(mut stream: &UnixStream) -> io::Result<Vec<(Entry, OwnedFd)>> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > LIST_BYTES_MAX {
        return Err(wrong("the list of sockets is too long"));
    }
    let mut list = vec![0; length];
    stream.read_exact(&mut list)?;
    let entries: Vec<Entry> = serde_json::from_slice(&list).map_err(io::Error::other)?;
    let mut files = Vec::new();
    while files.len() < entries.len() {
        let before = files.len();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(BATCH))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut bytes = [IoSliceMut::new(&mut byte)];
        recvmsg(stream, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                files.extend(rights);
            }
        }
        if files.len() == before {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    if files.len() > entries.len() {
        return Err(wrong("more sockets than the list names"));
    }
    Ok(entries.into_iter().zip(files).collect())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn sockets_arrive_with_their_roles_in_batches() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let entry = |number: usize| Entry {
            role: match number {
                0 => Role::Takeover,
                _ => Role::Listener,
            },
            is_managed: number % 2 == 1,
        };
        let socket = |number| (entry(number), listener.try_clone().unwrap().into());
        let sockets: Vec<(Entry, OwnedFd)> = (0..BATCH * 2 + 1).map(socket).collect();
        send(&ours, &sockets).unwrap();
        let received = receive(&theirs).unwrap();
        assert_eq!(received.len(), sockets.len());
        for (number, (found, socket)) in received.into_iter().enumerate() {
            assert_eq!(found, entry(number));
            let socket = TcpListener::from(socket);
            assert_eq!(socket.local_addr().unwrap(), listener.local_addr().unwrap());
        }
    }

    #[test]
    fn wrong_messages_are_errors() {
        let long = u32::MAX.to_le_bytes().to_vec();
        let text = [&3_u32.to_le_bytes()[..], b"abc"].concat();
        let list = br#"[{"role":"admin","is_managed":false}]"#;
        let no_file = [&(list.len() as u32).to_le_bytes()[..], list, b"\0"].concat();
        for wrong in [long, text, no_file, vec![1]] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.write_all(&wrong).unwrap();
            drop(ours);
            assert!(receive(&theirs).is_err(), "{wrong:?}");
        }
    }
}
