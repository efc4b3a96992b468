use std::path::PathBuf;

use super::*;
use crate::compare::tls::Credentials;

fn plan(prefixes: Vec<String>) -> Plan {
    Plan {
        listen: 1001,
        admin: 1002,
        upstream: 1003,
        collector: 1004,
        endpoints: 1,
        prefixes,
        prefixes_per_object: 2,
        work: Work::Http,
        http2: false,
        tls: None,
        others: Others::None,
        feature: None,
        nginx_module: None,
        connections_max: 10,
    }
}

fn three_prefixes() -> Plan {
    plan((0..3).map(prefix).collect())
}

fn with_tls() -> Plan {
    Plan {
        tls: Some(Credentials::below(Path::new("/run"))),
        ..plan(vec!["/".into()])
    }
}

fn of(work: Work) -> Plan {
    Plan {
        work,
        http2: work == Work::Grpc,
        ..plan(vec!["/".into()])
    }
}

fn program(version: &str) -> Found {
    Found {
        path: PathBuf::from("/bin/proxy"),
        version: version.to_owned(),
    }
}

fn text_of(proxy: Proxy, plan: &Plan) -> String {
    let files = files(proxy, &program("1.22.1"), plan, Path::new("/run/it"));
    files.into_iter().map(|file| file.text).collect()
}

#[test]
fn every_proxy_listens_and_reaches_the_upstream_on_the_planned_ports() {
    for proxy in Proxy::ALL {
        let text = text_of(proxy, &three_prefixes());
        assert!(
            text.contains("1001") && text.contains("1003"),
            "{proxy:?}:\n{text}"
        );
        assert!(
            text.contains("127.0.0.1") && !text.contains("0.0.0.0"),
            "{proxy:?} stays on loopback:\n{text}"
        );
    }
}

#[test]
fn every_proxy_gets_every_prefix_once_and_in_order() {
    for proxy in Proxy::ALL {
        let text = text_of(proxy, &three_prefixes());
        let places: Vec<usize> = (0..3)
            .map(|index| text.find(&prefix(index)).expect("prefix is there"))
            .collect();
        assert!(places.is_sorted(), "{proxy:?}");
        assert_eq!(text.matches("/route-").count(), 3, "{proxy:?}");
    }
}

#[test]
fn catch_all_needs_no_map_in_haproxy() {
    let files = files(
        Proxy::Haproxy,
        &program("2.6"),
        &plan(vec!["/".into()]),
        Path::new("/run/it"),
    );
    assert_eq!(files.len(), 1);
    assert!(files[0].text.contains("default_backend upstream"));
}

#[test]
fn http2_is_asked_for_where_it_is_not_detected() {
    let mut plan = plan(vec!["/".into()]);
    plan.http2 = true;
    assert!(text_of(Proxy::Haproxy, &plan).contains("proto h2"));
    assert!(text_of(Proxy::Nginx, &plan).contains("listen 127.0.0.1:1001 http2;"));
    let newer = files(
        Proxy::Nginx,
        &program("1.26.0"),
        &plan,
        Path::new("/run/it"),
    );
    assert!(
        newer[0]
            .text
            .contains("listen 127.0.0.1:1001;\n    http2 on;")
    );
}

#[test]
fn strait_gets_a_file_per_virtual_service() {
    let files = files(
        Proxy::Strait,
        &program(""),
        &three_prefixes(),
        Path::new("/run/it"),
    );
    let names: Vec<&str> = files
        .iter()
        .filter_map(|file| file.path.file_name()?.to_str())
        .collect();
    assert_eq!(
        names,
        [
            "gateway.yaml",
            "upstream.yaml",
            "routes-00000.yaml",
            "routes-00001.yaml"
        ]
    );
    assert_eq!(files[3].path, strait::virtual_service_path(1));
}

#[test]
fn every_command_names_the_directory_or_a_file_in_it() {
    for proxy in Proxy::ALL {
        let CommandLine(words) =
            command(proxy, &program(""), &three_prefixes(), Path::new("/run/it"));
        assert_eq!(words[0], "/bin/proxy");
        assert!(
            words
                .iter()
                .any(|word| Path::new(word).starts_with("/run/it")),
            "{words:?}"
        );
    }
}

#[test]
fn every_proxy_shows_the_certificate() {
    for proxy in Proxy::ALL {
        let text = text_of(proxy, &with_tls());
        match proxy {
            Proxy::Haproxy => assert!(text.contains(" ssl crt /run/both.pem "), "{text}"),
            _ => assert!(
                text.contains("/run/certificate.pem") && text.contains("/run/key.pem"),
                "{proxy:?}:\n{text}"
            ),
        }
        let plain = text_of(proxy, &plan(vec!["/".into()]));
        assert!(!plain.contains("/run/"), "{proxy:?}:\n{plain}");
    }
}

#[test]
fn http2_over_tls_is_left_to_the_handshake_except_in_nginx() {
    let mut plan = with_tls();
    plan.http2 = true;
    assert!(text_of(Proxy::Nginx, &plan).contains("listen 127.0.0.1:1001 ssl http2;"));
    assert!(!text_of(Proxy::Haproxy, &plan).contains("proto h2"));
}

