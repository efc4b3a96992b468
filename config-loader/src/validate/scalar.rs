//! Checks of scalars that all kinds share.
//!
//! Functions named after a type parse a [`Field`](crate::raw::Field). They return the value, or `None` if the field is
//! absent, null or invalid, and report errors. The `is_` functions only test a text.

mod header;
mod list;
mod name;
mod number;
mod operator;
mod text;

pub use header::{HeaderValueProblem, header_value_problem, is_header_name};
pub use list::{at_most_one, export_to, items, labels, selector};
pub use name::{
    ip, is_dns_label, is_dns_subdomain, is_fqdn, is_label_key, is_label_value, is_object_name,
    is_wildcard_domain, subnet,
};
pub use number::{in_range, int_percent, int32, non_negative, percent, port};
pub use operator::{
    ABSENT_OPERATORS, LOG_OPERATORS, OPERATORS, OperatorProblem, operator_problems,
};
pub use text::{
    DurationProblem, REGEX_BYTES_MAX, RegexCodes, duration, duration_or_zero, enum_of,
    parse_duration, regex, text_that,
};

#[cfg(test)]
mod tests;
