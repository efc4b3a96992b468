//! Tests of the command line as users see it.

use clap::CommandFactory;
use traffic::route::PathNormalization;

use super::*;

/// Adds the help texts of a command and of those below it.
fn add_help(name: &str, command: &mut clap::Command, page: &mut String) {
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let help = help.join("\n");
    page.push_str(&format!(
        "\n## {name}\n\n```text\n{}\n```\n",
        help.trim_end()
    ));
    for below in command.get_subcommands_mut() {
        if below.get_name() != "help" {
            let name = format!("{name} {}", below.get_name());
            add_help(&name, below, page);
        }
    }
}

/// Compares the reference page with the help texts that it is made from. `UPDATE_DOCS=1` writes the page.
#[test]
fn reference_page_equals_the_help_texts() {
    let mut page = String::from(
        "# Command line\n\nMade from the help texts of the binary, which a test compares with this page.\n",
    );
    let mut cli = command_line().term_width(100);
    cli.build();
    add_help("strait", &mut cli, &mut page);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        page,
        "run the tests once with UPDATE_DOCS=1"
    );
}

#[test]
fn arguments_are_consistent() {
    command_line().debug_assert();
}

#[test]
fn usage_errors_are_rejected() {
    for wrong in [
        &["strait"][..],
        &["strait", "fly"],
        &["strait", "run"],
        &["strait", "run", "--config", "x", "--cluster", "a/b"],
        &["strait", "run", "--config", "x", "--labels", "novalue"],
        &["strait", "run", "--config", "x", "--drain-time", "soon"],
    ] {
        assert!(Cli::try_parse_from(wrong).is_err(), "{wrong:?}");
    }
    let settings = [
        "strait",
        "run",
        "--config",
        "x",
        "--labels",
        "a=b,c=d",
        "--drain-time",
        "5s",
    ];
    assert!(Cli::try_parse_from(settings).is_ok());
}

/// Command, name and argument of each flag, including nested commands.
fn flags() -> Vec<(String, String, clap::Arg)> {
    fn collect(command: &clap::Command, found: &mut Vec<(String, String, clap::Arg)>) {
        for argument in command.get_arguments() {
            if let Some(flag) = argument.get_long().filter(|flag| *flag != "help") {
                let name = command.get_name().to_owned();
                found.push((name, flag.to_owned(), argument.clone()));
            }
        }
        let nested = command.get_subcommands();
        nested
            .filter(|one| one.get_name() != "help")
            .for_each(|one| collect(one, found));
    }
    let mut cli = Cli::command();
    cli.build();
    let mut found = Vec::new();
    let commands = cli.get_subcommands();
    commands
        .filter(|one| one.get_name() != "help")
        .for_each(|one| collect(one, &mut found));
    found
}

/// Flag whose variable `check` reads itself: the variable applies only without paths on the command line.
const READ_BY_HAND: [&str; 1] = ["check --config"];

/// Flags that ask for another output of one call.
const OF_ONE_CALL: [&str; 5] = [
    "tap --schema",
    "test --init",
    "test --schema",
    "simulate --schema",
    "top --once",
];

/// Variables in which Kubernetes manifests pass the identity of the pod to a container, and that of a standard.
const OF_PODS: [&str; 4] = [
    "POD_NAME",
    "POD_NAMESPACE",
    "PROXY_CONFIG",
    "SPIFFE_ENDPOINT_SOCKET",
];

#[test]
fn each_flag_has_an_environment_variable() {
    let mut without = Vec::new();
    let mut variables = 0;
    for (command, flag, argument) in flags() {
        let name = format!("{command} --{flag}");
        let variable = argument.get_env().and_then(|variable| variable.to_str());
        match variable {
            Some(variable) if variable.starts_with("STRAIT_") => variables += 1,
            Some(variable) if OF_PODS.contains(&variable) => (),
            None if READ_BY_HAND.contains(&name.as_str()) => (),
            None if OF_ONE_CALL.contains(&name.as_str()) => (),
            _ => without.push(name),
        }
    }
    assert!(variables > 60, "{variables} variables");
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn mesh_config_sets_flags_that_are_not_given() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "trustDomain: td.test\ntrustDomainAliases: [old.test, older.test]\naccessLogFile: ''\n\
        defaultConfig: {concurrency: 3, gatewayTopology: {numTrustedProxies: 2}}\n\
        pathNormalization: {normalization: MERGE_SLASHES}\n\
        extensionProviders: [{name: p, envoyExtAuthzGrpc: {service: a.test, port: 1}}]\n";
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    let run = |more: &[&str]| {
        let args = ["strait", "run", "--config", "mesh", "--mesh-config", path];
        let args = args.iter().chain(more).map(OsString::from);
        let Command::Run(args) = parse(args).unwrap().command else {
            panic!("not `run`");
        };
        args
    };
    let args = run(&["--trusted-hops", "1"]);
    let identity = args.identity.identity();
    let domains: Vec<&str> = identity.workload.trust_domains().collect();
    assert_eq!(domains, ["td.test", "old.test", "older.test"]);
    assert_eq!(identity.mesh_config.authorizers.len(), 1);
    assert_eq!(
        identity.path_normalization(),
        PathNormalization::MergeSlashes
    );
    assert_eq!(args.serve.trusted_hops, 1);
    assert_eq!(args.serve.access_log, None);
    assert!(identity.mesh_config.is_given && identity.mesh_config.access_log.is_none());
    assert_eq!(args.serve.concurrency.map(|count| count.get()), Some(3));
    let args = run(&["--path-normalization", "base"]);
    let identity = args.identity.identity();
    assert_eq!(identity.path_normalization(), PathNormalization::Base);

    std::fs::write(file.path(), "trustDomain: [td.test]\n").unwrap();
    let args = ["strait", "run", "--config", "mesh", "--mesh-config", path];
    let error = parse(args.iter().map(OsString::from))
        .unwrap_err()
        .to_string();
    assert!(error.contains("trustDomain"), "{error}");
}

