//! Installation of capture rules: repeated, over other rules, failing half way; and removal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use super::lab::{Lab, Node, PROXY};

const MODES: [&str; 6] = [
    "--backend nft",
    "--backend legacy",
    "--backend native",
    "--backend native -m TPROXY",
    "--backend nft -m TPROXY",
    "--backend legacy -m TPROXY",
];

fn removed(node: &Node) -> String {
    let output = node.iptables("remove");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Compares states line by line, and prints only lines that differ.
#[track_caller]
fn assert_same(state: &str, expected: &str, when: &str) {
    let only = |one: &str, other: &str| {
        let lines = one
            .lines()
            .filter(|line| !other.lines().any(|known| known == *line));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (more, fewer) = (only(state, expected), only(expected, state));
    assert!(
        more.is_empty() && fewer.is_empty(),
        "{when}: more {more:#?}, fewer {fewer:#?}"
    );
    assert!(
        state == expected,
        "{when}: the same lines, in another order or number"
    );
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Adds rules that other programs own.
fn add_rules_of_others(node: &Node) {
    for command in [
        "iptables-nft -t nat -A PREROUTING -p tcp --dport 1 -m comment --comment STRAIT_INBOUND -j RETURN",
        "iptables-nft -t mangle -N OTHER",
        "ip6tables-nft -t nat -A OUTPUT -p tcp --dport 1 -j RETURN",
        "ip -4 rule add fwmark 7 lookup 133",
    ] {
        let mut words = command.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        assert!(node.run(command).status.success());
    }
}

#[test]
fn removal_leaves_what_was_there_before() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    add_rules_of_others(node);
    let before = node.state();
    assert_eq!(removed(node), "nothing was installed\n");
    for mode in MODES {
        node.install(mode);
        assert_ne!(node.state(), before, "{mode}");
        assert_eq!(removed(node), "removed\n");
        assert_same(&node.state(), &before, mode);
    }
}

#[test]
fn installing_twice_is_installing_once() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    for mode in MODES {
        node.install(mode);
        let once = node.state();
        node.install(mode);
        assert_same(&node.state(), &once, mode);
        removed(node);
    }
}

#[test]
fn installing_replaces_other_flags_modes_and_backends() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    let wanted = MODES.map(|mode| {
        node.install(mode);
        let state = node.state();
        removed(node);
        state
    });
    for before in MODES {
        for (mode, wanted) in MODES.iter().zip(&wanted) {
            node.install(&format!("{before} -u 99 --exclude-inbound-ports 1-9"));
            node.install(mode);
            assert_same(&node.state(), wanted, &format!("{before}, then {mode}"));
        }
    }
}

#[test]
fn backend_that_has_rules_is_chosen() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    assert!(
        node.install("")
            .contains("IPv4 is captured by iptables-nft")
    );
    removed(node);
    node.install("--backend legacy");
    let again = node.install("");
    assert!(
        again.contains("IPv4 is captured by iptables-legacy"),
        "{again}"
    );
    assert!(
        again.contains("IPv6 is captured by ip6tables-legacy"),
        "{again}"
    );
}

/// Runs `install` with a tool that fails when its arguments or its input contain `word`.
fn install_with_broken(node: &Node, tool: &str, word: &str, flags: &str) -> Output {
    let real =
        ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(|directory| format!("{directory}/{tool}"));
    let real = real.iter().find(|path| fs::exists(path).unwrap()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "#!/bin/sh\ninput=$(cat)\n\
         case \"$* $input\" in *\"{word}\"*) echo broken >&2; exit 1;; esac\n\
         printf '%s\\n' \"$input\" | {real} \"$@\"\n"
    );
    let path = directory.path().join(tool);
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    let paths = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{paths}", directory.path().display()));
    command
        .args(["iptables", "install"])
        .args(flags.split_whitespace());
    node.run(command)
}

#[test]
fn failure_at_any_step_changes_nothing() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    add_rules_of_others(node);
    for (tool, word) in [
        ("iptables-nft-restore", "-A STRAIT"),
        ("ip6tables-nft-restore", "-A STRAIT"),
        ("iptables-nft-save", ""),
        ("ip6tables-nft-save", ""),
    ] {
        let flags = "--backend nft -m TPROXY";
        let empty = node.state();
        let output = install_with_broken(node, tool, word, flags);
        assert_eq!(output.status.code(), Some(1), "{tool} {word}: {output:?}");
        assert!(said(&output).contains("broken"), "{}", said(&output));
        assert_same(&node.state(), &empty, &format!("{tool} {word}"));
    }
}

