//! Open connections at a change of the validation of clients.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::backend_tls::authorities;
use super::listener_tls::{client, credential, https, status, to_a};
use super::{Edge, object, path, route, rule, service};
use crate::support::client::{Client, Front};
use crate::support::origin::{Back, Origin, full};
use crate::support::pki::Authority;
use crate::support::tls::{Visitor, get};
use crate::support::{DEADLINE, until};

/// Gateway with an HTTPS listener, whose clients are validated by the ConfigMap `clients` if there is a `mode`.
struct Validated {
    edge: Edge,
    ca: Authority,
    routes: String,
}

impl Validated {
    fn start(routes: String, more: &[String]) -> Self {
        let ca = Authority::new("ca");
        // holds the port of the proxy open
        let first = "{name: http, protocol: HTTPS, port: PORT, hostname: none.test, tls: {certificateRefs: [{name: first}]}}";
        let cred = credential("edge/first", &ca.server(&["none.test"]), &[]);
        let edge = Edge::start_with(first, &[], &[more, &[cred]].concat());
        Self { edge, ca, routes }
    }

    /// Changes the validation, and has the server's certificate renewed.
    fn set(&self, mode: Option<&str>, trusted: &str) {
        let (ip, port) = (self.edge.proxy.edge.ip(), self.edge.proxy.edge.port());
        let frontend = mode.map_or_else(String::new, |mode| {
            format!(
                "tls: {{frontend: {{default: {{validation: {{mode: {mode}, caCertificateRefs: [{{group: '', kind: ConfigMap, name: clients}}]}}}}}}}}, "
            )
        });
        let listener = https("").replace("PORT", &port.to_string());
        let gateway = format!(
            "gatewayClassName: strait, addresses: [{{value: {ip}}}], {frontend}listeners: [{listener}]"
        );
        self.edge.set(&[
            self.routes.replace("name: main", "name: validated"),
            object("Gateway", "edge/validated", &gateway),
            credential("edge/cred", &self.ca.server(&["shop.test"]), &[]),
            authorities("edge/clients", trusted),
        ]);
    }

    fn visitor(&self) -> Visitor {
        Visitor::new(self.edge.proxy.edge, &self.ca)
    }
}

async fn connected(visitor: &Visitor, front: Front) -> Client {
    let mut client = visitor.client(front, "shop.test").await.unwrap();
    assert_eq!(client.call(get("shop.test", "/")).await.status, 200);
    client
}

#[tokio::test]
async fn connections_drain_once_their_clients_could_be_refused() {
    let released = Arc::new(Semaphore::new(0));
    let slow = Origin::start(Back::H1, {
        let released = Arc::clone(&released);
        move |_| {
            let released = Arc::clone(&released);
            async move {
                released.acquire().await.unwrap().forget();
                hyper::Response::new(full("slow"))
            }
        }
    });
    let rules = [
        rule(&path("PathPrefix", "/"), "a"),
        rule(&path("PathPrefix", "/slow"), "slow"),
    ];
    let routes = route("r", "", &rules.join(", "));
    let gateway = Validated::start(routes, &[service("edge/slow", slow.address)]);
    gateway.set(None, &gateway.ca.pem());
    let clients = Authority::new("clients");
    for front in [Front::H1, Front::H2] {
        for (before, after) in [
            (None, "AllowValidOnly"),
            (Some("AllowInsecureFallback"), "AllowValidOnly"),
            (None, "AllowInsecureFallback"),
        ] {
            gateway.set(before, &clients.pem());
            let visitor = gateway.visitor();
            let idle = connected(&visitor, front).await;
            let mut busy = connected(&visitor, front).await;
            let seen = slow.seen().len();
            let answer = tokio::spawn(async move {
                let answer = busy.call(get("shop.test", "/slow")).await;
                (answer.status, busy)
            });
            let forwarded = async || slow.seen().len() > seen;
            until("the request is forwarded", forwarded).await;
            gateway.set(Some(after), &clients.pem());
            let ended = timeout(DEADLINE, idle.ended).await;
            assert!(
                ended.is_ok(),
                "{front:?} {before:?}: the idle connection ends"
            );
            released.add_permits(1);
            let (status, busy) = answer.await.unwrap();
            assert_eq!(status, 200, "{front:?}: the request in flight is served");
            let ended = timeout(DEADLINE, busy.ended).await;
            assert!(ended.is_ok(), "{front:?} {before:?}: its connection ends");
        }
    }
}

#[tokio::test]
async fn connections_stay_while_their_clients_are_accepted() {
    let gateway = Validated::start(to_a(), &[]);
    let [one, two] = ["one", "two"].map(Authority::new);
    let (first, second) = (client(&one), client(&two));
    let mode = Some("AllowValidOnly");
    for front in [Front::H1, Front::H2] {
        gateway.set(mode, &one.pem());
        let mut of_one = connected(&gateway.visitor().with(&first), front).await;
        // each also renews the certificate of the server
        gateway.set(mode, &one.pem());
        gateway.set(mode, &format!("{}{}", one.pem(), two.pem()));
        let of_two = connected(&gateway.visitor().with(&second), front).await;
        let answer = of_one.call(get("shop.test", "/")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("connection"), None);
        gateway.set(mode, &two.pem());
        let ended = timeout(DEADLINE, of_one.ended).await;
        assert!(ended.is_ok(), "{front:?}: its authority is gone");
        let ended = timeout(DEADLINE, of_two.ended).await;
        assert!(ended.is_ok(), "{front:?}: an authority is gone");
        let mut of_two = connected(&gateway.visitor().with(&second), front).await;
        assert_eq!(status(&gateway.visitor().with(&first)).await, None);
        gateway.set(None, &two.pem());
        assert_eq!(of_two.call(get("shop.test", "/")).await.status, 200);
    }
}
