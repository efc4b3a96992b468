//! Golden files of the renderers.

use super::*;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load_bytes;

/// A file with errors of many sorts.
const TEXT: &str = r#"apiVersion: networking.istio.io/v1
kind: Gateway
metadata:
  name: Edge
  lables: {a: b}
spec: {}
---
apiVersion: networking.istio.io/v7
kind: Sidecar
metadata: {name: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: a
  namespace: yes
  labels: {größe: "über, alles: 100%"}
  name: b
---
kind: [
"#;

fn found() -> Vec<Diagnostic> {
    let mut found = Diagnostics::default();
    load_bytes("mesh.yaml", TEXT.as_bytes(), &mut found);
    found.into_sorted()
}

#[test]
fn text_shows_the_place() {
    insta::assert_snapshot!(text(&found(), Style::Plain));
}
