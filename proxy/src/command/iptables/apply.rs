//! Changes the kernel step by step, and takes all of it back if one step fails.

use super::routes::{Setting, ip};
use super::ruleset::Ruleset;
use super::tools::Tools;

/// One change.
#[derive(Debug)]
pub enum Step {
    /// Adds a setting of `ip`.
    Add(Setting),
    /// Deletes one.
    Delete(Setting),
    /// Replaces our rules of one backend and IP version.
    Replace {
        /// Those of which.
        tools: Tools,
        /// What is there.
        from: Ruleset,
        /// What shall be there.
        to: Ruleset,
    },
}

impl Step {
    fn run(&self) -> Result<(), String> {
        match self {
            Self::Add(setting) => ip(&setting.add()),
            Self::Delete(setting) => ip(&setting.delete()),
            Self::Replace { tools, from, to } => tools.replace(from, to),
        }
    }

    fn undo(&self) -> Result<(), String> {
        match self {
            Self::Add(setting) => ip(&setting.delete()),
            Self::Delete(setting) => ip(&setting.add()),
            // a step that failed may have changed one of two tables
            Self::Replace { tools, from, .. } => tools.replace(&tools.saved()?.ours, from),
        }
    }
}

/// Does all of this, or nothing.
///
/// # Errors
///
/// Why a step failed, and what could not be taken back.
pub fn all_or_nothing(steps: &[Step]) -> Result<(), String> {
    for (index, step) in steps.iter().enumerate() {
        let Err(error) = step.run() else {
            continue;
        };
        let failed = matches!(step, Step::Replace { .. }).then_some(step);
        let done = failed.into_iter().chain(steps[..index].iter().rev());
        let stuck: Vec<_> = done.filter_map(|step| step.undo().err()).collect();
        return Err(match stuck.is_empty() {
            true => format!("{error}\nnothing was changed"),
            false => format!(
                "{error}\nnot all of it could be taken back (`strait iptables remove` tries again): {}",
                stuck.join("; ")
            ),
        });
    }
    Ok(())
}

/// Does as much of this as possible.
///
/// # Errors
///
/// Why steps failed.
pub fn as_far_as_possible(steps: &[Step]) -> Result<(), String> {
    let errors: Vec<_> = steps.iter().filter_map(|step| step.run().err()).collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors.join("\n"))
    }
}
