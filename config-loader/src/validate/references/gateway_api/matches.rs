//! Matches of HTTPRoutes and GRPCRoutes that are in the same lists: rules that no request reaches, and requests that
//! only the age of two routes decides.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::catalog::View;
use crate::catalog::gateway_api::{AttachingRoute, GatewayRoute, Gateways, service_of};
use crate::diagnostic::codes::gateway_api::{GA040, GA043};
use crate::diagnostic::{Diagnostic, Location};
use crate::kind::ObjectRef;
use crate::resource::gateway_api::{GrpcMatch, HTTPRoute, HttpMatch, PathMatch, RouteRule};
use crate::resource::istio::{HeaderKey, HeaderMatch, StringMatch};
use crate::resource::{Line, Object, ResourceSet};
use crate::validate::references::finding::{location, note, warning};

/// Maximum number of matches of one rank that a match is compared with.
const TIES_MAX: usize = 32;

/// Maximum number of matches that are compared, each counted once per class of lists. The routes that are younger are not
/// checked.
const CHECKED_MAX: usize = 100_000;

/// List of matches: that of a listener, or of a port of a Service, for a host.
type List = (Arc<str>, Arc<str>);

/// Number of the lists that have the matches of the same routes, which is what is compared.
type Class = usize;

/// Condition on a text, without its regular expression compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum TextKey<'a> {
    Any,
    Exact(&'a str),
    Prefix(&'a str),
    Regex(&'a str),
}

/// Conditions on texts, by name.
type Named<'a> = Vec<(&'a str, TextKey<'a>)>;

/// Conditions of a match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MatchKey<'a> {
    /// Path, or service and method of gRPC.
    path: (TextKey<'a>, Option<TextKey<'a>>),
    method: Option<&'a str>,
    headers: Named<'a>,
    query: Named<'a>,
}

impl MatchKey<'_> {
    fn is_unconditional(&self) -> bool {
        self.path == (TextKey::Prefix(""), None)
            && self.method.is_none()
            && self.headers.is_empty()
            && self.query.is_empty()
    }
}

/// Match of a rule.
trait Matched {
    fn key(&self) -> MatchKey<'_>;

    fn is_regex(&self) -> bool {
        matches!(self.key().path, (TextKey::Regex(_), None))
    }
}

impl Matched for HttpMatch {
    fn key(&self) -> MatchKey<'_> {
        let path = match &self.path {
            PathMatch::Exact(path) => TextKey::Exact(path),
            PathMatch::Regex(pattern) => TextKey::Regex(&pattern.source),
            PathMatch::Segments(path) => TextKey::Prefix(path),
        };
        let query = self.query_params.iter();
        let query = query.map(|one| (&*one.name, text(&one.value)));
        MatchKey {
            path: (path, None),
            method: self.method.as_deref(),
            headers: headers(&self.headers),
            query: sorted(query.collect()),
        }
    }
}

impl Matched for GrpcMatch {
    fn key(&self) -> MatchKey<'_> {
        let [service, method] = [&self.service, &self.method].map(Option::as_ref);
        let service = service.map_or(TextKey::Any, text);
        MatchKey {
            path: (service, Some(method.map_or(TextKey::Any, text))),
            method: None,
            headers: headers(&self.headers),
            query: Vec::new(),
        }
    }
}

fn text(value: &StringMatch) -> TextKey<'_> {
    match value {
        StringMatch::Exact(text) => TextKey::Exact(text),
        StringMatch::Prefix(text) => TextKey::Prefix(text),
        StringMatch::Present => TextKey::Any,
        StringMatch::Regex(pattern) => TextKey::Regex(&pattern.source),
    }
}

fn headers(headers: &[HeaderMatch]) -> Named<'_> {
    let named = headers.iter().filter_map(|one| match &one.key {
        HeaderKey::Named(name) => Some((&**name, text(&one.value))),
        HeaderKey::Claim(_) => None,
    });
    sorted(named.collect())
}

fn sorted(mut named: Named<'_>) -> Named<'_> {
    named.sort_unstable();
    named
}

/// Whether a text can meet both conditions of each name, as far as it is plain.
fn can_both_hold(one: &Named<'_>, other: &Named<'_>) -> bool {
    one.iter().all(|(name, value)| {
        let mut same_name = other.iter().filter(|(other, _)| other == name);
        same_name.all(|(_, other)| other == value)
    })
}

/// Rule of a route.
#[derive(Clone, PartialEq)]
struct Owner<'a> {
    route: &'a ObjectRef,
    index: usize,
    location: Location,
}

