//! Lookups of visible route sources, before and after changes.

use super::*;
use config_loader::{Diagnostics, load_bytes};

fn set(objects: &[(&str, &str)]) -> ResourceSet {
    let text: String = objects
        .iter()
        .map(|(name, hosts)| {
            format!(
                "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: {name}}}\n\
                 spec: {{hosts: [{hosts}], gateways: [edge], http: [{{directResponse: {{status: 200}}}}]}}\n"
            )
        })
        .collect();
    let set = load_bytes("a.yaml", text.as_bytes(), &mut Diagnostics::default());
    assert_eq!(set.virtual_services.len(), objects.len());
    set
}

fn sharing(routes: &VisibleRoutes, name: &str) -> Vec<String> {
    let names = BTreeSet::from([Arc::from(name)]);
    let nothing = ResourceSet::default();
    let sharing = routes.sharing((&nothing).into(), &names).into_iter();
    sharing.map(|source| source.id().name.to_string()).collect()
}

#[test]
fn virtual_services_share_a_name_if_their_hosts_intersect() {
    let identity = Identity::default();
    let first = set(&[
        ("a", "x.test"),
        ("b", "'*.test', x.org"),
        ("c", "y.test"),
        ("d", "'*'"),
    ]);
    let routes = VisibleRoutes::collect(&first, &identity);
    assert_eq!(sharing(&routes, "x.test"), ["a", "b", "d"]);
    assert_eq!(sharing(&routes, "*.test"), ["a", "b", "c", "d"]);
    assert_eq!(sharing(&routes, "z.org"), ["d"]);
    let second = set(&[("a", "y.test"), ("b", "'*.test'"), ("e", "x.test")]);
    let mut changes = Changes::default();
    let followed = routes.follow(&first, &second, &identity, &mut changes);
    assert!(changes.has(ATTACHED));
    for name in ["x.test", "y.test", "*.test", "*", "z.org"] {
        let fresh = VisibleRoutes::collect(&second, &identity);
        assert_eq!(sharing(&followed, name), sharing(&fresh, name), "{name}");
    }
    assert_eq!(sharing(&followed, "x.test"), ["b", "e"]);
    let names = |routes: &VisibleRoutes| -> Vec<_> {
        let all = routes.all((&second).into()).iter();
        all.map(|one| one.id().to_name()).collect()
    };
    let fresh = VisibleRoutes::collect(&second, &identity);
    assert_eq!(names(&followed), names(&fresh));
}
