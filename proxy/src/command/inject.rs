//! `strait inject` and `strait uninject`: a sidecar for the workloads of files and pipes, and back.

pub(super) mod input;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use inject::stream::{Action, Done, Format, Report, Rewrite};
use inject::{Settings, Version};

use super::control::block_on;
use super::exit::show;
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, report};
use config_loader::parse;
use input::{Input, read};

/// Arguments of `strait inject`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kubectl get deploy web -o yaml | strait inject | kubectl apply -f -
  strait inject -f web.yaml -o diff              what would change
  strait inject -f manifests/ --set capture=none --require
  strait inject --show-settings > settings.yaml

Injecting twice changes nothing, and `strait uninject` gives back the workload as it was. Documents that do not change stay \
byte for byte. With an error, nothing is written to standard output. Standard error has a line for each workload.

Exits with 1 when the input is wrong.")]
pub struct InjectArgs {
    /// Input and output.
    #[command(flatten)]
    pub input: InputArgs,
    /// File with settings, YAML, as `--show-settings` prints them
    #[arg(long, value_name = "FILE", env = "STRAIT_INJECT_SETTINGS")]
    pub settings: Option<PathBuf>,
    /// Take the settings, and the version of Kubernetes, from the cluster of this context of the kubeconfig: ConfigMap
    /// strait-inject in the namespace strait-system [without a value: the current context]
    #[arg(
        long,
        value_name = "CONTEXT",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with = "settings",
        env = "STRAIT_INJECT_FROM_CLUSTER"
    )]
    pub from_cluster: Option<String>,
    /// One setting, such as capture=none or control.url=kubernetes://. May be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", env = "STRAIT_INJECT_SET")]
    pub sets: Vec<String>,
    /// Print the settings in effect as YAML, and inject nothing
    #[arg(long, env = "STRAIT_INJECT_SHOW_SETTINGS")]
    pub show_settings: bool,
    /// Image of the containers; default: the setting `image`
    #[arg(long, value_name = "IMAGE", env = "STRAIT_INJECT_IMAGE")]
    pub image: Option<String>,
    /// Version of Kubernetes; from 1.29 on, the proxy is a native sidecar [default: a version that has them]
    #[arg(long, value_name = "VERSION", env = "STRAIT_INJECT_KUBERNETES_VERSION", value_parser = Version::parse)]
    pub kubernetes_version: Option<Version>,
    /// Only set the label `strait.io/inject: enabled`, by which the webhook of a cluster injects
    #[arg(long, env = "STRAIT_INJECT_ANNOTATE_ONLY")]
    pub annotate_only: bool,
    /// Exit with 1 if no workload was injected
    #[arg(long, env = "STRAIT_INJECT_REQUIRE")]
    pub require: bool,
    /// Treatment of workloads that are skipped for another reason than that they opt out
    #[arg(long, value_enum, default_value_t = WarningsArg::Report, env = "STRAIT_INJECT_WARNINGS")]
    pub warnings: WarningsArg,
}

/// Arguments of `strait uninject`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kubectl get deploy web -o yaml | strait uninject | kubectl apply -f -
  strait uninject -f manifests/ -o diff

Workloads without a sidecar of Strait stay byte for byte.")]
pub struct UninjectArgs {
    /// Input and output.
    #[command(flatten)]
    pub input: InputArgs,
}

/// Input and output of both commands.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// File, directory (read recursively), or - for standard input. May be repeated
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "PATH",
        default_value = "-",
        env = "STRAIT_INJECT_FILENAME",
        value_delimiter = ','
    )]
    pub filenames: Vec<PathBuf>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = OutputArg::AsRead, env = "STRAIT_INJECT_OUTPUT")]
    pub output: OutputArg,
    /// Namespace of documents that name none
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        env = "STRAIT_INJECT_NAMESPACE"
    )]
    pub namespace: String,
    /// Further kind with a template of pods at `spec.template`, such as example.io/Thing. May be repeated
    #[arg(
        long = "kind",
        value_name = "GROUP/KIND",
        env = "STRAIT_INJECT_KIND",
        value_delimiter = ','
    )]
    pub kinds: Vec<String>,
    /// Print nothing about workloads to standard error
    #[arg(short, long, env = "STRAIT_INJECT_QUIET")]
    pub quiet: bool,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputArg {
    /// YAML where YAML was read, and JSON where JSON was
    AsRead,
    /// Differences, by lines
    Diff,
    /// JSON
    Json,
    /// RFC 6902 operations, a line for each object that changes
    Patch,
    /// YAML
    Yaml,
}

/// `--warnings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WarningsArg {
    /// Exit with 1
    Error,
    /// Only report them
    Report,
}