impl<'a> Owner<'a> {
    fn new<T>(object: &'a Object<T>, index: usize, line: Line) -> Self {
        Self {
            route: &object.id,
            index,
            location: location(object, line),
        }
    }
}

/// Conditions on headers and on query parameters of a rule.
type Tied<'a> = (Named<'a>, Named<'a>, Owner<'a>);

/// Matches of the routes so far, the oldest first.
#[derive(Default)]
struct Known<'a> {
    /// Number of matches so far, as [`CHECKED_MAX`] counts them.
    count: usize,
    /// First rule of HTTP without a condition on the path or anything else; regular expressions come after it.
    unconditional: HashMap<Class, Owner<'a>>,
    /// First rule with the conditions.
    first: HashMap<(Class, MatchKey<'a>), Owner<'a>>,
    /// First matches of each rank whose path is the same: the key has numbers of conditions instead of them.
    tied: HashMap<(Class, MatchKey<'a>, [usize; 2]), Vec<Tied<'a>>>,
}

/// State that decides which lists have the matches of a route.
struct World<'a> {
    view: View<'a>,
    domain: &'a str,
    gateways: Gateways<'a>,
}

/// Reports rules that no request reaches, and rules that share requests with a rule of an older route.
pub(in crate::validate::references) fn check(
    set: &ResourceSet,
    domain: &str,
    controller: &str,
    found: &mut Vec<Diagnostic>,
) {
    let view = View::from(set);
    let world = &World {
        view,
        domain,
        gateways: Gateways::of(view, controller),
    };
    let mut known = Known::default();
    let routes = GatewayRoute::all(view);
    let classes = classes(world, &routes);
    for (route, classes) in routes.iter().zip(&classes) {
        if let GatewayRoute::Http(route) = route {
            known.note_unconditional(classes, route);
        }
    }
    for (route, classes) in routes.iter().zip(&classes) {
        match route {
            GatewayRoute::Grpc(route) => known.add(classes, route, &route.spec.rules, found),
            GatewayRoute::Http(route) => known.add(classes, route, &route.spec.rules, found),
            GatewayRoute::Tcp(_) | GatewayRoute::Tls(_) => {}
        }
    }
}

/// Returns the classes of the lists of each route.
fn classes(world: &World<'_>, routes: &[GatewayRoute<'_>]) -> Vec<Vec<Class>> {
    let mut members: BTreeMap<List, Vec<usize>> = BTreeMap::new();
    for (index, route) in routes.iter().enumerate() {
        for list in lists(world, route.attaching()) {
            members.entry(list).or_default().push(index);
        }
    }
    let mut of_routes = vec![Vec::new(); routes.len()];
    let distinct: BTreeSet<Vec<usize>> = members.into_values().collect();
    for (class, members) in distinct.into_iter().enumerate() {
        for route in members {
            of_routes[route].push(class);
        }
    }
    of_routes
}

/// Returns the lists that have the matches of a route.
fn lists(world: &World<'_>, route: AttachingRoute<'_>) -> BTreeSet<List> {
    let mut lists = BTreeSet::new();
    for parent in route.parents {
        match world.gateways.attach(route, parent) {
            Some(attached) => {
                for one in attached.into_iter().flatten() {
                    let (owner, name) = one.gateway.id_of(one.listener);
                    let at = Arc::<str>::from(format!("{owner} {name}"));
                    lists.extend(one.hosts.into_iter().map(|host| (Arc::clone(&at), host)));
                }
            }
            None => {
                let service = service_of(world.view, route, parent, world.domain);
                if let Some(Ok(service)) = service {
                    let of = match service.is_producer {
                        true => "",
                        false => &*route.id.namespace,
                    };
                    let at = format!("{} {:?} {of}", service.host, service.port);
                    lists.insert((at.into(), "*".into()));
                }
            }
        }
    }
    lists
}

