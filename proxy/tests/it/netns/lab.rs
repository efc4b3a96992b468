//! Network namespaces on one bridge: nodes with an IPv4 and an IPv6 address, and programs inside of them.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    LinkNameSpaceType, move_into_link_name_space, set_thread_gid, set_thread_groups, set_thread_uid,
};

use crate::support::{DEADLINE, eventually};

/// User and group ID of the proxy.
pub const PROXY: u32 = 1337;

/// User ID of workloads.
pub const WORKLOAD: u32 = 4242;

/// Backends of `strait iptables`.
const BACKENDS: [&str; 3] = ["nft", "legacy", "native"];

/// Prefix of the names of the tests' namespaces; the process ID follows.
const PREFIX: &str = "strait-test-";

/// Network namespaces, deleted on drop.
pub struct Lab {
    names: Vec<String>,
    nodes: Vec<Node>,
}

/// Network namespace with one interface.
pub struct Node {
    name: String,
    /// Addresses of the node.
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
}

impl Lab {
    /// Creates this many connected nodes; prints the reason and returns `None` if the system does not allow it.
    pub fn new(nodes: usize) -> Option<Self> {
        if !geteuid().is_root() {
            println!("skipped: network namespaces need root");
            return None;
        }
        remove_stale();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = format!("{PREFIX}{}-{number}", std::process::id());
        let mut lab = Self {
            names: Vec::new(),
            nodes: Vec::new(),
        };
        let hub = format!("{base}-hub");
        if let Err(reason) = lab.add_namespace(&hub) {
            println!("skipped: {reason}");
            return None;
        }
        ip(&format!("-n {hub} link add hub type bridge"));
        ip(&format!("-n {hub} link set hub up"));
        for index in 1..=nodes {
            let name = format!("{base}-{index}");
            lab.add_namespace(&name).unwrap();
            lab.nodes
                .push(join(&hub, name, u8::try_from(index).unwrap()));
        }
        Some(lab)
    }

    /// Runs a test once per backend of `strait iptables`, in new namespaces; the test gets the flag of the backend.
    pub fn with_each_backend(nodes: usize, test: impl Fn(&Self, &str)) {
        for backend in BACKENDS {
            if backend != "native" && !has_iptables() {
                continue;
            }
            let Some(lab) = Self::new(nodes) else {
                return;
            };
            test(&lab, &format!("--backend {backend}"));
        }
    }

    /// Creates this many nodes, if iptables is installed as well.
    pub fn with_iptables(nodes: usize) -> Option<Self> {
        if has_iptables() {
            Self::new(nodes)
        } else {
            None
        }
    }

    /// Returns the nodes.
    pub fn nodes<const N: usize>(&self) -> &[Node; N] {
        self.nodes.as_slice().try_into().unwrap()
    }

    fn add_namespace(&mut self, name: &str) -> Result<(), String> {
        let output = Command::new("ip").args(["netns", "add", name]).output();
        let output = output.map_err(|error| format!("`ip` cannot be run: {error}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("no network namespace can be added: {text}"));
        }
        self.names.push(name.to_owned());
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

/// Whether iptables is installed; prints a message if not.
fn has_iptables() -> bool {
    let tools = Command::new("iptables").arg("--version").output();
    if let Err(error) = &tools {
        println!("skipped: iptables cannot be run: {error}");
    }
    tools.is_ok()
}

/// Removes the namespaces of test processes that were killed.
fn remove_stale() {
    let names = std::fs::read_dir("/run/netns").into_iter().flatten();
    for name in names.flatten() {
        let name = name.file_name().into_string().unwrap_or_default();
        let process = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('-').next());
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = Command::new("ip").args(["netns", "del", &name]).output();
        }
    }
}

/// Connects a namespace to the bridge.
fn join(hub: &str, name: String, index: u8) -> Node {
    let node = Node {
        v4: Ipv4Addr::new(10, 77, 0, index),
        v6: Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, index.into()),
        name,
    };
    let name = &node.name;
    ip(&format!(
        "-n {hub} link add port{index} type veth peer name eth0 netns {name}"
    ));
    ip(&format!("-n {hub} link set port{index} master hub up"));
    ip(&format!("-n {name} link set lo up"));
    // without a link-local address, which would appear a second later
    ip(&format!("-n {name} link set eth0 addrgenmode none up"));
    ip(&format!("-n {name} addr add {}/24 dev eth0", node.v4));
    ip(&format!("-n {name} addr add {}/64 dev eth0 nodad", node.v6));
    // for addresses that only a proxy understands
    ip(&format!("-n {name} route add default dev eth0"));
    ip(&format!("-n {name} -6 route add default dev eth0"));
    node
}

