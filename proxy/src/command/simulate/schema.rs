//! JSON Schema of scenarios. The proxy is described as in the schema of test files.

use serde_json::Value;

const SCENARIO: &str = include_str!("schema.json");
const TEST_FILE: &str = include_str!("../test/schema.json");

/// Returns the schema.
///
/// # Panics
///
/// Panics if a schema of this program is not JSON.
pub(super) fn text() -> String {
    let parse = |text| serde_json::from_str::<Value>(text).expect("schemas are JSON");
    let (mut schema, of_tests) = (parse(SCENARIO), parse(TEST_FILE));
    schema["properties"]["as"] = of_tests["properties"]["as"].clone();
    format!("{schema:#}\n")
}
