use super::*;

const SPEC: &str = "defaultBackend: {service: {name: web, port: {number: 80}}}";

fn count(text: &str, settings: &IngressSettings) -> usize {
    routes(text, settings).len()
}

#[test]
fn ingress_of_a_class_of_the_controller_is_served() {
    let settings = IngressSettings::default();
    assert_eq!(count(&of_class("strait", "shop/a", "", SPEC), &settings), 1);
    assert_eq!(count(&of_class("nginx", "shop/a", "", SPEC), &settings), 0);
    assert_eq!(count(&of_class("nginx", "shop/a", "", SPEC), &nginx()), 1);
    let unknown = of_class("missing", "shop/a", "", SPEC);
    assert_eq!(count(&unknown, &settings), 0);
    assert_eq!(
        findings(&unknown, &settings),
        ["IG001 no IngressClass `missing` exists: the Ingress is not served"]
    );
}

#[test]
fn class_in_an_annotation_is_compared_with_names_and_comes_first() {
    let settings = IngressSettings::default();
    let of = |annotation: &str, class: &str| {
        format!(
            "---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: a, namespace: shop, annotations: \
             {{kubernetes.io/ingress.class: {annotation}}}}}, spec: {{{class}{SPEC}}}}}\n"
        )
    };
    assert_eq!(count(&of("strait", ""), &settings), 1);
    assert_eq!(count(&of("nginx", ""), &settings), 0);
    let both = of("strait", "ingressClassName: nginx, ");
    assert_eq!(count(&both, &settings), 1);
    assert!(findings(&both, &settings)[0].starts_with("IG003 "));
}

#[test]
fn ingress_without_a_class_needs_a_default_class_or_the_flag() {
    let settings = IngressSettings::default();
    let none = format!(
        "---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: a, namespace: shop}}, spec: {{{SPEC}}}}}\n"
    );
    assert_eq!(count(&none, &settings), 0);
    assert!(findings(&none, &settings)[0].starts_with("IG001 the Ingress has no class"));
    let without_class = IngressSettings {
        without_class: true,
        ..IngressSettings::default()
    };
    assert_eq!(count(&none, &without_class), 1);
    let of_default = |controller: &str| {
        format!(
            "{none}---\n{{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {{name: main, annotations: \
             {{ingressclass.kubernetes.io/is-default-class: 'true'}}}}, spec: {{controller: {controller}}}}}\n"
        )
    };
    assert_eq!(
        count(&of_default("strait.io/ingress-controller"), &settings),
        1
    );
    assert_eq!(count(&of_default("k8s.io/ingress-nginx"), &settings), 0);
}
