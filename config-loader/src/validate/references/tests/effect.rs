//! DestinationRules without an effect: their settings are not reported.

use super::codes;

const ENTRY: &str = "ServiceEntry ns/x {hosts: [x.test], ports: [{number: 80, name: http, protocol: HTTP}], \
                     resolution: STATIC, endpoints: [{address: 1.2.3.4}]}";

fn rule(name: &str, host: &str, rest: &str) -> String {
    format!("DestinationRule ns/{name} {{host: {host}, {rest}}}")
}

#[test]
fn settings_that_a_merge_drops_are_not_advised_on() {
    let good = "trafficPolicy: {outlierDetection: {maxEjectionPercent: 100}}";
    let lone = "trafficPolicy: {outlierDetection: {maxEjectionPercent: 50}}";
    let ejection = "X285 spec.trafficPolicy.outlierDetection.maxEjectionPercent";
    assert_eq!(codes(&[ENTRY, &rule("a", "x.test", lone)]), [ejection]);
    assert_eq!(
        codes(&[
            ENTRY,
            &rule("a", "x.test", good),
            &rule("b", "x.test", lone)
        ]),
        ["X324 spec.trafficPolicy"]
    );
    // the older rule has one
    assert_eq!(
        codes(&[
            ENTRY,
            &rule("a", "x.test", lone),
            &rule("b", "x.test", good)
        ]),
        [ejection, "X324 spec.trafficPolicy"]
    );
    // rules that are not merged
    let private = rule("b", "x.test", lone).replace("{host", "{exportTo: [.], host");
    assert_eq!(
        codes(&[ENTRY, &rule("a", "x.test", good), &private]),
        [ejection]
    );
    let other = rule("b", "x.test", lone).replace("ns/", "other/");
    assert_eq!(
        codes(&[ENTRY, &rule("a", "x.test", good), &other]),
        [ejection]
    );
    let subset = |policy: &str| format!("subsets: [{{name: all, {policy}}}]");
    assert_eq!(
        codes(&[ENTRY, &rule("a", "x.test", &subset(lone))]),
        ["X285 spec.subsets[0].trafficPolicy.outlierDetection.maxEjectionPercent"]
    );
    assert_eq!(
        codes(&[
            ENTRY,
            &rule("a", "x.test", &subset(good)),
            &rule("b", "x.test", &subset(lone))
        ]),
        ["X324 spec.subsets[0].name"]
    );
}

#[test]
fn rule_for_an_alias_names_the_target() {
    let alias = |to: &str| {
        format!(
            "Service ns/short {{type: ExternalName, externalName: {to}, ports: [{{port: 80}}]}}"
        )
    };
    let lone = "trafficPolicy: {outlierDetection: {maxEjectionPercent: 50}}";
    let rule = rule("a", "short", lone);
    assert_eq!(codes(&[ENTRY, &alias("x.test"), &rule]), ["X328 spec.host"]);
    let strange = "trafficPolicy: {portLevelSettings: [{port: {number: 81}, loadBalancer: {simple: RANDOM}}]}";
    let of_port = rule.replace(lone, strange);
    assert_eq!(
        codes(&[ENTRY, &alias("x.test"), &of_port]),
        ["X328 spec.host"]
    );
    // nothing describes the name: the alias is the host itself
    assert_eq!(codes(&[ENTRY, &alias("dns.test"), &rule]), [""; 0]);
    let wide = rule.replace("short", "'*.ns.svc.cluster.local'");
    assert_eq!(codes(&[ENTRY, &alias("x.test"), &wide]), [""; 0]);
}

#[test]
fn delegate_without_a_name_is_found_once() {
    let root = "VirtualService ns/root {hosts: [a.com], http: [{delegate: {namespace: ns}}]}";
    assert_eq!(codes(&[root]), [""; 0], "VS301 has said so");
}
