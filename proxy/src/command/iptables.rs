//! `strait iptables`: makes the kernel hand a workload's connections to its sidecar, as `istio-iptables` does.
//!
//! `capture` is what the flags say; `rules` turns it into rules and `ruleset` into texts for `iptables-restore`, both
//! pure; `tools` and `routes` run the tools of the system, and `apply` takes back what cannot be done as a whole.

mod apply;
mod capture;
mod routes;
mod rules;
mod ruleset;
mod tools;

use std::fmt::Write as _;
use std::io::Write as _;

use clap::{Args, Subcommand};

use self::apply::{Step, all_or_nothing, as_far_as_possible};
use self::capture::{CaptureArgs, InterceptionMode};
use self::routes::Setting;
use self::rules::{Family, rules};
use self::ruleset::Ruleset;
use self::tools::{BackendArg, Tools, choose, missing_ipv6, missing_right};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_USAGE, report};

/// Arguments of `strait iptables`.
#[derive(Debug, Args)]
pub struct IptablesArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// What to do with the rules.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Install the rules that capture a workload's connections, in place of those of an earlier run
    Install(InstallArgs),
    /// Remove everything that `install` has added
    Remove,
    /// Print the rules that `install` would add with these flags, and those that are installed
    Show(ShowArgs),
}

/// Arguments of `strait iptables install`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strait iptables install                                    everything but DNS, for a proxy of user 1337
  strait iptables install -m TPROXY --proxy-uid 1337         keep the clients' addresses on inbound connections
  strait iptables install --exclude-inbound-ports 9000-9010 --exclude-outbound-cidrs 169.254.169.254
  strait iptables install --dry-run                          only print the rules

Run it once per network namespace before the workload starts: in an init container with the capabilities NET_ADMIN and
NET_RAW. It runs iptables-restore, ip6tables-restore and ip. All of it is installed or, after an error, nothing.")]
pub struct InstallArgs {
    /// What is captured.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// Which tools.
    #[command(flatten)]
    pub tools: ToolArgs,
    /// Print the rules, and change nothing
    #[arg(short = 'n', long, env = "STRAIT_IPTABLES_DRY_RUN")]
    pub dry_run: bool,
}

/// Arguments of `strait iptables show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// What is captured.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// Which tools.
    #[command(flatten)]
    pub tools: ToolArgs,
}

/// Which tools of the system are used, for what.
#[derive(Clone, Copy, Debug, Args)]
pub struct ToolArgs {
    /// Implementation of iptables
    #[arg(long, value_enum, default_value_t = BackendArg::Auto, env = "STRAIT_IPTABLES_BACKEND")]
    pub backend: BackendArg,
    /// Leave IPv6 as it is; without IPv6 in the kernel, that is the default
    #[arg(long, env = "STRAIT_IPTABLES_NO_IPV6")]
    pub no_ipv6: bool,
}

impl ToolArgs {
    /// Why nothing is captured over this IP version, if that is so.
    fn skipped(self, family: Family) -> Option<&'static str> {
        match family {
            Family::V4 => None,
            Family::V6 if self.no_ipv6 => Some("--no-ipv6 is set"),
            Family::V6 => missing_ipv6(),
        }
    }
}

/// Runs `strait iptables`.
pub fn run(args: &IptablesArgs) -> u8 {
    let result = match &args.action {
        Action::Install(args) if args.dry_run => {
            checked(&args.capture, || Ok(wanted_text(&args.capture, args.tools)))
        }
        Action::Install(args) => checked(&args.capture, || install(&args.capture, args.tools)),
        Action::Remove => remove().map_err(|error| (EXIT_INPUT, error)),
        Action::Show(args) => checked(&args.capture, || Ok(show(&args.capture, args.tools))),
    };
    match result {
        Ok(text) => {
            // the reader may have gone away
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
            EXIT_DONE
        }
        Err((code, error)) => {
            report(&error);
            code
        }
    }
}

fn checked(
    capture: &CaptureArgs,
    act: impl FnOnce() -> Result<String, String>,
) -> Result<String, (u8, String)> {
    capture.check().map_err(|error| (EXIT_USAGE, error))?;
    act().map_err(|error| (EXIT_INPUT, error))
}