/// Runs `ip`, which must succeed.
#[track_caller]
pub fn ip(arguments: &str) -> String {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Switches this thread to a user and the group with the same ID.
fn become_user(id: u32) {
    set_thread_groups(&[]).unwrap();
    set_thread_gid(Gid::from_raw(id)).unwrap();
    set_thread_uid(Uid::from_raw(id)).unwrap();
}

impl Node {
    /// Returns both addresses with a port.
    pub fn addresses(&self, port: u16) -> [SocketAddr; 2] {
        [
            SocketAddr::new(self.v4.into(), port),
            SocketAddr::new(self.v6.into(), port),
        ]
    }

    /// Returns the address of the same IP version as `other`.
    pub fn ip_like(&self, other: SocketAddr) -> IpAddr {
        match other {
            SocketAddr::V4(_) => self.v4.into(),
            SocketAddr::V6(_) => self.v6.into(),
        }
    }

    /// Calls a function as root on a thread inside the namespace. Its sockets and processes stay inside.
    pub fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(Path::new("/run/netns").join(&self.name)).unwrap();
        thread::scope(|scope| {
            let thread = scope.spawn(move || {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind).unwrap();
                act()
            });
            match thread.join() {
                Ok(value) => value,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Calls a function as a user, whose group has the same ID, on a thread inside the namespace.
    pub fn inside_as<T: Send>(&self, user: u32, act: impl FnOnce() -> T + Send) -> T {
        self.inside(|| {
            become_user(user);
            act()
        })
    }

    /// Opens a listening socket for both IP versions. Waits for the port, since a process that another thread is
    /// starting holds copies of all sockets, including closed ones, until it executes its program.
    pub fn listen(&self, port: u16) -> TcpListener {
        let mut bound = None;
        eventually("the port is free", || match self.try_listen(port) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => false,
            result => {
                bound = Some(result);
                true
            }
        });
        bound.unwrap().unwrap()
    }

    fn try_listen(&self, port: u16) -> io::Result<TcpListener> {
        self.inside(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)))
    }

    /// Opens a connection as a user.
    pub fn connect(&self, user: u32, to: SocketAddr) -> io::Result<TcpStream> {
        self.inside_as(user, || TcpStream::connect_timeout(&to, DEADLINE))
    }

    /// Runs a program as root until it exits.
    pub fn run(&self, mut command: Command) -> Output {
        self.inside(|| command.output().unwrap())
    }

    /// Starts a program as a user, whose group has the same ID.
    pub fn spawn(&self, user: u32, command: Command) -> std::process::Child {
        self.spawn_in_group(user, user, command)
    }

    /// Starts a program as a user and a group.
    pub fn spawn_in_group(
        &self,
        user: u32,
        group: u32,
        mut command: Command,
    ) -> std::process::Child {
        command.uid(user).gid(group);
        self.inside(|| command.spawn().unwrap())
    }

    /// Runs `strait iptables` as root.
    pub fn iptables(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command.arg("iptables").args(arguments.split_whitespace());
        self.run(command)
    }

    /// Runs `strait iptables` as root without any other program on the path; it must succeed.
    #[track_caller]
    pub fn without_tools(&self, arguments: &str) -> String {
        let root = tempfile::tempdir().unwrap();
        let binary = env!("CARGO_BIN_EXE_strait");
        // a root directory with what a container has: the binary with its libraries, and /proc
        let script = format!(
            "set -e; for file in {binary} $(ldd {binary} | grep -o '/[^ ]*'); do \
             mkdir -p $0$(dirname $file); touch $0$file; mount --bind $file $0$file; done; \
             mkdir $0/proc; mount --bind /proc $0/proc; exec chroot $0 {binary} iptables {arguments}"
        );
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", &script])
            .arg(root.path());
        let output = self.run(command);
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Installs capture rules, which must succeed.
    #[track_caller]
    pub fn install(&self, flags: &str) -> String {
        let output = self.iptables(&format!("install {flags}"));
        assert!(output.status.success(), "{flags}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns all state that `strait iptables` may change: rules of both backends, addresses, and routing.
    pub fn state(&self) -> String {
        let mut state = String::new();
        for tool in [
            "iptables-nft-save",
            "ip6tables-nft-save",
            "iptables-legacy-save",
            "ip6tables-legacy-save",
        ] {
            let output = self.run(Command::new(tool));
            let text = String::from_utf8(output.stdout).unwrap();
            // not the time, and no table that only has the kernel's chains
            let lines = text.lines().filter(|line| {
                let is_own_chain = line.starts_with(':') && line.contains(" - ");
                line.starts_with("-A") || is_own_chain
            });
            state.extend(lines.map(|line| format!("{tool}: {line}\n")));
        }
        let mut list = Command::new("nft");
        let output = self.run({
            list.args(["list", "ruleset"]);
            list
        });
        let tables = String::from_utf8(output.stdout).unwrap();
        let native = tables.split_inclusive("\n}\n");
        state.extend(native.filter(|table| table.contains(" strait_")));
        for list in [
            "-4 rule",
            "-6 rule",
            "-6 addr show dev lo",
            "-4 route show table all",
            "-6 route show table all",
        ] {
            state.push_str(&ip(&format!("-n {} {list}", self.name)));
        }
        state
    }
}

/// Waits for the next connection on any of these sockets, and returns the index of the socket.
#[track_caller]
pub fn arrival(listeners: &[&TcpListener]) -> (usize, TcpStream, SocketAddr) {
    let mut arrived = None;
    eventually("a connection arrives", || {
        arrived = listeners.iter().enumerate().find_map(|(index, listener)| {
            listener.set_nonblocking(true).unwrap();
            match listener.accept() {
                Ok((stream, from)) => Some((index, stream, from)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                Err(error) => panic!("{error}"),
            }
        });
        arrived.is_some()
    });
    let (index, stream, from) = arrived.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let from = SocketAddr::new(from.ip().to_canonical(), from.port());
    (index, stream, from)
}

#[test]
fn port_whose_socket_is_held_for_a_moment_is_waited_for() {
    let Some(lab) = Lab::new(1) else { return };
    let [node] = lab.nodes();
    let closed = node.listen(8080);
    let held = closed.try_clone().unwrap();
    drop(closed);
    assert_eq!(
        node.try_listen(8080).unwrap_err().kind(),
        ErrorKind::AddrInUse
    );
    thread::scope(|scope| {
        let listening = scope.spawn(|| node.listen(8080));
        drop(held);
        listening.join().unwrap();
    });
}