#[test]
fn calls_go_to_the_upstream_over_http2() {
    let text = |proxy| text_of(proxy, &of(Work::Grpc));
    assert!(text(Proxy::Strait).contains("protocol: GRPC"));
    assert!(text(Proxy::Nginx).contains("grpc_pass grpc://upstream;"));
    assert!(text(Proxy::Haproxy).contains("server s1 127.0.0.1:1003 proto h2"));
    assert!(text(Proxy::Envoy).contains("explicit_http_config"));
}

#[test]
fn bytes_pass_without_http() {
    let text = |proxy| text_of(proxy, &of(Work::Tcp));
    assert!(text(Proxy::Strait).contains("  tcp:\n  - route:"));
    assert!(text(Proxy::Nginx).contains("stream {"));
    assert!(text(Proxy::Haproxy).contains("mode tcp"));
    assert!(text(Proxy::Envoy).contains("envoy.filters.network.tcp_proxy"));
    for proxy in Proxy::ALL {
        let text = text(proxy).to_lowercase();
        assert!(!text.contains("http_connection_manager") && !text.contains("mode http"));
        assert!(!text.contains("protocol: http") && !text.contains("http {"));
    }
}

#[test]
fn every_proxy_gets_every_endpoint_in_turn() {
    let plan = Plan {
        endpoints: 300,
        ..plan(vec!["/".into()])
    };
    for proxy in Proxy::ALL {
        let text = text_of(proxy, &plan);
        for last in ["127.0.0.1", "127.0.0.255", "127.0.1.0", "127.0.1.44"] {
            let is_address = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_digit());
            let parts = text.split(last).skip(1);
            let times = parts.filter(|rest| is_address(rest)).count();
            let own = match (last, proxy) {
                ("127.0.0.1", Proxy::Envoy) => 2,
                ("127.0.0.1", _) => 1,
                _ => 0,
            };
            assert_eq!(times - own, 1, "{proxy:?} {last}:\n{text}");
        }
        assert!(!text.contains("127.0.1.45"), "{proxy:?}");
    }
    assert!(text_of(Proxy::Strait, &plan).contains("simple: ROUND_ROBIN"));
    assert!(text_of(Proxy::Haproxy, &plan).contains("balance roundrobin"));
    assert!(text_of(Proxy::Nginx, &plan).contains("keepalive 600;"));
}

#[test]
fn last_of_a_thousand_endpoints_is_still_loopback() {
    let last = address(999);
    assert!(last.is_loopback());
    assert_eq!(last.to_string(), "127.0.3.232");
}

#[test]
fn nginx_loads_its_module_for_tcp_where_it_has_one() {
    let module = Some(PathBuf::from("/modules/stream.so"));
    let loads = |work, nginx_module| {
        let plan = Plan {
            nginx_module,
            ..of(work)
        };
        text_of(Proxy::Nginx, &plan).contains("load_module /modules/stream.so;")
    };
    assert!(loads(Work::Tcp, module.clone()));
    assert!(!loads(Work::Http, module));
    assert!(!loads(Work::Tcp, None));
}

#[test]
fn other_rules_come_before_the_one_that_is_measured() {
    for others in [Others::Plain(10), Others::Featured(10)] {
        let plan = Plan {
            others,
            ..plan(vec![prefix(0)])
        };
        let text = text_of(Proxy::Strait, &plan);
        assert_eq!(text.matches("prefix: /other-").count(), 10);
        assert!(text.rfind("/other-") < text.find(&prefix(0)));
        let featured = ["retries:", "fault:", "corsPolicy:", "mirrors:"]
            .map(|feature| text.matches(feature).count());
        let expected = if others == Others::Plain(10) { 0 } else { 4 };
        assert_eq!(featured, [expected; 4], "{text}");
    }
}

#[test]
fn strait_reads_its_resources_without_complaint() {
    let featured = Plan {
        others: Others::Featured(5),
        ..three_prefixes()
    };
    let policies = Plan {
        others: Others::Policies(3),
        ..three_prefixes()
    };
    let tokens = Plan {
        others: Others::Tokens {
            envoy_keeps_them: true,
        },
        ..three_prefixes()
    };
    let traces = Plan {
        others: Others::Traces(1),
        ..three_prefixes()
    };
    for plan in [
        three_prefixes(),
        policies,
        traces,
        tokens,
        with_tls(),
        of(Work::Grpc),
        of(Work::Tcp),
        featured,
        Plan {
            endpoints: 3,
            ..three_prefixes()
        },
    ] {
        for file in files(Proxy::Strait, &program(""), &plan, Path::new("/run/it")) {
            let mut diagnostics = config_loader::Diagnostics::default();
            let set = config_loader::load_bytes("it.yaml", file.text.as_bytes(), &mut diagnostics);
            // References lead to other files, so only what the file itself says is looked at.
            let refused = diagnostics.iter().any(|found| {
                found.severity == config_loader::Severity::Error && !found.code.0.starts_with('X')
            });
            assert!(!refused, "{diagnostics:?}");
            let written = file.text.lines().filter(|line| line.starts_with("kind:"));
            assert_eq!(set.len(), written.count(), "{}", file.path.display());
        }
    }
}
