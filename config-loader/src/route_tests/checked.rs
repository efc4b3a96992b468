//! Tests of a file of `strait test`, checked.

use std::sync::Arc;
use std::time::Duration;

use crate::diagnostic::Location;
use crate::written_proxies::WrittenProxy;

/// File of tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestFile {
    /// File or directory of the configuration, relative to the directory of the test file, which is the default.
    pub config: Option<Arc<str>>,
    /// Tests in the order of the file.
    pub tests: Vec<RouteTest>,
}

/// Test of one request, of several, or of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteTest {
    /// Name in reports, unique in the file.
    pub name: Arc<str>,
    /// Proxy that is asked: that of the file, with the namespace and labels of `source`.
    pub proxy: WrittenProxy,
    /// Endpoints that count as unhealthy.
    pub unhealthy: Vec<UnhealthyPart>,
    /// Request, requests or connection.
    pub subject: TestSubject,
    /// Expectations, in the order of the fields of `expect`.
    pub expected: Vec<Expected>,
    /// Location in the file.
    pub location: Location,
}

/// Endpoints that count as unhealthy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnhealthyPart {
    /// Endpoints of a Kubernetes cluster, by its key or name.
    Cluster(Arc<str>),
    /// Endpoints of a zone.
    Zone(Arc<str>),
    /// Endpoints of a service, by its host.
    Host(Arc<str>),
    /// Endpoint with this address and port.
    Endpoint(Arc<str>),
}

/// Request, requests or connection of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum TestSubject {
    /// One request.
    Request(TestRequest),
    /// Requests that differ in the value of a header.
    Requests {
        /// Number of requests, from 1 to 10,000.
        count: u32,
        /// Name of the header.
        vary: Arc<str>,
        /// Request without the header.
        request: TestRequest,
    },
    /// Connection of TCP or TLS.
    Connection(TestConnection),
}

/// Largest number of requests of one test.
pub(super) const REQUESTS_MAX: i64 = 10_000;

/// Request of a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestRequest {
    /// Method.
    pub method: Arc<str>,
    /// URL, or a path.
    pub url: Arc<str>,
    /// Header fields.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// IP address of the client.
    pub client: Option<Arc<str>>,
    /// Principal of the client's certificate.
    pub identity: Option<Arc<str>>,
    /// Claims of the verified token, as JSON.
    pub claims: Option<String>,
    /// Listener, by its port or address.
    pub listener: Option<String>,
    /// Location in the file.
    pub location: Location,
}

/// Connection of a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestConnection {
    /// Port that the client dials.
    pub port: u16,
    /// Server name of the client's TLS.
    pub sni: Option<Arc<str>>,
    /// IP address that the client dials.
    pub address: Option<Arc<str>>,
    /// IP address of the client.
    pub client: Option<Arc<str>>,
    /// Principal of the client's certificate.
    pub identity: Option<Arc<str>>,
    /// Location in the file.
    pub location: Location,
}

/// One field of `expect`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Expectation.
    pub what: Expectation,
    /// Name of the field.
    pub field: String,
    /// Location in the file.
    pub location: Location,
}

/// Expectation of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// Status of the proxy's own response; 200 also for a request that is forwarded.
    Status(u16),
    /// Response flags of the proxy's own response, as in the access log.
    Flags(Arc<str>),
    /// Name of the matching rule, or `kind/namespace/name` of its object.
    Rule(Arc<str>),
    /// Whether authorization policies allow the request.
    Allowed(bool),
    /// All destinations that get traffic.
    Destinations(Vec<ExpectedDestination>),
    /// All mirrors, with their percentages as weights.
    Mirrors(Vec<ExpectedDestination>),
    /// Percentage of the traffic of each Kubernetes cluster, by key or name.
    Clusters(Vec<(Arc<str>, f64)>),
    /// Percentage of the traffic of each endpoint, by address and port.
    Endpoints(Vec<(Arc<str>, f64)>),
    /// Path and query that the endpoint receives.
    Path(Arc<str>),
    /// Authority that the endpoint receives.
    Authority(Arc<str>),
    /// Request header that the endpoint receives; `None` for none.
    RequestHeader(Arc<str>, Option<Arc<str>>),
    /// Response header that the proxy sets; `None` for one that it removes or does not set.
    ResponseHeader(Arc<str>, Option<Arc<str>>),
    /// Timeout of the request; `None` for none.
    Timeout(Option<Duration>),
    /// Maximum number of retries, 0 for none.
    RetryAttempts(u32),
    /// Conditions of retries, in any order.
    RetryOn(Vec<Arc<str>>),
    /// Timeout of an attempt; `None` for none.
    PerTryTimeout(Option<Duration>),
    /// Status of a redirect.
    RedirectStatus(u16),
    /// Location of a redirect.
    RedirectLocation(Arc<str>),
    /// Requests with the same value of the header go to the same endpoint.
    SameEndpoint,
    /// Requests go to at least so many endpoints.
    Spread(u32),
}

/// Destination or mirror.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedDestination {
    /// Host of the service.
    pub host: Arc<str>,
    /// Subset, if written.
    pub subset: Option<Arc<str>>,
    /// Port, if written.
    pub port: Option<u16>,
    /// Percentage of the traffic, if written.
    pub percent: Option<f64>,
}
