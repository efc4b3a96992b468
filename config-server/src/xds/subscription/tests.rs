use config_loader::xds::{Rejected, rejection, resource_type};

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
        error: error.map(|message| rejection(message.to_owned(), &[])),
        ..Asked::default()
    }
}

fn subscription(first: &Asked) -> Subscription {
    let of = resource_type("networking.istio.io/v1/Gateway").unwrap();
    Subscription::new(of, first)
}

fn sent(name: &str, version: &str) -> Arc<Sent> {
    Arc::new(Sent {
        name: name.to_owned(),
        version: version.to_owned(),
        resource: prost_types::Any::default(),
    })
}

fn known(versions: &[(&str, &str)]) -> HashMap<String, String> {
    let versions = versions.iter();
    versions
        .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
        .collect()
}

/// Returns the nonce and the next response, as `NAME=VERSION` and `-NAME`.
fn response(subscription: &mut Subscription) -> Option<(String, Vec<String>)> {
    if !subscription.is_ready() {
        return None;
    }
    let version = subscription.as_of;
    let said = subscription.respond(version, false);
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
    assert_eq!(one.ask(&answer("1", None), false), Effect::Accepted);
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

/// Returns a NACK that names a resource.
fn nack(nonce: &str, name: &str) -> Asked {
    let rejected = [Rejected {
        name: name.to_owned(),
        reason: "VS001: wrong".to_owned(),
    }];
    Asked {
        error: Some(rejection("wrong".to_owned(), &rejected)),
        ..answer(nonce, None)
    }
}

fn rejected(subscription: &Subscription) -> Vec<String> {
    let all = subscription.rejected();
    all.map(|(name, reason)| format!("{name} {reason}"))
        .collect()
}

#[test]
fn revision_is_pending_until_its_response_is_answered() {
    let mut one = subscription(&asked(&[], &[]));
    assert_eq!(one.pending_since(), Some(0), "nothing was sent");
    one.state(3, [sent("a", "1")].into_iter(), HashMap::new());
    response(&mut one).unwrap();
    one.change(4, "a".to_owned(), Some(sent("a", "4")));
    assert_eq!((one.owed_since(), one.pending_since()), (Some(4), Some(0)));
    one.ask(&answer("1", None), false);
    assert_eq!(one.pending_since(), Some(4));
    response(&mut one).unwrap();
    assert_eq!((one.owed_since(), one.pending_since()), (None, Some(4)));
    one.ask(&answer("2", None), false);
    assert_eq!(one.pending_since(), None);
    // The state already includes a change that arrives later.
    one.state(6, [sent("a", "6")].into_iter(), HashMap::new());
    one.respond(5, false);
    one.ask(&answer("3", None), false);
    one.change(6, "a".to_owned(), Some(sent("a", "6")));
    assert!(one.is_ready(), "no response said that it has this revision");
}

#[test]
fn rejected_resources_are_known_until_another_version_is_accepted() {
    let mut one = subscription(&asked(&[], &[]));
    one.state(
        3,
        [sent("a", "1"), sent("b", "1")].into_iter(),
        HashMap::new(),
    );
    response(&mut one).unwrap();
    one.ask(&nack("1", "a"), false);
    assert_eq!(rejected(&one), ["a VS001: wrong"]);
    assert_eq!(one.pending_since(), None, "all else is accepted");
    one.change(4, "b".to_owned(), Some(sent("b", "4")));
    response(&mut one).unwrap();
    one.ask(&answer("2", None), false);
    assert_eq!(rejected(&one), ["a VS001: wrong"], "it was not sent again");
    one.change(5, "a".to_owned(), None);
    response(&mut one).unwrap();
    one.ask(&answer("3", None), false);
    assert_eq!(rejected(&one), [""; 0]);
}

#[test]
fn rejection_that_names_nothing_is_of_the_whole_response() {
    let mut one = subscription(&asked(&[], &[]));
    one.state(3, [sent("a", "1")].into_iter(), HashMap::new());
    response(&mut one).unwrap();
    one.ask(&answer("1", None), false);
    one.change(4, "a".to_owned(), Some(sent("a", "4")));
    response(&mut one).unwrap();
    one.ask(&answer("2", Some("wrong")), false);
    assert_eq!(rejected(&one), [" wrong"]);
    assert_eq!(one.pending_since(), Some(4));
    one.change(5, "a".to_owned(), Some(sent("a", "5")));
    response(&mut one).unwrap();
    one.ask(&answer("3", None), false);
    assert_eq!((rejected(&one).len(), one.pending_since()), (0, None));
}

#[test]
fn removals_wait_while_the_rest_is_sent() {
    let mut one = subscription(&asked(&[], &[]));
    one.state(3, [sent("a", "1")].into_iter(), HashMap::new());
    let (nonce, _) = response(&mut one).unwrap();
    one.ask(&answer(&nonce, None), false);
    one.change(4, "a".to_owned(), None);
    assert!(one.owes_removals_alone());
    one.change(5, "b".to_owned(), Some(sent("b", "1")));
    assert!(one.owes_resources());
    let said = one.respond_without_removals(5, false);
    assert_eq!((said.resources.len(), said.removed.len()), (1, 0));
    assert_eq!(said.version, "3", "the removal is not in it");
    one.ask(&answer(&said.nonce, None), false);
    let (_, rest) = response(&mut one).unwrap();
    assert_eq!(rest, ["-a"]);
}
