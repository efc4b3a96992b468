//! Description of the machine and the programs, which a reader needs to judge the figures.

use std::fs;
use std::process::Command;
use std::thread;

use crate::compare::arguments::Arguments;
use crate::compare::tool::{Tool, Tools};

/// Returns names and values for the head of the report.
pub(super) fn describe(arguments: &Arguments, tools: &Tools) -> Vec<(String, String)> {
    let cpu = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| cpu_model(&text));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let date = Command::new("date").args(["-u", "+%F"]).output().ok();
    let date = date.and_then(|output| String::from_utf8(output.stdout).ok());
    let mut facts = vec![
        ("date".to_owned(), or_unknown(date)),
        (
            "CPU".to_owned(),
            format!("{}, {cores} cores seen", or_unknown(cpu)),
        ),
        ("kernel".to_owned(), or_unknown(kernel)),
        (
            "rounds".to_owned(),
            format!("{} of {} s", arguments.rounds, arguments.seconds),
        ),
    ];
    for tool in [
        Tool::Strait,
        Tool::Before,
        Tool::Nginx,
        Tool::Haproxy,
        Tool::Envoy,
        Tool::Wrk,
        Tool::H2load,
    ] {
        let version = match tools.get(tool) {
            None if tool == Tool::Before => continue,
            None if tools.is_left_out(tool) => "left out".to_owned(),
            None => "not installed, left out".to_owned(),
            Some(found) => or_unknown(Some(found.version.clone())),
        };
        let name = match tool {
            Tool::Before => "strait before",
            _ => tool.binary(),
        };
        facts.push((name.to_owned(), version));
    }
    facts
}

fn or_unknown(value: Option<String>) -> String {
    value
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
        .unwrap_or("unknown".to_owned())
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tool::Wanted;

    #[test]
    fn cpu_model_is_read() {
        let text = "processor : 0\nmodel name\t: Some CPU @ 3 GHz\nmodel name\t: Other\n";
        assert_eq!(cpu_model(text).as_deref(), Some("Some CPU @ 3 GHz"));
        assert_eq!(cpu_model("processor : 0"), None);
    }

    #[test]
    fn missing_program_is_named_in_the_facts() {
        let arguments = <Arguments as clap::Parser>::parse_from(["compare"]);
        let facts = describe(&arguments, &Tools::default());
        assert!(facts.contains(&("wrk".to_owned(), "not installed, left out".to_owned())));
        assert!(facts.contains(&("rounds".to_owned(), "5 of 5 s".to_owned())));
    }
    #[test]
    fn program_that_was_not_asked_for_is_not_called_missing() {
        let arguments = <Arguments as clap::Parser>::parse_from(["compare"]);
        let wanted = Wanted {
            left_out: Tool::ALL.into_iter().collect(),
            ..Wanted::default()
        };
        let tools = Tools::find(&wanted);
        assert_eq!(tools.missing().count(), 0);
        let facts = describe(&arguments, &tools);
        assert!(facts.contains(&("envoy".to_owned(), "left out".to_owned())));
    }
}
