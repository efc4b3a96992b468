//! `strait iptables`: makes the kernel hand a workload's connections to its sidecar, as `istio-iptables` does.
//!
//! `capture` has the flags, and `rules` turns them into rules. `ruleset` writes them for `iptables-restore`, which
//! `tools` runs; `native` gives them to nf_tables directly where no tools are installed. `routes` has the routes that
//! they need, and `apply` undoes the steps of a change that fails halfway.

mod apply;
mod capture;
mod hold;
mod native;
mod netlink;
mod require;
mod routes;
mod rule;
mod rules;
mod ruleset;
mod tools;

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;

use clap::{Args, Subcommand};

use self::apply::{Step, all_or_nothing, as_far_as_possible};
use self::capture::CaptureArgs;
use self::native::Wanted;
use self::routes::Setting;
use self::rule::Table;
use self::rules::{Family, rules};
use self::ruleset::Ruleset;
use self::tools::{BackendArg, Tools, choose, missing_ipv6, missing_right};
use super::args::socket_address;
use super::{EXIT_DONE, EXIT_INPUT, EXIT_USAGE, report};

pub use self::capture::InterceptionMode;

/// Arguments of `strait iptables`.
#[derive(Debug, Args)]
pub struct IptablesArgs {
    /// Subcommand of `strait iptables`.
    #[command(subcommand)]
    pub action: Action,
}

/// Subcommands of `strait iptables`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Install the rules that capture a workload's connections, in place of those of an earlier run
    Install(InstallArgs),
    /// Install the same rules, keep the network namespace for other containers, and serve whether the rules are in place
    Hold(HoldArgs),
    /// Remove everything that `install` has added
    Remove,
    /// Print the rules that `install` would add with these flags, and the installed rules
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

Run it once per network namespace before the workload starts: in an init container with the capabilities NET_ADMIN and \
NET_RAW. It runs iptables-restore and ip6tables-restore; where there is no iptables, as in the image of Strait, it adds \
tables of its own to nf_tables (--backend native). All of it is installed or, after an error, nothing.")]
pub struct InstallArgs {
    /// Connections to capture.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// Tools of the system to use.
    #[command(flatten)]
    pub tools: ToolArgs,
    /// Print the rules, and change nothing
    #[arg(short = 'n', long, env = "STRAIT_IPTABLES_DRY_RUN")]
    pub dry_run: bool,
}

/// Arguments of `strait iptables hold`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strait iptables hold --proxy-uid 1337                      in a container whose network a workload and its sidecar use
  strait health --capture 127.0.0.1:15022                    in the sidecar: is it ready, and are connections captured?

A workload that is started again stays in the namespace, and its connections stay captured. Rules that somebody removes are \
installed again when the next client asks. SIGTERM ends it; the rules stay.")]
pub struct HoldArgs {
    /// Connections to capture.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// Tools of the system to use.
    #[command(flatten)]
    pub tools: ToolArgs,
    /// Address that serves whether the rules are in place: /healthz/ready
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value = "127.0.0.1:15022",
        env = "STRAIT_IPTABLES_HOLD_LISTEN",
        value_parser = socket_address
    )]
    pub listen: SocketAddr,
}

/// Arguments of `strait iptables show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Connections to capture.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// Tools of the system to use.
    #[command(flatten)]
    pub tools: ToolArgs,
    /// Only check whether connections are captured, and exit with 1 if not. It needs no privilege, and runs as the user of the
    /// proxy, before the proxy: it connects to the pod itself
    #[arg(long, env = "STRAIT_IPTABLES_REQUIRE")]
    pub require: bool,
}

/// Tools of the system that change the rules.
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
    /// Returns the reason why nothing is captured over this IP version, if there is one.
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
        Action::Hold(args) => checked(&args.capture, || run_hold(args)),
        Action::Remove => remove().map_err(|error| (EXIT_INPUT, error)),
        Action::Show(args) if args.require => {
            checked(&args.capture, || require::check(&args.capture))
        }
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

/// Changes to the kernel in three parts that run one after another, and the text to print afterwards.
#[derive(Default)]
struct Plan {
    steps: Vec<Step>,
    cleaning: Vec<Step>,
    native: Wanted,
    said: String,
}

