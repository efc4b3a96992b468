use config_loader::xds::{RpcStatus, resource_type};

use super::*;

fn asked(subscribe: &[&str], unsubscribe: &[&str]) -> Asked {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Asked {
        subscribe: names(subscribe),
        unsubscribe: names(unsubscribe),
        ..Asked::default()
    }
}

fn answer(nonce: &str, error: Option<&str>) -> Asked {
    Asked {
        nonce: nonce.to_owned(),
        error: error.map(|message| RpcStatus {
            code: 3,
            message: message.to_owned(),
        }),
        ..Asked::default()
    }
}

fn subscription(first: &Asked) -> Subscription {
    let of = resource_type("networking.istio.io/v1/Gateway").unwrap();
    Subscription::new(of, first)
}

fn sent(name: &str, version: &str) -> Sent {
    Sent {
        name: name.to_owned(),
        version: version.to_owned(),
        resource: prost_types::Any::default(),
    }
}

fn known(versions: &[(&str, &str)]) -> HashMap<String, String> {
    let versions = versions.iter();
    versions
        .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
        .collect()
}

/// The next response: `NAME=VERSION` and `-NAME`.
fn response(subscription: &mut Subscription) -> Option<(String, Vec<String>)> {
    if !subscription.is_ready() {
        return None;
    }
    let said = subscription.respond();
    let set = said
        .resources
        .iter()
        .map(|sent| format!("{}={}", sent.name, sent.version));
    let removed = said.removed.iter().map(|name| format!("-{name}"));
    Some((said.nonce, set.chain(removed).collect()))
}

#[test]
fn first_response_has_what_the_client_lacks() {
    let mut one = subscription(&asked(&[], &[]));
    let state = [sent("a", "1"), sent("b", "2"), sent("c", "3")];
    one.state(
        3,
        state.into_iter(),
        known(&[("a", "1"), ("b", "1"), ("d", "1")]),
    );
    let (nonce, found) = response(&mut one).unwrap();
    assert_eq!(
        (&*nonce, found),
        (
            "1",
            vec!["b=2".to_owned(), "c=3".to_owned(), "-d".to_owned()]
        )
    );
}

#[test]
fn first_response_is_sent_although_there_is_nothing() {
    let mut one = subscription(&asked(&["*"], &[]));
    one.state(3, std::iter::empty(), HashMap::new());
    assert_eq!(response(&mut one), Some(("1".to_owned(), Vec::new())));
}

#[test]
fn changes_wait_for_the_answer_and_the_newest_wins() {
    let mut one = subscription(&asked(&[], &[]));
    one.state(3, [sent("a", "1")].into_iter(), HashMap::new());
    response(&mut one).unwrap();
    one.change(3, "a".to_owned(), None);
    one.change(4, "a".to_owned(), Some(sent("a", "4")));
    one.change(5, "b".to_owned(), Some(sent("b", "5")));
    one.change(6, "b".to_owned(), None);
    one.change(7, "a".to_owned(), Some(sent("a", "7")));
    assert_eq!(response(&mut one), None, "the first is not answered");
    assert_eq!(
        one.ask(&answer("9", None), false),
        Effect::None,
        "an answer to something else"
    );
    assert_eq!(response(&mut one), None);
    assert_eq!(one.ask(&answer("1", None), false), Effect::None);
    let expected = vec!["a=7".to_owned(), "-b".to_owned()];
    assert_eq!(response(&mut one), Some(("2".to_owned(), expected)));
    let rejected = one.ask(&answer("2", Some("wrong")), false);
    assert_eq!(rejected, Effect::Rejected("wrong".to_owned()));
    assert_eq!(
        response(&mut one),
        None,
        "what was rejected is not sent again"
    );
}

#[test]
fn only_named_resources_are_sent() {
    let mut one = subscription(&asked(&["a"], &[]));
    one.state(
        1,
        [sent("a", "1"), sent("b", "1")].into_iter(),
        HashMap::new(),
    );
    assert_eq!(response(&mut one).unwrap().1, ["a=1"]);
    one.ask(&answer("1", None), false);
    one.change(2, "b".to_owned(), Some(sent("b", "2")));
    assert_eq!(response(&mut one), None);
    assert_eq!(one.ask(&asked(&["b"], &["a"]), false), Effect::Resubscribed);
    one.state(
        2,
        [sent("a", "1"), sent("b", "2")].into_iter(),
        HashMap::new(),
    );
    assert_eq!(response(&mut one).unwrap().1, ["b=2"]);
    one.ask(&answer("2", None), false);
    assert_eq!(one.ask(&asked(&["*"], &[]), false), Effect::Resubscribed);
    assert_eq!(one.ask(&asked(&[], &[]), false), Effect::None);
}