/// Runs `strait inject`.
pub fn run(args: &InjectArgs) -> u8 {
    let (settings, kubernetes) = match settings(args) {
        Ok(settings) => settings,
        Err(error) => {
            report(&error);
            return EXIT_INPUT;
        }
    };
    if args.show_settings {
        show(parse::to_yaml(&serde_json::json!(settings)).trim_end());
        return EXIT_DONE;
    }
    let action = match args.annotate_only {
        true => Action::Annotate,
        false => Action::Inject,
    };
    let rewrite = Rewrite {
        kubernetes: args.kubernetes_version.or(kubernetes),
        ..rewrite(&args.input, &settings, action)
    };
    let strict = args.warnings == WarningsArg::Error;
    finish(&args.input, &rewrite, |reports| {
        let skips = reports.iter().filter(|one| match &one.done {
            Done::Skipped(skip) => !skip.is_asked_for(),
            Done::Changed(_) | Done::Same => false,
        });
        let is_injected = |one: &Report| matches!(one.done, Done::Changed(_) | Done::Same);
        match skips.count() {
            count if strict && count > 0 => Some("workloads were skipped (--warnings=error)"),
            _ if args.require && !reports.iter().any(is_injected) => {
                Some("no workload was injected (--require)")
            }
            _ => None,
        }
    })
}

/// Runs `strait uninject`.
pub fn undo(args: &UninjectArgs) -> u8 {
    let settings = Settings::default();
    let rewrite = rewrite(&args.input, &settings, Action::Uninject);
    finish(&args.input, &rewrite, |_| None)
}

fn rewrite<'a>(input: &'a InputArgs, settings: &'a Settings, action: Action) -> Rewrite<'a> {
    Rewrite {
        settings,
        namespace: &input.namespace,
        kubernetes: None,
        kinds: &input.kinds,
        action,
        format: match input.output {
            OutputArg::AsRead => Format::AsRead,
            OutputArg::Diff => Format::Diff,
            OutputArg::Json => Format::Json,
            OutputArg::Patch => Format::Patch,
            OutputArg::Yaml => Format::Yaml,
        },
    }
}

/// Returns the settings of the file or the cluster and of the flags, and the version of the cluster.
fn settings(args: &InjectArgs) -> Result<(Settings, Option<Version>), String> {
    let (mut settings, kubernetes) = match &args.from_cluster {
        None => (Settings::default(), None),
        Some(context) => {
            let server = format!("kubernetes://{context}").parse()?;
            block_on(config_server::webhook::settings_of(server))?
        }
    };
    if let Some(path) = &args.settings {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{name}: {error}; --settings names a file"))?;
        settings = inject::stream::settings(&settings, &name, &text)
            .map_err(|errors| errors.join("\n"))?;
    }
    for text in &args.sets {
        settings = settings
            .with_one(text)
            .map_err(|error| format!("--set: {error}"))?;
    }
    if let Some(image) = &args.image {
        settings.image.clone_from(image);
    }
    Ok((settings, kubernetes))
}

/// Rewrites all inputs, and writes the result unless something is wrong. `objection` is about the workloads of all.
fn finish(
    args: &InputArgs,
    rewrite: &Rewrite<'_>,
    objection: impl FnOnce(&[Report]) -> Option<&'static str>,
) -> u8 {
    let inputs = match read(&args.filenames) {
        Ok(inputs) => inputs,
        Err(error) => {
            report(&error);
            return EXIT_INPUT;
        }
    };
    let (mut out, mut reports, mut errors) = (String::new(), Vec::new(), Vec::new());
    for Input { name, text } in &inputs {
        match rewrite.text(name, text) {
            Ok(rewritten) => {
                join(&mut out, &rewritten.text, rewrite.format);
                reports.extend(rewritten.workloads);
                if rewritten.loses_comments && !args.quiet {
                    report(&format!("{name}: comments of changed documents are lost"));
                }
            }
            Err(more) => errors.extend(more),
        }
    }
    if !args.quiet {
        reports.iter().for_each(print_report);
    }
    let objection = objection(&reports).filter(|_| errors.is_empty());
    errors.extend(objection.map(str::to_owned));
    if !errors.is_empty() {
        errors.iter().for_each(|error| report(error));
        report("nothing was written");
        return EXIT_INPUT;
    }
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(out.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => EXIT_DONE,
        Err(_) => EXIT_INTERNAL, // the reader went away
    }
}

/// Appends the documents of a further file.
fn join(out: &mut String, text: &str, format: Format) {
    let are_documents = matches!(format, Format::AsRead | Format::Yaml);
    if are_documents && !out.is_empty() && !text.is_empty() {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        if !text.starts_with("---") {
            out.push_str("---\n");
        }
    }
    out.push_str(text);
}

fn print_report(one: &Report) {
    let workload = &one.workload;
    report(&match &one.done {
        Done::Changed(summary) => format!("{workload}: {summary}"),
        Done::Same => format!("{workload}: unchanged"),
        Done::Skipped(skip) => format!("{workload}: skipped: {skip}"),
    });
    for finding in &one.findings {
        report(&format!("{workload}: {finding}"));
    }
}
