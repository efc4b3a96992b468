//! Request handling: authentication, routing, authorization, response.

use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::accept::{Accepted, accepted, not_acceptable};
use super::body::{drain, read_body, without_body};
use super::{Peer, Server, page, report_watch, reviews};
use crate::access::pki::Authority;
use crate::access::{Guard, Role, User};
use crate::api::lines::{Form, metadata_only};
use crate::api::params::Params;
use crate::api::respond::{self, Answer, Body};
use crate::api::route::{Route, Target, route};
use crate::api::{Call, decode, discovery, openapi, table};
use crate::grpc;
use crate::identities::{self, Identities};
use crate::proxies::{Reporter, Sender};
use crate::resources::Resource;
use crate::status::Failure;
use crate::transfer::backup::Backup;

/// Authenticated sender of a request for objects.
struct Caller {
    user: User,
    guard: Guard,
    reporter: Reporter,
}

impl Server {
    /// Handles a request.
    pub(super) async fn handle(&self, peer: &Peer, request: Request<Incoming>) -> Response<Body> {
        let verb = verb(&request);
        let response = match grpc::is_grpc(request.headers()) {
            true => self.stream(peer, request).await,
            false => self.respond(peer, request).await,
        };
        self.metrics.request(verb, response.status().as_u16());
        response
    }

    async fn respond(&self, peer: &Peer, request: Request<Incoming>) -> Response<Body> {
        let (mut head, mut body) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        if is_head {
            head.method = Method::GET;
        }
        let waits = head.headers.contains_key(http::header::EXPECT);
        let outcome = self.answer(peer, head, &mut body).await;
        let response = outcome.unwrap_or_else(|failure| respond::failure(&failure));
        // A client with `Expect: 100-continue` does not send its body after an early response.
        if !waits {
            drain(body);
        }
        match is_head {
            true => without_body(response),
            false => response,
        }
    }

    async fn answer(
        &self,
        peer: &Peer,
        head: Parts,
        body: &mut Incoming,
    ) -> Result<Response<Body>, Failure> {
        if let Some(answer) = self.open_page(&head) {
            return answer;
        }
        let user = self.user(peer, &head.headers).await?;
        refuse_impersonation(&head.headers, &user)?;
        let params = Params::read(head.uri.query());
        let accepted = accepted(&head.headers, &params)?;
        let text = |name: HeaderName| header(&head.headers, name);
        let route = route(head.uri.path())?;
        if accepted == Accepted::OpenApi2 && !matches!(route, Route::OpenApi2) {
            return Err(not_acceptable());
        }
        match route {
            Route::Objects(target) => {
                let mut call = Call {
                    content_type: text(CONTENT_TYPE),
                    user_agent: text(USER_AGENT),
                    method: head.method,
                    target,
                    params,
                    body: Bytes::new(),
                };
                let is_write = call.method != Method::GET && !call.target.resource.is_report();
                if is_write && self.api.store.is_read_only() {
                    return Err(Failure::method_not_allowed());
                }
                self.check(&user, &call)?;
                call.body = read_body(body).await?;
                let caller = Caller {
                    guard: self.guard(&head.headers, &user),
                    user,
                    reporter: peer.reporter,
                };
                self.objects(caller, &call, &accepted).await
            }
            Route::Review(review) if head.method == Method::POST => {
                let object = decode::body(&text(CONTENT_TYPE), &read_body(body).await?)?;
                let is_pretty = params.get("pretty") == "true";
                let mut answer = Answer::ok(reviews::answer(review, &user, &object)?);
                answer.code = StatusCode::CREATED;
                Ok(respond::json(&answer, "application/json", is_pretty))
            }
            Route::Review(_) => Err(Failure::method_not_allowed()),
            Route::Backup if head.method == Method::GET => self.backup(&user).await,
            Route::Identities if head.method == Method::POST => {
                user.check_path("post", head.uri.path())?;
                self.run_identities(body).await
            }
            route => {
                let verb = head.method.as_str().to_ascii_lowercase();
                user.check_path(&verb, head.uri.path())?;
                if head.method != Method::GET {
                    return Err(Failure::method_not_allowed());
                }
                if let Route::Metrics = route {
                    let revision = self.api.store.history().latest();
                    return Ok(self::text(self.metrics.text(&self.proxies, revision)));
                }
                let is_pretty = params.get("pretty") == "true";
                document(&route, &accepted, is_pretty)
            }
        }
    }