impl Plan {
    /// Adds the steps for one IP version, including the removal of rules of an earlier run.
    fn add(
        &mut self,
        family: Family,
        capture: &CaptureArgs,
        tools: ToolArgs,
        is_native: bool,
    ) -> Result<(), String> {
        let skipped = tools.skipped(family);
        for setting in settings(family) {
            if skipped.is_none() && setting.is_needed(capture) {
                self.steps.push(Step::Add(setting));
            } else {
                self.cleaning.push(Step::Delete(setting));
            }
        }
        let name = family.name();
        if let Some(reason) = skipped {
            self.cleaning.extend(removals(family, None)?);
            let _ = writeln!(self.said, "{name} is not captured: {reason}");
            return Ok(());
        }
        let rules = rules(capture, family);
        let by = if is_native {
            self.cleaning.extend(removals(family, None)?);
            self.native.push((family, rules));
            "nf_tables".to_owned()
        } else {
            let (tools, from) = choose(family, tools.backend)?;
            self.cleaning.extend(removals(family, Some(&tools))?);
            let by = tools.to_string();
            let to = Ruleset::from(rules.as_slice());
            self.steps.push(Step::Replace { tools, from, to });
            by
        };
        let _ = writeln!(
            self.said,
            "{name} is captured by {by}: {}",
            summary(capture)
        );
        Ok(())
    }
}

fn settings(family: Family) -> impl Iterator<Item = Setting> {
    let all = Setting::ALL.into_iter();
    all.filter(move |setting| setting.family() == family)
}

/// Installs the rules and returns a summary.
fn install(capture: &CaptureArgs, tools: ToolArgs) -> Result<String, String> {
    if let Some(right) = missing_right() {
        return Err(right);
    }
    let had_native = native::is_installed() == Ok(true);
    let is_native = match tools.backend {
        BackendArg::Native => true,
        BackendArg::Auto => had_native || Tools::find(Family::V4).is_empty(),
        BackendArg::Nft | BackendArg::Legacy => false,
    };
    let mut plan = Plan::default();
    for family in Family::ALL {
        plan.add(family, capture, tools, is_native)?;
    }
    let mut steps = plan.steps;
    steps.extend(plan.cleaning);
    if is_native || had_native {
        steps.push(Step::Native(plan.native));
    }
    all_or_nothing(&steps)?;
    Ok(plan.said)
}