/// Runs like an image that contains only the binary.
#[test]
fn without_tools_the_kernel_is_told_directly() {
    let Some(lab) = Lab::new(1) else {
        return;
    };
    let [node] = lab.nodes();
    let before = node.state();
    let said = node.without_tools("install -m TPROXY");
    assert!(said.contains("IPv4 is captured by nf_tables"), "{said}");
    let state = node.state();
    assert!(state.contains("table ip6 strait_mangle"), "{state}");
    let said = node.without_tools("install");
    assert!(said.contains("IPv6 is captured by nf_tables"), "{said}");
    assert!(!node.state().contains("strait_mangle"));
    assert_eq!(node.without_tools("remove"), "removed\n");
    assert_same(&node.state(), &before, "removed");
    assert_eq!(node.without_tools("remove"), "nothing was installed\n");
}

#[test]
fn failed_replacement_keeps_the_rules_of_before() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    node.install("--backend nft --exclude-inbound-ports 22");
    let before = node.state();
    let output = install_with_broken(
        node,
        "ip6tables-nft-restore",
        "TPROXY",
        "--backend nft -m TPROXY",
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_same(&node.state(), &before, "nothing changes");
}

#[test]
fn without_rights_nothing_is_tried_and_the_capability_is_named() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    for action in ["install", "remove"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command.args(["iptables", action]);
        let stderr = tempfile::NamedTempFile::new().unwrap();
        command.stderr(stderr.reopen().unwrap());
        let status = node.spawn(PROXY, command).wait().unwrap();
        assert_eq!(status.code(), Some(1));
        let text = fs::read_to_string(stderr.path()).unwrap();
        assert!(
            text.contains("CAP_NET_ADMIN") && text.contains("NET_ADMIN, NET_RAW"),
            "{text}"
        );
    }
}

#[test]
fn wrong_flags_change_nothing() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    let before = node.state();
    for (flags, reason) in [
        ("--exclude-inbound-ports 70000", "ports are 1 to 65535"),
        (
            "--proxy-uid no-such-user",
            "no user `no-such-user` in /etc/passwd",
        ),
        ("--outbound-port 15006", "are both 15006"),
        ("--include-outbound-cidrs 10.0.0.0/33", "is not an IP range"),
        ("--interception-mode NONE", "REDIRECT"),
    ] {
        let output = node.iptables(&format!("install {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}: {output:?}");
        assert!(said(&output).contains(reason), "{}", said(&output));
    }
    assert_same(&node.state(), &before, "nothing changes");
}

#[test]
fn ipv6_is_skipped_with_the_reason() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    let before = node.state();
    node.install("");
    let said = node.install("--no-ipv6");
    assert!(
        said.contains("IPv6 is not captured: --no-ipv6 is set"),
        "{said}"
    );
    let state = node.state();
    assert!(
        !state.contains("ip6tables") && state.contains("iptables-nft-save"),
        "{state}"
    );
    let mut sysctl = Command::new("sh");
    sysctl.args(["-c", "echo 1 > /proc/sys/net/ipv6/conf/lo/disable_ipv6"]);
    assert!(node.run(sysctl).status.success());
    let said = node.install("");
    assert!(
        said.contains("IPv6 is not captured: it is switched off"),
        "{said}"
    );
    removed(node);
    assert!(before.contains("::1/128"));
    assert!(!node.state().contains("STRAIT"));
}

#[test]
fn show_and_dry_run_print_rules_and_change_nothing() {
    let Some(lab) = Lab::with_iptables(1) else {
        return;
    };
    let [node] = lab.nodes();
    let before = node.state();
    let shown = node.iptables("show -m TPROXY --inbound-port 20006");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("--on-port 20006")
            && shown.contains("# ip -6 rule add priority 1337 fwmark 1337 lookup 133")
    );
    assert!(shown.ends_with("## Installed\n# nothing\n"), "{shown}");
    let dry = node.install("--dry-run --inbound-port 20006");
    assert!(dry.contains("--to-ports 20006"), "{dry}");
    assert_same(&node.state(), &before, "nothing changes");
    node.install("--backend nft");
    let shown = node.iptables("show");
    let shown = String::from_utf8(shown.stdout).unwrap();
    let (_, installed) = shown.split_once("## Installed").unwrap();
    assert!(
        installed.contains("# IPv6, ip6tables-nft\n*nat\n"),
        "{installed}"
    );
    assert!(installed.contains("--to-ports 15006"), "{installed}");
}
