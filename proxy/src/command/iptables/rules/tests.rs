//! Rules of flags, as text.

use clap::Parser;

use super::super::ruleset::Ruleset;
use super::*;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    capture: CaptureArgs,
}

fn capture(flags: &str) -> CaptureArgs {
    let words = std::iter::once("test").chain(flags.split_whitespace());
    Flags::try_parse_from(words).unwrap().capture
}

fn text(flags: &str, family: Family) -> String {
    let rules = rules(&capture(flags), family);
    Ruleset::default().replaced_by(&Ruleset::from(rules.as_slice()))
}

#[test]
fn everything_is_redirected_by_default() {
    let expected = "\
*nat
:STRAIT_INBOUND - [0:0]
:STRAIT_OUTPUT - [0:0]
:STRAIT_TO_INBOUND - [0:0]
:STRAIT_TO_OUTBOUND - [0:0]
-A STRAIT_INBOUND -p tcp --dport 15000 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15001 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15006 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15020 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15021 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15090 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 53 -j RETURN
-A STRAIT_INBOUND -p tcp -j STRAIT_TO_INBOUND
-A STRAIT_OUTPUT -p tcp --dport 53 -j RETURN
-A STRAIT_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN
-A STRAIT_OUTPUT ! -d 127.0.0.1/32 -o lo -p tcp -m owner --uid-owner 1337 -j STRAIT_INBOUND
-A STRAIT_OUTPUT -m owner --uid-owner 1337 -j RETURN
-A STRAIT_OUTPUT ! -d 127.0.0.1/32 -o lo -p tcp -m owner --gid-owner 1337 -j STRAIT_INBOUND
-A STRAIT_OUTPUT -m owner --gid-owner 1337 -j RETURN
-A STRAIT_OUTPUT -o lo -j RETURN
-A STRAIT_OUTPUT -d 127.0.0.1/32 -j RETURN
-A STRAIT_OUTPUT -j STRAIT_TO_OUTBOUND
-A STRAIT_TO_INBOUND -p tcp -j REDIRECT --to-ports 15006
-A STRAIT_TO_OUTBOUND -p tcp -j REDIRECT --to-ports 15001
-A PREROUTING -p tcp -j STRAIT_INBOUND
-A OUTPUT -p tcp -j STRAIT_OUTPUT
COMMIT
";
    assert_eq!(text("", Family::V4), expected);
    let expected = expected.replace("127.0.0.1/32", "::1/128");
    let expected = expected.replace("127.0.0.6/32", "::6/128");
    assert_eq!(text("", Family::V6), expected);
}

#[test]
fn transparent_interception_moves_inbound_to_the_mangle_table() {
    let all = text("-m tproxy", Family::V4);
    let (mangle, nat) = all.split_at(all.find("*nat").unwrap());
    assert_eq!(
        mangle,
        "\
*mangle
:STRAIT_DIVERT - [0:0]
:STRAIT_INBOUND - [0:0]
:STRAIT_OUTPUT - [0:0]
:STRAIT_TO_INBOUND - [0:0]
-A STRAIT_DIVERT -j MARK --set-mark 1337
-A STRAIT_DIVERT -j ACCEPT
-A STRAIT_INBOUND -p tcp -m mark --mark 1337 -j CONNMARK --save-mark
-A STRAIT_INBOUND -p tcp -m mark --mark 1337 -j RETURN
-A STRAIT_INBOUND -i lo -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15000 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15001 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15006 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15020 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15021 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 15090 -j RETURN
-A STRAIT_INBOUND -p tcp --dport 53 -j RETURN
-A STRAIT_INBOUND -p tcp -m conntrack --ctstate RELATED,ESTABLISHED -j STRAIT_DIVERT
-A STRAIT_INBOUND -p tcp -j STRAIT_TO_INBOUND
-A STRAIT_OUTPUT -p tcp -m connmark --mark 1337 -j CONNMARK --restore-mark
-A STRAIT_TO_INBOUND ! -d 127.0.0.1/32 -p tcp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006
-A PREROUTING -p tcp -j STRAIT_INBOUND
-A OUTPUT -p tcp -j STRAIT_OUTPUT
COMMIT
"
    );
    assert!(!nat.contains("PREROUTING"), "{nat}");
    assert!(nat.contains("-A STRAIT_OUTPUT -m mark --mark 1337 -j RETURN"));
}