    /// Returns the response to a request that needs no user; `None` for any other.
    fn open_page(&self, head: &Parts) -> Option<Result<Response<Body>, Failure>> {
        match route(head.uri.path()) {
            Ok(Route::Health) => Some(Ok(Response::new(respond::full("ok")))),
            Ok(Route::Page(path)) if head.method == Method::GET => Some(page::show(&path)),
            Ok(Route::IdentityRoots) if head.method == Method::GET => Some(self.identity_roots()),
            _ => None,
        }
    }

    /// Runs a command about the CA of workloads.
    async fn run_identities(&self, body: &mut Incoming) -> Result<Response<Body>, Failure> {
        let identities = self.identities.as_ref().ok_or_else(without_identities)?;
        let answer = identities.run(&read_body(body).await?).await?;
        Ok(respond::json(
            &Answer::ok(answer),
            "application/json",
            false,
        ))
    }

    /// Returns the roots of the identities that the server issues.
    fn identity_roots(&self) -> Result<Response<Body>, Failure> {
        let roots = self.identities.as_ref().and_then(Identities::roots);
        let mut response = Response::new(respond::full(roots.ok_or_else(without_identities)?));
        let pem = http::HeaderValue::from_static("application/x-pem-file");
        response.headers_mut().insert(CONTENT_TYPE, pem);
        Ok(response)
    }

    /// Serves an xDS stream or a call of the CA, or rejects it with a gRPC status.
    async fn stream(&self, peer: &Peer, request: Request<Incoming>) -> Response<Body> {
        if let Some(identities) = &self.identities
            && request.uri().path() == identities::PATH
        {
            let client = identities::Client {
                address: peer.address.ip(),
                certificates: &peer.certificates,
            };
            let (response, is_known) = identities.serve(client, request).await;
            peer.is_known.fetch_or(is_known, Ordering::Relaxed);
            return response;
        }
        match self.user(peer, request.headers()).await {
            Ok(user) => {
                let guard = self.guard(request.headers(), &user);
                self.xds.serve(user, guard, request).await
            }
            Err(failure) => grpc::refuse(grpc::status_of(&failure)),
        }
    }

    /// Authenticates a request: by its bearer token if it has one, else by the client certificate of its connection.
    async fn user(&self, peer: &Peer, headers: &HeaderMap) -> Result<User, Failure> {
        let found = match bearer(headers) {
            Some(token) => {
                let is_limited = self.attempts.is_limited(&peer.address.ip(), Instant::now());
                self.users.user(&token, !is_limited).await?
            }
            None => peer.user.clone(),
        };
        if let Some(user) = found {
            peer.is_known.store(true, Ordering::Relaxed);
            return Ok(user);
        }
        let is_limited = self.attempts.count(peer.address.ip(), Instant::now());
        self.metrics.rejected_login(is_limited);
        if is_limited {
            let code = StatusCode::TOO_MANY_REQUESTS;
            return Err(Failure {
                retry_after: Some(1),
                ..Failure::new(code, "TooManyRequests", "too many failed authentications")
            });
        }
        let code = StatusCode::UNAUTHORIZED;
        Err(Failure::new(code, "Unauthorized", "Unauthorized"))
    }

    /// Returns the guard that ends a watch or an xDS stream once the token of its request is revoked.
    fn guard(&self, headers: &HeaderMap, user: &User) -> Guard {
        let Some(token) = bearer(headers) else {
            return Guard::new(|| true);
        };
        self.users.guard(token, user)
    }

    /// Authorizes a request. A rejected write is recorded in the audit log.
    fn check(&self, user: &User, call: &Call) -> Result<(), Failure> {
        let outcome = call.check(user);
        if let Err(failure) = &outcome
            && !["get", "list", "watch", ""].contains(&call.verb())
            && let Some(audit) = &self.audit
        {
            audit.record(user, call, &Err(failure.clone()));
        }
        outcome
    }

