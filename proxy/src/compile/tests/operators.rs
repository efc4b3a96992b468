//! What validation lets into header values, and what filters make of it.

use config_loader::validate::scalar::{OPERATORS, header_value_problem, operator_problems};
use proptest::prelude::*;
use proptest::sample::select;

use crate::filter::template::Template;

fn is_valid(text: &str) -> bool {
    header_value_problem(text).is_none() && operator_problems(text).is_empty()
}

#[test]
fn every_operator_that_is_valid_is_compiled() {
    for operator in OPERATORS {
        let texts = [format!("%{operator}%"), format!("%{operator}(x)%")];
        assert!(texts.iter().any(|text| is_valid(text)), "{operator}");
        for text in texts {
            assert_eq!(is_valid(&text), Template::parse(&text).is_ok(), "{text}");
        }
    }
}

/// A value of texts and operators with all kinds of arguments.
fn value() -> impl Strategy<Value = String> {
    let name = prop_oneof![8 => select(OPERATORS.to_vec()), 1 => select(vec!["REQUEST", "A", "_"])];
    let argument = select(vec![
        "",
        "()",
        "(x)",
        "(x-y?:path)",
        "(:path)",
        "(:Path)",
        "(:status)",
        "(Host)",
        "(a b)",
        "(a?)",
        "(?a)",
        "(a?b?c)",
        "(%Y-%m)",
        "(%3f)",
        "(%0f)",
        "(%s%f%9f)",
        "(%3)",
        "(%)",
        "(%Q)",
        "(ä)",
        "(%ä)",
        "(a.b_c!)",
        "(a\")",
        "[x]",
        "(x)y",
    ]);
    let length = select(vec!["", ":10", ":", ":x", "7", ":99999999999999999999999"]);
    let operator = (name, argument, length)
        .prop_map(|(name, argument, length)| format!("%{name}{argument}{length}%"));
    let part = prop_oneof![
        4 => operator,
        1 => select(vec!["text", "%%", "100%% ", "(", "ä", "%", "\""]).prop_map(str::to_owned),
    ];
    proptest::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_valid_is_compiled(value in value()) {
        if is_valid(&value) {
            let compiled = Template::parse(&value);
            prop_assert!(compiled.is_ok(), "{} {:?}", value, compiled);
        }
    }

    #[test]
    fn one_operator_is_valid_if_it_can_be_compiled(
        name in select(OPERATORS.to_vec()),
        argument in "(\\([a-zA-Z0-9:?%. -]{0,6}\\))?",
        length in "(:?[0-9]{0,2})?",
    ) {
        let value = format!("%{name}{argument}{length}%");
        prop_assert_eq!(is_valid(&value), Template::parse(&value).is_ok(), "{}", value);
    }
}