impl<'a> Known<'a> {
    /// Records a rule that takes all requests for which there is no other path.
    fn note_unconditional(&mut self, classes: &[Class], object: &'a Object<HTTPRoute>) {
        for (index, rule) in object.spec.rules.iter().enumerate() {
            let mut keys = rule.matches.iter().map(Matched::key);
            if keys.any(|key| key.is_unconditional()) {
                for class in classes {
                    let owner = || Owner::new(object, index, rule.line);
                    self.unconditional.entry(*class).or_insert_with(owner);
                }
            }
        }
    }

    fn add<T, M: Matched>(
        &mut self,
        classes: &[Class],
        object: &'a Object<T>,
        rules: &'a [RouteRule<M>],
        found: &mut Vec<Diagnostic>,
    ) {
        let matches: usize = rules.iter().map(|rule| rule.matches.len()).sum();
        self.count = self.count.saturating_add(matches * classes.len());
        if self.count > CHECKED_MAX {
            return;
        }
        for (index, rule) in rules.iter().enumerate() {
            let own = Owner::new(object, index, rule.line);
            let (mut is_reached, mut earlier, mut shared) = (false, None, None);
            for key in rule.matches.iter().map(Matched::key) {
                for class in classes {
                    match self.precedes(*class, &key, &own) {
                        Some((owner, true)) => _ = earlier.get_or_insert(owner),
                        Some((owner, false)) => {
                            is_reached = true;
                            shared.get_or_insert(owner);
                        }
                        None => is_reached = true,
                    }
                }
            }
            let field = format!("spec.rules[{index}]");
            if let Some(owner) = earlier.as_ref().filter(|_| !is_reached) {
                let is_wider = self.unconditional.values().any(|wider| wider == owner);
                let (why, help) = match is_wider && rule.matches.iter().any(M::is_regex) {
                    true => (
                        "a regular expression comes after all prefixes, and a rule without conditions takes what is left",
                        "write the paths as `Exact` or `PathPrefix`",
                    ),
                    false => (
                        "earlier ones have its matches",
                        "remove one of the rules, or change its matches or the hosts",
                    ),
                };
                let message = format!(
                    "no request reaches the rule: {why}, such as rule {} of {}",
                    owner.index, owner.route
                );
                let mut diagnostic = warning(object, GA043, rule.line, field, message);
                diagnostic.help(help);
                diagnostic.related(owner.location.clone(), "this one applies");
                found.push(diagnostic);
                continue;
            }
            let of_others = shared.or(earlier);
            if let Some(owner) = of_others.filter(|owner| owner.route != own.route) {
                let message = format!(
                    "rule {} of {} is as specific, and requests can match both: the older route gets them",
                    owner.index, owner.route
                );
                let mut diagnostic = note(object, GA040, rule.line, &field, message);
                diagnostic
                    .help("put both rules into one route, whose order counts, or add a condition");
                diagnostic.related(owner.location, "this one is of the older route");
                found.push(diagnostic);
            }
        }
    }

    /// Adds a match to the lists of a class. Returns the rule that precedes it for some requests, and whether for all; `None` without one.
    fn precedes(
        &mut self,
        class: Class,
        key: &MatchKey<'a>,
        own: &Owner<'a>,
    ) -> Option<(Owner<'a>, bool)> {
        if matches!(key.path, (TextKey::Regex(_), None))
            && let Some(owner) = self.unconditional.get(&class)
        {
            return Some((owner.clone(), true));
        }
        match self.first.entry((class, key.clone())) {
            Entry::Occupied(first) => {
                let owner = first.get();
                let is_own = (owner.route, owner.index) == (own.route, own.index);
                return (!is_own).then(|| (owner.clone(), true));
            }
            Entry::Vacant(vacant) => _ = vacant.insert(own.clone()),
        }
        let counts = [key.headers.len(), key.query.len()];
        if counts == [0, 0] {
            return None;
        }
        let rank = MatchKey {
            headers: Vec::new(),
            query: Vec::new(),
            ..key.clone()
        };
        let tied = self.tied.entry((class, rank, counts)).or_default();
        let mut others = tied.iter().filter(|(.., owner)| owner.route != own.route);
        let other = others.find(|(headers, query, _)| {
            can_both_hold(&key.headers, headers) && can_both_hold(&key.query, query)
        });
        let other = other.map(|(.., owner)| (owner.clone(), false));
        if tied.len() < TIES_MAX {
            tied.push((key.headers.clone(), key.query.clone(), own.clone()));
        }
        other
    }
}