/// Returns the steps that remove our rules from all backends except `but`.
fn removals(family: Family, but: Option<&Tools>) -> Result<Vec<Step>, String> {
    let others = Tools::find(family).into_iter();
    let others = others.filter(|tools| but.is_none_or(|but| but.backend != tools.backend));
    let mut steps = Vec::new();
    for tools in others {
        // a backend that does not work here has no rules of ours
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

/// Summary of the captured connections, in one line.
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

/// Installs the rules, and serves whether they are in place until a signal to end.
fn run_hold(args: &HoldArgs) -> Result<String, String> {
    let install = || install(&args.capture, args.tools).map(|said| report(said.trim_end()));
    install()?;
    // Rules that are removed are installed again.
    let ensure = || {
        let missing = missing_tables(&args.capture, args.tools);
        if missing.is_empty() {
            return Ok(());
        }
        let missing = format!("no rules in {}", missing.join(", "));
        report(&format!("{missing}: all rules are installed again"));
        install().map_err(|error| format!("{missing}; {error}"))
    };
    hold::serve(args.listen, ensure)?;
    Ok(String::new())
}

/// Returns the tables whose rules should be installed and are missing, for each captured IP version.
fn missing_tables(capture: &CaptureArgs, tools: ToolArgs) -> Vec<String> {
    let captured = Family::ALL
        .into_iter()
        .filter(|family| tools.skipped(*family).is_none());
    let missing = captured.flat_map(|family| {
        let wanted = rules(capture, family);
        let wanted: Vec<Table> = wanted.iter().map(|rules| rules.table).collect();
        missing_of(
            &wanted,
            |table| native::has(family, table) == Ok(true),
            || {
                let all = Tools::find(family).into_iter();
                all.filter_map(|tools| Some(tools.saved().ok()?.ours))
                    .collect()
            },
        )
        .into_iter()
        .map(move |table| format!("the table {} of {}", table.name(), family.name()))
        .collect::<Vec<_>>()
    });
    missing.collect()
}

/// Returns the wanted tables that one backend lacks: nf_tables itself if it has any of them, else the tool that lacks
/// the fewest.
fn missing_of(
    wanted: &[Table],
    is_native: impl Fn(Table) -> bool,
    saved: impl Fn() -> Vec<Ruleset>,
) -> Vec<Table> {
    let lacking = |has: &dyn Fn(Table) -> bool| -> Vec<Table> {
        let wanted = wanted.iter().copied();
        wanted.filter(|table| !has(*table)).collect()
    };
    let native = lacking(&is_native);
    if native.len() < wanted.len() {
        return native;
    }
    let of_tools = saved().into_iter();
    let of_tools = of_tools.map(|rules| lacking(&|table| rules.captures(table.name())));
    of_tools.min_by_key(Vec::len).unwrap_or(native)
}

/// Removes everything that `install` has added, and returns a summary.
fn remove() -> Result<String, String> {
    if let Some(right) = missing_right() {
        return Err(right);
    }
    let mut steps = Vec::new();
    for family in Family::ALL {
        steps.extend(removals(family, None)?);
        steps.extend(settings(family).map(Step::Delete));
    }
    if native::is_installed() == Ok(true) {
        steps.push(Step::Native(Vec::new()));
    }
    Ok(match as_far_as_possible(&steps)? {
        true => "removed\n".to_owned(),
        false => "nothing was installed\n".to_owned(),
    })
}

/// Renders the rules of these flags, as text for people and for `iptables-restore --noflush`.
fn wanted_text(capture: &CaptureArgs, tools: ToolArgs) -> String {
    let mut text = String::new();
    for family in Family::ALL {
        let name = family.name();
        if let Some(reason) = tools.skipped(family) {
            let _ = writeln!(text, "# {name}: not captured: {reason}");
            continue;
        }
        let _ = writeln!(text, "# {name}");
        for setting in settings(family).filter(|one| one.is_needed(capture)) {
            let _ = writeln!(text, "# {}", setting.command());
        }
        let rules = Ruleset::from(rules(capture, family).as_slice());
        text.push_str(&Ruleset::default().replaced_by(&rules));
    }
    text
}

/// Renders the rules that `install` would add, and the installed ones.
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
    }
    match native::is_installed() {
        Ok(true) => text
            .push_str("# nf_tables: strait_nat, strait_mangle (`nft list ruleset` prints them)\n"),
        Ok(false) => {}
        Err(error) => {
            let _ = writeln!(text, "# {error}");
        }
    }
    if text.len() == start {
        text.push_str("# nothing\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules of ours in these tables, in the format of `iptables-save`.
    fn saved(tables: &[&str]) -> Ruleset {
        let table = |name: &&str| {
            format!("*{name}\n-A OUTPUT -j STRAIT_OUTPUT\n-A STRAIT_OUTPUT -j ACCEPT\nCOMMIT\n")
        };
        let text: String = tables.iter().map(table).collect();
        Ruleset::parse(&text)
    }

    #[test]
    fn table_is_missing_unless_one_backend_has_all_that_are_wanted() {
        let both = [Table::Nat, Table::Mangle];
        let missing = |native: &[Table], tools: &[&[&str]]| {
            let is_native = |table| native.contains(&table);
            let tools = || tools.iter().map(|tables| saved(tables)).collect();
            missing_of(&both, is_native, tools)
        };
        assert_eq!(missing(&both, &[]), []);
        assert_eq!(missing(&[Table::Nat], &[]), [Table::Mangle]);
        assert_eq!(missing(&[Table::Mangle], &[&["nat"]]), [Table::Nat]);
        assert_eq!(missing(&[], &[]), both);
        assert_eq!(missing(&[], &[&["nat"], &[]]), [Table::Mangle]);
        assert_eq!(missing(&[], &[&[], &["mangle", "nat"]]), []);
    }
}
