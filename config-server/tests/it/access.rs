//! Authorization: each role with each verb, and invalid credentials.

use std::time::Duration;

use config_server::access::tokens;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestServer};

const GATEWAYS: &str = "/apis/networking.istio.io/v1/namespaces/";
const SECRET: &str = "c2VjcmV0LW9mLXRoZS10ZXN0";

/// Collection of a resource: path, group, plural and namespace.
type Place = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

const PLACES: [Place; 6] = [
    (
        "/apis/networking.istio.io/v1/namespaces/shop/gateways",
        "networking.istio.io",
        "gateways",
        Some("shop"),
    ),
    (
        "/apis/networking.istio.io/v1/namespaces/cart/gateways",
        "networking.istio.io",
        "gateways",
        Some("cart"),
    ),
    (
        "/api/v1/namespaces/default/secrets",
        "",
        "secrets",
        Some("default"),
    ),
    (
        "/api/v1/namespaces/shop/secrets",
        "",
        "secrets",
        Some("shop"),
    ),
    (
        "/apis/flomesh.io/v1alpha1/clusters",
        "flomesh.io",
        "clusters",
        None,
    ),
    ("/api/v1/secrets", "", "secrets", None),
];

const VERBS: [&str; 8] = [
    "create",
    "get",
    "list",
    "watch",
    "patch",
    "update",
    "delete",
    "deletecollection",
];

fn object(plural: &str, name: &str) -> Value {
    let metadata = json!({"name": name, "labels": {"a": "b"}});
    match plural {
        "gateways" => json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": metadata,
            "spec": {"servers": [{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]}]},
        }),
        "secrets" => json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {"key": SECRET},
        }),
        _ => json!({
            "apiVersion": "flomesh.io/v1alpha1", "kind": "Cluster", "metadata": metadata,
            "spec": {"gatewayHost": "10.0.0.1", "gatewayPort": 80, "kubeconfig": SECRET},
        }),
    }
}

/// Sends a request with that Kubernetes verb for an object of that name.
async fn ask(client: &mut Client, verb: &str, (path, _, plural, _): Place, name: &str) -> Answer {
    let one = format!("{path}/{name}");
    match verb {
        "create" => client.post(path, &object(plural, name)).await,
        "get" => client.get(&one).await,
        "list" => client.get(path).await,
        "watch" => {
            client
                .get(&format!(
                    "{path}?watch=1&timeoutSeconds=1&resourceVersion=1"
                ))
                .await
        }
        "patch" => {
            let patch = json!({"metadata": {"labels": {"a": "c"}}});
            client.patch(&one, "merge-patch+json", &patch).await
        }
        "update" => client.put(&one, &object(plural, name)).await,
        "delete" => client.delete(&one).await,
        _ => {
            client
                .delete(&format!("{path}?labelSelector=a%3Dnone"))
                .await
        }
    }
}

/// Whether a role allows a request, decided independently of the server's code.
fn is_allowed(role: &str, verb: &str, (_, _, plural, namespace): Place) -> bool {
    let is_read = ["get", "list", "watch"].contains(&verb);
    match (role, plural) {
        ("admin", _) => true,
        ("proxy:default", "secrets") => is_read && namespace == Some("default"),
        (_, "secrets") => false,
        ("writer:shop", _) => is_read || namespace == Some("shop"),
        _ => is_read,
    }
}

async fn can_i(client: &mut Client, verb: &str, (_, group, resource, namespace): Place) -> bool {
    let attributes = json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace.unwrap_or("")});
    let review = json!({
        "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": attributes},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = client.post(path, &review).await;
    assert_eq!(answer.code, 201, "{:?}", answer.body);
    answer.body["status"]["allowed"] == true
}

fn token(server: &TestServer, role: &str, expires: Option<u64>) -> String {
    let path = tokens::file_in(server.data.path());
    let name = format!("user-{}", role.replace([':', ','], "-"));
    tokens::create(&path, &name, role.parse().unwrap(), expires).unwrap()
}

