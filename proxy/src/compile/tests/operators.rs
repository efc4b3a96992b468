//! Header values that validation accepts, and their effect in filters.

use config_loader::validate::scalar::{
    ABSENT_OPERATORS, OPERATORS, OperatorProblem, header_value_problem, operator_problems,
};
use proptest::prelude::*;
use proptest::sample::select;

use traffic::filter::template::Template;

fn is_valid(text: &str) -> bool {
    let is_error = |problem: &OperatorProblem<'_>| !matches!(problem, OperatorProblem::Absent(_));
    header_value_problem(text).is_none() && !operator_problems(text).iter().any(is_error)
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

#[test]
fn operators_have_values_unless_a_warning_says_that_they_have_none() {
    for (operators, is_absent) in [(&OPERATORS[..], false), (&ABSENT_OPERATORS[..], true)] {
        for operator in operators {
            let texts = [format!("%{operator}%"), format!("%{operator}(x)%")];
            let compiled = texts.iter().find_map(|text| Template::parse(text).ok());
            let compiled = compiled.expect("one of them is good");
            assert_eq!(compiled.has_absent(), is_absent, "{operator}");
            let problems = operator_problems(&texts[0]);
            let warns = problems.contains(&OperatorProblem::Absent(operator));
            assert_eq!(warns, is_absent, "{operator}");
        }
    }
}

#[test]
fn reference_page_has_every_operator() {
    let page = include_str!("../../../../docs/header-values.md");
    let (with_values, without) = page.split_once("\n## Operators without a value").unwrap();
    for (part, operators) in [
        (with_values, &OPERATORS[..]),
        (without, &ABSENT_OPERATORS[..]),
    ] {
        let named: Vec<&str> = part
            .split('`')
            .skip(1)
            .step_by(2)
            .map(|code| code.trim_matches('%').split(['(', ':']).next().unwrap())
            .collect();
        for operator in operators {
            assert!(named.contains(operator), "{operator}");
        }
    }
}

/// A value of texts and operators with all kinds of arguments.
fn value() -> impl Strategy<Value = String> {
    let name = prop_oneof![8 => select(OPERATORS.to_vec()), 2 => select(ABSENT_OPERATORS.to_vec()), 1 => select(vec!["REQUEST", "A", "_"])];
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
    fn valid_templates_are_compiled(value in value()) {
        if is_valid(&value) {
            let compiled = Template::parse(&value);
            prop_assert!(compiled.is_ok(), "{} {:?}", value, compiled);
        }
    }

    #[test]
    fn operator_is_valid_exactly_if_it_compiles(
        name in select(OPERATORS.to_vec()),
        argument in "(\\([a-zA-Z0-9:?%. -]{0,6}\\))?",
        length in "(:?[0-9]{0,2})?",
    ) {
        let value = format!("%{name}{argument}{length}%");
        // a digit behind a name is a part of it: of a name that validation does not know
        let compiled = Template::parse(&value).is_ok_and(|template| !template.has_absent());
        prop_assert_eq!(is_valid(&value), compiled, "{}", value);
    }
}