/// Installs, and says what.
fn install(capture: &CaptureArgs, tools: ToolArgs) -> Result<String, String> {
    if let Some(right) = missing_right() {
        return Err(right);
    }
    let mut steps = Vec::new();
    let mut cleaning = Vec::new();
    let mut said = String::new();
    for family in Family::ALL {
        let skipped = tools.skipped(family);
        let to = match skipped {
            None => rules(capture, family),
            Some(_) => Ruleset::default(),
        };
        for setting in Setting::ALL
            .into_iter()
            .filter(|one| one.family() == family)
        {
            let wanted = skipped.is_none() && setting.is_needed(capture);
            match (wanted, setting.is_present()?) {
                (true, false) => steps.push(Step::Add(setting)),
                (false, true) => cleaning.push(Step::Delete(setting)),
                _ => {}
            }
        }
        if let Some(reason) = skipped {
            cleaning.extend(removals(family, None)?);
            let _ = writeln!(said, "{} is not captured: {reason}", family.name());
            continue;
        }
        let (chosen, from) = choose(family, tools.backend)?;
        let _ = writeln!(
            said,
            "{} is captured by {chosen}: {}",
            family.name(),
            summary(capture)
        );
        cleaning.extend(removals(family, Some(&chosen))?);
        steps.push(Step::Replace {
            tools: chosen,
            from,
            to,
        });
    }
    steps.extend(cleaning);
    all_or_nothing(&steps)?;
    Ok(said)
}

/// Steps that remove our rules from the backends, but for one.
fn removals(family: Family, but: Option<&Tools>) -> Result<Vec<Step>, String> {
    let others = Tools::find(family).into_iter();
    let others = others.filter(|tools| but.is_none_or(|but| but.backend != tools.backend));
    let mut steps = Vec::new();
    for tools in others {
        // a backend that does not work here has nothing of ours either
        let Ok(saved) = tools.saved() else {
            continue;
        };
        if !saved.ours.is_empty() {
            steps.push(Step::Replace {
                tools,
                from: saved.ours,
                to: Ruleset::default(),
            });
        }
    }
    Ok(steps)
}

/// What is captured, in one line.
fn summary(capture: &CaptureArgs) -> String {
    let how = match capture.interception_mode {
        InterceptionMode::Redirect => "REDIRECT",
        InterceptionMode::Transparent => "TPROXY",
    };
    format!(
        "outbound to port {}, inbound to port {} ({how})",
        capture.outbound_port, capture.inbound_port
    )
}

/// Removes everything, and says what.
fn remove() -> Result<String, String> {
    if let Some(right) = missing_right() {
        return Err(right);
    }
    let mut steps = Vec::new();
    for family in Family::ALL {
        steps.extend(removals(family, None)?);
        for setting in Setting::ALL
            .into_iter()
            .filter(|one| one.family() == family)
        {
            if setting.is_present()? {
                steps.push(Step::Delete(setting));
            }
        }
    }
    as_far_as_possible(&steps)?;
    Ok(match steps.is_empty() {
        true => "nothing was installed\n".to_owned(),
        false => "removed\n".to_owned(),
    })
}

/// The rules that these flags ask for, as text for people and for `iptables-restore --noflush`.
fn wanted_text(capture: &CaptureArgs, tools: ToolArgs) -> String {
    let mut text = String::new();
    for family in Family::ALL {
        let name = family.name();
        if let Some(reason) = tools.skipped(family) {
            let _ = writeln!(text, "# {name}: not captured: {reason}");
            continue;
        }
        let _ = writeln!(text, "# {name}");
        let settings = Setting::ALL
            .into_iter()
            .filter(|one| one.family() == family);
        for setting in settings.filter(|one| one.is_needed(capture)) {
            let _ = writeln!(text, "# ip {}", setting.add().join(" "));
        }
        text.push_str(&Ruleset::default().replaced_by(&rules(capture, family)));
    }
    text
}

/// What would be installed, and what is.
fn show(capture: &CaptureArgs, tools: ToolArgs) -> String {
    let mut text = format!(
        "## `install` with these flags\n{}",
        wanted_text(capture, tools)
    );
    text.push_str("\n## Installed\n");
    let start = text.len();
    for family in Family::ALL {
        for tools in Tools::find(family) {
            match tools.saved() {
                Ok(saved) if saved.ours.is_empty() => {}
                Ok(saved) => {
                    let rules = Ruleset::default().replaced_by(&saved.ours);
                    let _ = write!(text, "# {}, {tools}\n{rules}", family.name());
                }
                Err(error) => {
                    let _ = writeln!(text, "# {}, {tools}: {error}", family.name());
                }
            }
        }
        for setting in Setting::ALL
            .into_iter()
            .filter(|one| one.family() == family)
        {
            if setting.is_present() == Ok(true) {
                let _ = writeln!(text, "# ip {}", setting.add().join(" "));
            }
        }
    }
    if text.len() == start {
        text.push_str("# nothing\n");
    }
    text
}