/// Returns the lines of the audit log.
fn audit(server: &TestServer) -> Vec<Value> {
    let text = std::fs::read_to_string(server.data.path().join("audit.log")).unwrap();
    assert!(!text.contains(SECRET), "a Secret is in the audit log");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_do_what_its_page_says_and_no_more() {
    let server = TestServer::embedded().await;
    let mut admin = server.admin().await;
    for role in ["admin", "writer:shop", "reader", "proxy", "proxy:default"] {
        let token = token(&server, role, None);
        let mut client = server.client(Some(&token)).await;
        for place in PLACES {
            let is_collection = place.0 == "/api/v1/secrets";
            if !is_collection {
                ask(&mut admin, "create", place, "there").await;
            }
            for verb in VERBS {
                if is_collection && !["list", "watch"].contains(&verb) {
                    continue;
                }
                let name = if verb == "create" { "new" } else { "there" };
                let answer = ask(&mut client, verb, place, name).await;
                let wanted = is_allowed(role, verb, place);
                let told = format!("{role} {verb} {}: {:?}", place.0, answer.body);
                // A permitted PUT without a revision fails validation with 422.
                let is_done = answer.code < 300 || verb == "update" && answer.code == 422;
                assert_eq!(is_done, wanted, "{told}");
                assert_eq!(can_i(&mut client, verb, place).await, wanted, "{told}");
                if !wanted {
                    assert_eq!(
                        (answer.code, &answer.body["reason"]),
                        (403, &json!("Forbidden")),
                        "{told}"
                    );
                    assert!(!answer.body.to_string().contains(SECRET), "{told}");
                    let missing = ask(&mut client, verb, place, "missing").await;
                    let same = missing.body.to_string().replace("missing", name);
                    assert_eq!(same, answer.body.to_string(), "a 403 tells what there is");
                }
            }
            for name in ["new", "there"] {
                ask(&mut admin, "delete", place, name).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_read_as_those_of_kubernetes() {
    let server = TestServer::embedded().await;
    let token = token(&server, "reader", None);
    let mut reader = server.client(Some(&token)).await;
    for (method, path, message) in [
        (
            Method::GET,
            "/api/v1/namespaces/shop/secrets/tls",
            "secrets \"tls\" is forbidden: User \"user-reader\" cannot get resource \"secrets\" in API group \"\" in the \
             namespace \"shop\"",
        ),
        (
            Method::GET,
            "/api/v1/secrets?watch=true",
            "secrets is forbidden: User \"user-reader\" cannot watch resource \"secrets\" in API group \"\" at the cluster scope",
        ),
        (
            Method::PATCH,
            "/apis/networking.istio.io/v1/namespaces/shop/gateways/web/status",
            "gateways.networking.istio.io \"web\" is forbidden: User \"user-reader\" cannot patch resource \
             \"gateways/status\" in API group \"networking.istio.io\" in the namespace \"shop\"",
        ),
        (
            Method::DELETE,
            "/api/v1/namespaces/shop",
            "namespaces \"shop\" is forbidden: User \"user-reader\" cannot delete resource \"namespaces\" in API group \"\" \
             in the namespace \"shop\"",
        ),
        (
            Method::POST,
            "/version",
            "forbidden: User \"user-reader\" cannot post path \"/version\"",
        ),
    ] {
        let answer = reader.send(method, path, "", String::new()).await;
        assert_eq!(
            (answer.code, &answer.body["message"]),
            (403, &json!(message))
        );
    }
    let mut anonymous = server.client(None).await;
    for path in ["/api/v1/secrets", "/version", "/apis", "/no/such/path"] {
        let answer = anonymous.get(path).await;
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
            "reason": "Unauthorized", "code": 401,
        });
        assert_eq!((answer.code, answer.body), (401, status), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_good_credentials_are_accepted() {
    let server = TestServer::embedded().await;
    let path = tokens::file_in(server.data.path());
    let good = token(&server, "reader", None);
    let mut client = server.client(Some(&good)).await;
    assert_eq!(client.get("/version").await.code, 200);
    tokens::revoke(&path, "user-reader").unwrap();
    assert_eq!(
        client.get("/version").await.code,
        401,
        "the token is revoked"
    );
    let past = token(&server, "proxy", Some(1));
    assert_eq!(
        server.client(Some(&past)).await.get("/version").await.code,
        401
    );
    let wrong = format!("{}0", server.token("admin"));
    assert_eq!(
        server.client(Some(&wrong)).await.get("/version").await.code,
        401
    );
    let mut other = server.client(None).await;
    let basic = [("authorization", "Basic YWRtaW46YWRtaW4=")];
    let answer = other
        .request(Method::GET, "/version", &basic, String::new())
        .await;
    assert_eq!(answer.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_slowed_down_and_good_ones_are_not() {
    let server = TestServer::embedded().await;
    let mut guesser = server.client(Some("strait_guess")).await;
    let mut codes = Vec::new();
    for _ in 0..20 {
        let answer = guesser.get("/api/v1/secrets").await;
        if answer.code == 429 {
            assert_eq!(answer.headers["retry-after"], "1");
            assert_eq!(answer.body["reason"], "TooManyRequests");
        }
        codes.push(answer.code);
    }
    assert_eq!(codes[..10], [401; 10]);
    assert!(codes[10..].contains(&429), "{codes:?}");
    assert_eq!(server.admin().await.get("/version").await.code, 200);
    assert!(audit(&server).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn client_certificates_name_user_and_role() {
    let server = TestServer::embedded().await;
    let (gateways, secrets) = (PLACES[0], PLACES[2]);
    let mut writer = server
        .with_certificate("deployer", "strait:writer:shop")
        .await;
    assert_eq!(ask(&mut writer, "create", gateways, "web").await.code, 201);
    assert_eq!(ask(&mut writer, "get", secrets, "tls").await.code, 403);
    assert_eq!(audit(&server)[0]["user"], "deployer");
    let mut proxy = server
        .with_certificate("edge", "strait:proxy:default")
        .await;
    assert_eq!(ask(&mut proxy, "list", secrets, "").await.code, 200);
    for organization in ["admin", "strait:root", "strait:writer:"] {
        let mut none = server.with_certificate("x", organization).await;
        assert_eq!(none.get("/version").await.code, 401, "{organization}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_are_in_the_audit_log() {
    let server = TestServer::embedded().await;
    let token = token(&server, "writer:shop", None);
    let mut writer = server.client(Some(&token)).await;
    let created = ask(&mut writer, "create", PLACES[0], "web").await;
    let revision = |answer: &Answer| -> u64 {
        let text = answer.body["metadata"]["resourceVersion"].as_str().unwrap();
        text.parse().unwrap()
    };
    let patched = ask(&mut writer, "patch", PLACES[0], "web").await;
    ask(&mut writer, "get", PLACES[0], "web").await;
    ask(&mut writer, "create", PLACES[0], "web").await;
    ask(&mut writer, "create", PLACES[1], "web").await;
    ask(&mut writer, "create", PLACES[3], "tls").await;
    ask(&mut writer, "delete", PLACES[0], "web").await;
    ask(&mut server.admin().await, "create", PLACES[3], "tls").await;
    let (first, second) = (revision(&created), revision(&patched));
    let lines = audit(&server);
    let told = lines.iter().map(|line| {
        for field in ["user", "role", "verb", "resource", "namespace"] {
            assert!(line[field].is_string(), "{line}");
        }
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
        json!([
            line["user"],
            line["verb"],
            line["namespace"],
            line["name"],
            line["code"],
            line["before"],
            line["after"]
        ])
    });
    let user = "user-writer-shop";
    let last = lines.last().unwrap()["after"].clone();
    let deleted = lines[lines.len() - 2]["after"].clone();
    assert!(deleted.as_u64() > Some(second) && last.as_u64() > deleted.as_u64());
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            json!([user, "create", "shop", "web", 201, null, first]),
            json!([user, "patch", "shop", "web", 200, first, second]),
            json!([user, "create", "shop", "web", 409, null, null]),
            json!([user, "create", "cart", "", 403, null, null]),
            json!([user, "create", "shop", "", 403, null, null]),
            json!([user, "delete", "shop", "web", 200, second, deleted]),
            json!(["admin", "create", "shop", "tls", 201, null, last]),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_reach_their_own_namespace_only() {
    let server = TestServer::embedded().await;
    let mut admin = server.admin().await;
    let token = token(&server, "writer:shop", None);
    let mut writer = server.client(Some(&token)).await;
    let owner = ask(&mut writer, "create", PLACES[0], "owner").await;
    let reference = json!([{
        "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "name": "owner",
        "uid": owner.body["metadata"]["uid"],
    }]);
    for namespace in ["shop", "cart"] {
        let mut owned = object("gateways", "owned");
        owned["metadata"]["ownerReferences"] = reference.clone();
        if namespace == "cart" {
            // With an owner of an unserved kind, the object is kept. Without any owner, the server deletes it.
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "1"});
            let owners = owned["metadata"]["ownerReferences"].as_array_mut();
            owners.unwrap().push(pod);
        }
        let path = format!("{GATEWAYS}{namespace}/gateways");
        assert_eq!(admin.post(&path, &owned).await.code, 201);
    }
    ask(&mut writer, "delete", PLACES[0], "owner").await;
    assert_eq!(ask(&mut admin, "get", PLACES[0], "owned").await.code, 404);
    assert_eq!(ask(&mut admin, "get", PLACES[1], "owned").await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_tell_who_one_is_and_what_one_may_do() {
    let server = TestServer::embedded().await;
    let token = token(&server, "writer:shop", None);
    let mut client = server.client(Some(&token)).await;
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let known = client.post(path, &review).await;
    assert_eq!(known.code, 201, "{:?}", known.body);
    assert_eq!(
        known.body["status"]["userInfo"],
        json!({"username": "user-writer-shop", "groups": ["strait:writer:shop", "system:authenticated"]})
    );
    let rules = async |client: &mut Client, namespace: &str| {
        let review = json!({
            "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": namespace},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        client.post(path, &review).await
    };
    let may_write = |answer: &Answer| {
        let rules = answer.body["status"]["resourceRules"].as_array().unwrap();
        let has = |rule: &Value, list: &str, item: &str| {
            let items = rule[list].as_array().unwrap();
            items.iter().any(|known| *known == item)
        };
        assert!(
            !rules.iter().any(|rule| has(rule, "resources", "secrets")),
            "{rules:?}"
        );
        rules
            .iter()
            .any(|rule| has(rule, "resources", "gateways") && has(rule, "verbs", "create"))
    };
    assert!(may_write(&rules(&mut client, "shop").await));
    assert!(!may_write(&rules(&mut client, "cart").await));
    assert_eq!(rules(&mut client, "").await.code, 400);
    let other = client
        .post(
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            &review,
        )
        .await;
    assert_eq!(other.code, 400);
    assert_eq!(client.get(path).await.code, 405);
    let discovered = client.get("/apis/authentication.k8s.io/v1").await.body;
    assert_eq!(discovered["resources"][0]["name"], "selfsubjectreviews");
    let schemas = client
        .get("/openapi/v3/apis/authorization.k8s.io/v1")
        .await
        .body;
    assert!(
        schemas["components"]["schemas"]["io.k8s.api.authorization.v1.SelfSubjectAccessReview"]
            .is_object()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_ends_when_its_token_is_revoked() {
    let server = TestServer::embedded().await;
    let token = token(&server, "reader", None);
    let lines = server.client(Some(&token)).await;
    let mut lines = lines.watch(&format!("{}?watch=1", PLACES[0].0)).await;
    tokens::revoke(&tokens::file_in(server.data.path()), "user-reader").unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), lines.next()).await;
    assert_eq!(ended, Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn impersonation_is_refused() {
    let server = TestServer::embedded().await;
    let mut admin = server.admin().await;
    for header in [
        "Impersonate-User",
        "Impersonate-Group",
        "impersonate-extra-a",
    ] {
        let headers = [(header, "reader")];
        let sent = admin.request(Method::GET, "/api/v1/secrets", &headers, String::new());
        assert_eq!(sent.await.status(), 403, "{header}");
    }
    let mut anonymous = server.client(None).await;
    let headers = [("Impersonate-User", "admin")];
    let sent = anonymous.request(Method::GET, "/api/v1/secrets", &headers, String::new());
    assert_eq!(sent.await.status(), 401);
}
