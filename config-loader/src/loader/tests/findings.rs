//! Tests of the schedule of checks of the whole set.

use super::*;

#[test]
fn deferred_diagnostics_follow_their_change() {
    let text = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec:\n  hosts: [a.example]\n  \
                gateways: [missing]\n  http: [{route: [{destination: {host: b.example}}]}]\n";
    let look = || Look {
        events: vec![("a.yaml".into(), FileEvent::Bytes(text.into()))],
        ..Look::default()
    };
    let mut prompt = Loader::default();
    assert!(prompt.absorb(look()).is_some());
    assert!(!prompt.diagnostics.is_empty(), "the gateway is missing");
    let mut slow = Loader {
        // nothing is as quick as this
        pace: Pace::new(Duration::ZERO),
        ..Loader::default()
    };
    assert!(slow.absorb(look()).is_some(), "the object is in effect");
    assert_eq!(show(&slow.diagnostics), "");
    assert!(slow.pace.deadline(Instant::now()).is_some());
    assert!(slow.check(), "there are findings");
    assert_eq!(slow.diagnostics, prompt.diagnostics);
    assert_eq!(slow.pace.deadline(Instant::now()), None);
    assert!(!slow.check(), "the same ones");
}