    /// Returns a backup of the store.
    async fn backup(&self, user: &User) -> Result<Response<Body>, Failure> {
        if user.role != Role::Admin {
            let message = format!(
                "a backup is for the role admin, and {:?} has another one",
                user.name
            );
            return Err(Failure::new(StatusCode::FORBIDDEN, "Forbidden", message));
        }
        let authority = Authority::in_dir(&self.data).map_err(Failure::internal)?;
        let tokens = self.users.all();
        let made = Backup::of_store(&*self.api.store, tokens, Some(authority)).await;
        let made = made.map_err(Failure::internal)?;
        tracing::info!(
            user = user.name,
            revision = made.revision,
            "a backup is sent"
        );
        let bytes = made.to_bytes().map_err(Failure::internal)?;
        let mut response = Response::new(respond::full(bytes));
        let text = http::HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
        Ok(response)
    }

    async fn objects(
        &self,
        caller: Caller,
        call: &Call,
        accepted: &Accepted,
    ) -> Result<Response<Body>, Failure> {
        let form = match accepted {
            Accepted::Json(form) => *form,
            Accepted::Discovery(_) | Accepted::OpenApi2 => Form::Object,
        };
        let is_pretty = call.params.get("pretty") == "true";
        let Caller {
            user,
            guard,
            reporter,
        } = caller;
        let is_watch = call.method == Method::GET && call.params.flag("watch")?;
        let answer = match (&call.method, &call.target.name) {
            _ if is_watch && call.target.resource.is_report() => {
                let body = report_watch::watch(&self.proxies, call, form, guard)?;
                return Ok(stream(self.metrics.watch(body)));
            }
            _ if call.target.resource.is_report() => {
                let sender = Sender {
                    reporter: Some(reporter),
                    subject: user.subject(),
                };
                Answer::ok(self.reports(call, form, sender)?)
            }
            _ if is_watch => {
                let body = self.api.watch(call, form, guard).await?;
                return Ok(stream(self.metrics.watch(body)));
            }
            (&Method::GET, Some(name)) => {
                Answer::ok(one(self.api.get(call, name).await?, &call.target, form))
            }
            (&Method::GET, None) => Answer::ok(self.list(call, form).await?),
            _ => {
                let outcome = self.api.change(call).await;
                if let Some(audit) = &self.audit {
                    audit.record(&user, call, &outcome);
                }
                if outcome.as_ref().is_ok_and(|change| change.after.is_some()) {
                    self.metrics.write();
                }
                let mut answer = outcome?.answer;
                if answer.object["kind"] == call.target.resource.kind {
                    answer.object = one(answer.object, &call.target, form);
                }
                answer
            }
        };
        Ok(respond::json(&answer, "application/json", is_pretty))
    }

    /// Handles a request for proxy reports, in the negotiated representation.
    fn reports(&self, call: &Call, form: Form, sender: Sender<'_>) -> Result<Value, Failure> {
        let resource = call.target.resource;
        let object = match call.method {
            Method::GET => self.read_reports(call)?,
            _ => self.write_report(call, sender)?,
        };
        let Value::Array(items) = &object["items"] else {
            let is_one = object["kind"] == resource.kind;
            return Ok(match is_one {
                true => one(object, &call.target, form),
                false => object,
            });
        };
        Ok(in_form(form, &object["metadata"], items, resource).unwrap_or(object))
    }

    async fn list(&self, call: &Call, form: Form) -> Result<Value, Failure> {
        let list = self.api.list(call).await?;
        let resource = call.target.resource;
        let metadata = Value::from(list.metadata.clone());
        let formed = in_form(form, &metadata, &list.items, resource);
        Ok(formed.unwrap_or_else(|| list.into_json(&call.target)))
    }
}