/// Flags whose field has another name: the same paths are positional arguments elsewhere, `for` is a keyword, and
/// `from` is meaningless without its value.
const OTHER_FIELDS: [(&str, &str); 5] = [
    ("config", "paths"),
    ("for", "importer"),
    ("for", "proxies"),
    ("from", "sources"),
    ("identity", "client_identity"),
];

/// The field of a repeatable flag is the plural of its name.
#[test]
fn each_flag_sets_the_field_of_its_name() {
    let flags = flags();
    let mut different = Vec::new();
    for (_, flag, argument) in &flags {
        let (name, field) = (flag.replace('-', "_"), argument.get_id().as_str());
        let is_same = field == name
            || field == format!("{name}s")
            || OTHER_FIELDS.contains(&(flag.as_str(), field));
        if !is_same {
            different.push(format!("--{flag} sets {field}"));
        }
    }
    assert!(flags.len() > 40, "{} flags", flags.len());
    assert!(different.is_empty(), "{different:?}");
}

/// Subcommands and flags of other tools have the same meaning here.
#[test]
fn command_lines_of_other_tools_are_understood() {
    for line in [
        "strait version",
        "strait validate -f mesh",
        "strait run -f mesh",
        "strait run --filename mesh",
        "strait explain -f mesh -X POST http://a.example/",
        "strait explain -f mesh http://a.example/",
    ] {
        let parsed = parse(line.split(' ').map(OsString::from));
        assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
    }
    let explained = |line: &str| match parse(line.split(' ').map(OsString::from)).unwrap().command {
        Command::Explain(args) => format!("{} {}", args.method(), args.url()),
        other => panic!("{other:?}"),
    };
    assert_eq!(explained("strait explain -f a http://a/"), "GET http://a/");
    assert_eq!(
        explained("strait explain -f a -X PUT http://a/"),
        "PUT http://a/"
    );
    assert_eq!(
        explained("strait explain -f a PUT http://a/"),
        "PUT http://a/"
    );
    let twice = "strait explain -f a -X PUT GET http://a/";
    assert!(parse(twice.split(' ').map(OsString::from)).is_err());
}

#[test]
fn missing_source_names_every_kind_of_source() {
    for (line, other) in [
        ("strait run", "--control"),
        ("strait explain GET /", "--admin"),
    ] {
        let error = parse(line.split(' ').map(OsString::from))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("--config") && error.contains(other),
            "{error}"
        );
    }
    let error = parse(
        ["strait", "control", "--tls-name", "a b"]
            .map(OsString::from)
            .into_iter(),
    );
    assert!(error.unwrap_err().to_string().contains("no host name"));
}

#[test]
fn demo_logs_warnings_and_a_proxy_everything() {
    for (line, level) in [
        ("strait demo", "warn"),
        ("strait demo --log-level debug", "debug"),
        ("strait run -f a", "info"),
    ] {
        let found = match parse(line.split(' ').map(OsString::from)).unwrap().command {
            Command::Demo(args) => args.serve.log_level,
            Command::Run(args) => args.serve.log_level,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, level, "{line}");
    }
}

/// A source line that ends in the middle of a paragraph would be wrapped a second time, at the width of the terminal.
#[test]
fn paragraphs_of_help_texts_are_single_lines() {
    fn visit(command: &clap::Command) {
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2) {
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let breaks = is_prose(pair[0]) && is_prose(pair[1]) && !pair[0].ends_with(['.', ':']);
            assert!(!breaks, "{}: {pair:?}", command.get_name());
        }
        command.get_subcommands().for_each(visit);
    }
    visit(&command_line());
}