/// Flags, the chain that they change, and its rules that differ from the default, in order.
const CASES: &[(&str, &str, &[&str])] = &[
    (
        "-p 20001",
        TO_OUTBOUND,
        &["-p tcp -j REDIRECT --to-ports 20001"],
    ),
    (
        "-z 20006",
        TO_INBOUND,
        &["-p tcp -j REDIRECT --to-ports 20006"],
    ),
    (
        "--inbound-port 20006",
        INBOUND,
        &["-p tcp --dport 20006 -j RETURN"],
    ),
    (
        "-b 80,8000-8999",
        INBOUND,
        &[
            "-p tcp --dport 80 -j STRAIT_TO_INBOUND",
            "-p tcp --dport 8000:8999 -j STRAIT_TO_INBOUND",
        ],
    ),
    ("-b=", INBOUND, &[]),
    (
        "-d 22,9000:9010",
        INBOUND,
        &[
            "-p tcp --dport 22 -j RETURN",
            "-p tcp --dport 9000:9010 -j RETURN",
        ],
    ),
    ("-c eth1", INBOUND, &["-i eth1 -j RETURN"]),
    ("-c eth1", OUTPUT, &["-o eth1 -j RETURN"]),
    ("-o 3306", OUTPUT, &["-p tcp --dport 3306 -j RETURN"]),
    (
        "-q 3306",
        OUTPUT,
        &["-p tcp --dport 3306 -j STRAIT_TO_OUTBOUND"],
    ),
    (
        "-x 10.1.0.0/16,fd00::/8",
        OUTPUT,
        &["-d 10.1.0.0/16 -j RETURN"],
    ),
    (
        "-i 10.0.0.0/8,fd00::/8",
        OUTPUT,
        &["-d 10.0.0.0/8 -j STRAIT_TO_OUTBOUND"],
    ),
    ("-i=", OUTPUT, &[]),
    (
        "-i=127.9.0.0/16",
        OUTPUT,
        &["-d 127.9.0.0/16 -j STRAIT_TO_OUTBOUND"],
    ),
    (
        "-u 1000 -g 0",
        OUTPUT,
        &[
            "! -d 127.0.0.1/32 -o lo -p tcp -m owner --uid-owner 1000 -j STRAIT_INBOUND",
            "-m owner --uid-owner 1000 -j RETURN",
            "! -d 127.0.0.1/32 -o lo -p tcp -m owner --gid-owner 0 -j STRAIT_INBOUND",
            "-m owner --gid-owner 0 -j RETURN",
        ],
    ),
];

#[test]
fn each_flag_changes_its_chain() {
    let chain = |flags: &str, name: &str| {
        let start = format!("-A {name} ");
        let text = text(flags, Family::V4);
        let rules = text.lines().filter_map(|line| line.strip_prefix(&start));
        rules.map(str::to_owned).collect::<Vec<_>>()
    };
    for (flags, name, expected) in CASES {
        let before = chain("", name);
        let mut rules = chain(flags, name);
        rules.retain(|rule| !before.contains(rule));
        assert_eq!(rules, *expected, "{flags}");
    }
    let captured =
        |flags: &str, name: &str, last: &str| chain(flags, name).iter().any(|rule| rule == last);
    assert!(captured("-d 22", INBOUND, "-p tcp -j STRAIT_TO_INBOUND"));
    assert!(!captured("-b 80", INBOUND, "-p tcp -j STRAIT_TO_INBOUND"));
    assert!(!captured("-i 10.0.0.0/8", OUTPUT, "-j STRAIT_TO_OUTBOUND"));
    assert!(!captured("-i 127.9.0.0/16", OUTPUT, "-o lo -j RETURN"));
}

#[test]
fn names_of_istio_iptables_are_accepted() {
    let istio = "--envoy-port 20001 --inbound-capture-port 20006 --istio-inbound-interception-mode TPROXY \
                 --istio-inbound-ports 80 --istio-local-exclude-ports 81 --istio-service-cidr 10.0.0.0/8 \
                 --istio-service-exclude-cidr 10.1.0.0/16 --istio-outbound-ports 82 \
                 --istio-local-outbound-ports-exclude 83 --istio-exclude-interfaces eth1";
    let ours = "--outbound-port 20001 --inbound-port 20006 --interception-mode TPROXY --include-inbound-ports 80 \
                --exclude-inbound-ports 81 --include-outbound-cidrs 10.0.0.0/8 --exclude-outbound-cidrs 10.1.0.0/16 \
                --include-outbound-ports 82 --exclude-outbound-ports 83 --exclude-interfaces eth1";
    assert_eq!(text(istio, Family::V4), text(ours, Family::V4));
}

#[test]
fn one_port_for_both_directions_is_refused() {
    let error = capture("-p 15006").check().unwrap_err();
    assert!(error.contains("both 15006"), "{error}");
    assert_eq!(capture("").check(), Ok(()));
}