/// Returns a list in the negotiated representation; `None` for complete objects.
fn in_form(form: Form, metadata: &Value, items: &[Value], resource: &Resource) -> Option<Value> {
    match form {
        Form::Object => None,
        Form::Table(include) => {
            let rows = items.iter().map(|item| table::row(item, resource, include));
            let rows = rows.collect();
            Some(table::table(metadata.clone(), rows, resource, true))
        }
        Form::MetadataOnly => Some(json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "items": items.iter().map(metadata_only).collect::<Vec<_>>(),
        })),
    }
}

/// Returns the verb of a request for the metrics.
fn verb(request: &Request<Incoming>) -> &'static str {
    let is_watch = request
        .uri()
        .query()
        .is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
    match *request.method() {
        Method::GET if is_watch => "watch",
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

fn text(text: String) -> Response<Body> {
    let mut response = Response::new(respond::full(text));
    let plain = http::HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Returns one object in the negotiated representation.
fn one(object: Value, target: &Target, form: Form) -> Value {
    match form {
        Form::Object => object,
        Form::MetadataOnly => metadata_only(&object),
        Form::Table(include) => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            let rows = vec![table::row(&object, target.resource, include)];
            table::table(metadata, rows, target.resource, true)
        }
    }
}

fn stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Returns a document about the API itself, such as discovery and OpenAPI.
fn document(
    route: &Route,
    accepted: &Accepted,
    is_pretty: bool,
) -> Result<Response<Body>, Failure> {
    if let (Route::OpenApi2, Accepted::OpenApi2) = (route, accepted) {
        let bytes = openapi::protobuf::encode(&openapi::document_v2());
        let mut response = Response::new(respond::full(bytes));
        let media = http::HeaderValue::from_static(openapi::protobuf::CONTENT_TYPE);
        response.headers_mut().insert(CONTENT_TYPE, media);
        return Ok(response);
    }
    let mut content_type = "application/json";
    let object = match (route, accepted) {
        (Route::CoreVersions | Route::Groups, Accepted::Discovery(stage)) => {
            content_type = match *stage {
                "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
            };
            discovery::aggregated(matches!(route, Route::CoreVersions), stage)
        }
        (Route::Version, _) => discovery::version(),
        (Route::CoreVersions, _) => discovery::core_versions(),
        (Route::Groups, _) => discovery::api_groups(),
        (Route::Group(name), _) => discovery::api_group(name)?,
        (Route::Resources { group, version }, _) => discovery::api_resources(group, version)?,
        (Route::OpenApi2, _) => openapi::document_v2(),
        (Route::OpenApi3, _) => openapi::index(),
        (Route::OpenApi3Of(of), _) => openapi::document(of)?,
        (
            Route::Health
            | Route::Backup
            | Route::Identities
            | Route::IdentityRoots
            | Route::Metrics
            | Route::Objects(_)
            | Route::Page(_)
            | Route::Review(_),
            _,
        ) => {
            return Err(Failure::unknown_path());
        }
    };
    Ok(respond::json(&Answer::ok(object), content_type, is_pretty))
}

/// Returns 404 of a server without the CA.
fn without_identities() -> Failure {
    let message = "the server issues no identities: start it with --issue-identities";
    Failure::new(StatusCode::NOT_FOUND, "NotFound", message)
}

/// Rejects impersonation: the request would run with the permissions of the authenticated user.
fn refuse_impersonation(headers: &HeaderMap, user: &User) -> Result<(), Failure> {
    let mut names = headers.keys().map(HeaderName::as_str);
    let Some(name) = names.find(|name| name.starts_with("impersonate-")) else {
        return Ok(());
    };
    let message = format!(
        "forbidden: user {:?} cannot impersonate ({name}): impersonation is not supported; use a token of the other user, which \
         `strait control token create` makes",
        user.name
    );
    Err(Failure::new(StatusCode::FORBIDDEN, "Forbidden", message))
}

/// Returns the bearer token of a request: empty for another authentication scheme, `None` without an `Authorization`
/// header.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let sent = header(headers, AUTHORIZATION);
    let token = sent.strip_prefix("Bearer ").unwrap_or("").trim();
    (!sent.is_empty()).then(|| token.to_owned())
}

fn header(headers: &HeaderMap, name: HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or("").to_owned()
}
