//! `strait top`: rates of a running proxy, on one screen or as text.

mod screen;
mod state;
mod text;

use std::io::{self, IsTerminal};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use self::state::Screen;
use super::admin_client::get;
use super::args::{AdminArgs, OutputArg};
use super::{EXIT_DONE, EXIT_INPUT, EXIT_INTERNAL, EXIT_USAGE, print, report};
use crate::admin::activity::Activity;
use crate::admin::activity::rates::{Column, Rates, View};
use crate::runtime::dates;
use crate::runtime::duration::duration;

const HELP: &str = "\
Reads the page /activity of the admin server again and again, and shows the rates in between: requests per second, \
failures, latency and requests in flight by host, rule, destination, Kubernetes cluster and endpoint, and below them \
ejections, health checks and changes of the configuration as they happen. It changes nothing.

Keys: 1 to 5 or tab choose the table, left and right the column by which it is sorted, r reverses the order, / shows \
only rows with a text (esc: all), up and down scroll, q ends.

Failed requests ended with 5xx, or with a gRPC status that says so. p50 and p99 are estimates from the \
buckets of the metrics. Hosts and rules have no latency, endpoints count attempts and neither failures nor latency.

Examples:
  strait top
  strait top --once                       one interval as text, also without a terminal
  strait top --once --view endpoint --sort active
  strait top --once -o json | jq '.destinations[] | select(.p99_ms > 500)'
  kubectl port-forward POD 15000 & strait top

Exit codes: 0 done, 1 the proxy cannot be reached, 2 the usage is wrong.";

/// Minimum of `--interval`.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Time after which keys are looked at again while no reading has come.
const PAUSE: Duration = Duration::from_millis(50);

/// Arguments of `strait top`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct TopArgs {
    /// Proxy that is asked.
    #[command(flatten)]
    pub asked: AdminArgs,
    /// Time between two readings, from 100ms
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1s",
        env = "STRAIT_TOP_INTERVAL",
        value_parser = duration
    )]
    pub interval: Duration,
    /// Table to show; with --once, the only one
    #[arg(long, value_enum, env = "STRAIT_TOP_VIEW")]
    pub view: Option<View>,
    /// Column to sort by
    #[arg(long, value_enum, default_value_t = Column::Rate, env = "STRAIT_TOP_SORT")]
    pub sort: Column,
    /// Print one interval, and end
    #[arg(long)]
    pub once: bool,
    /// Format of the output of --once
    #[arg(short, long, value_enum, default_value_t = OutputArg::Text, env = "STRAIT_OUTPUT")]
    pub output: OutputArg,
}

/// Runs `strait top`.
pub fn run(args: &TopArgs) -> u8 {
    if args.interval < INTERVAL_MIN {
        report("--interval: must be at least 100ms");
        return EXIT_USAGE;
    }
    if args.once {
        return once(args);
    }
    if !io::stdout().is_terminal() {
        report("standard output is no terminal: use --once");
        return EXIT_USAGE;
    }
    if let Err(error) = read(&args.asked.admin) {
        report(&error);
        return EXIT_INPUT;
    }
    match show(args) {
        Ok(()) => EXIT_DONE,
        Err(error) => {
            report(&error.to_string());
            EXIT_INTERNAL
        }
    }
}

/// Reads the counts of a proxy.
fn read(admin: &str) -> Result<Activity, String> {
    let answer = get(admin, "/activity").map_err(|error| format!("--admin {admin}: {error}"))?;
    match answer {
        (200, body) => serde_json::from_str(&body)
            .map_err(|error| format!("--admin {admin}: the answer cannot be read: {error}")),
        (status, _) => Err(format!("--admin {admin}: answered {status} for /activity")),
    }
}

fn once(args: &TopArgs) -> u8 {
    let rates = read(&args.asked.admin).and_then(|before| {
        thread::sleep(args.interval);
        let after = read(&args.asked.admin)?;
        Rates::between(&before, &after).ok_or_else(|| "the proxy was restarted".to_owned())
    });
    let rates = match rates {
        Ok(rates) => rates,
        Err(error) => {
            report(&error);
            return EXIT_INPUT;
        }
    };
    match args.output {
        OutputArg::Text => print(&text::render(
            &args.asked.admin,
            &rates,
            args.view,
            args.sort,
        )),
        OutputArg::Json => match serde_json::to_string_pretty(&rates) {
            Ok(json) => print(&(json + "\n")),
            Err(error) => {
                report(&error.to_string());
                EXIT_INTERNAL
            }
        },
    }
}

/// Reads the counts in a thread of its own, so that keys work while the proxy does not answer.
fn readings(args: &TopArgs) -> Receiver<Result<Activity, String>> {
    let (sender, receiver) = channel();
    let (admin, interval) = (args.asked.admin.clone(), args.interval);
    thread::spawn(move || {
        while sender.send(read(&admin)).is_ok() {
            thread::sleep(interval);
        }
    });
    receiver
}

fn show(args: &TopArgs) -> io::Result<()> {
    let view = args.view.unwrap_or(View::Destination);
    let mut screen = Screen::new(&args.asked.admin, view, args.sort);
    let readings = readings(args);
    let mut before: Option<Activity> = None;
    let mut terminal = ratatui::try_init()?;
    let shown = loop {
        for reading in readings.try_iter() {
            take(&mut screen, &mut before, reading);
        }
        if let Err(error) = terminal.draw(|canvas| screen::draw(&screen, canvas)) {
            break Err(error);
        }
        match keys(&mut screen) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::restore();
    shown
}

/// Takes over a reading.
fn take(screen: &mut Screen, before: &mut Option<Activity>, reading: Result<Activity, String>) {
    match reading {
        Ok(after) => {
            let rates = before.as_ref().and_then(|one| Rates::between(one, &after));
            if let Some(rates) = rates {
                let now = dates::rfc3339(SystemTime::now());
                screen.show(rates, now.get(11..19).unwrap_or_default());
            }
            *before = Some(after);
        }
        Err(problem) => screen.problem = Some(problem),
    }
}

/// Carries out the keys that were pressed; returns false to end.
fn keys(screen: &mut Screen) -> io::Result<bool> {
    let mut wait = PAUSE;
    while event::poll(wait)? {
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && !screen.press(key)
        {
            return Ok(false);
        }
        wait = Duration::ZERO;
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
