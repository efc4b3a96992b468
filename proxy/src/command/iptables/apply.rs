//! Changes the kernel step by step, and undoes all steps if one fails.

use super::native::{self, Wanted};
use super::routes::Setting;
use super::ruleset::Ruleset;
use super::tools::Tools;

/// One change.
#[derive(Debug)]
pub(crate) enum Step {
    /// Adds a setting.
    Add(Setting),
    /// Deletes a setting.
    Delete(Setting),
    /// Replaces our rules of one backend and IP version.
    Replace {
        /// Tools of the backend and IP version.
        tools: Tools,
        /// Installed rules.
        from: Ruleset,
        /// Rules to install.
        to: Ruleset,
    },
    /// Replaces our own tables. Must be the last step: it cannot be undone.
    Native(Wanted),
}

impl Step {
    /// Runs the step. Returns whether it changed something.
    fn run(&self) -> Result<bool, String> {
        match self {
            Self::Add(setting) => setting.add(),
            Self::Delete(setting) => setting.delete(),
            Self::Replace { tools, from, to } => tools.replace(from, to).map(|()| true),
            Self::Native(wanted) => native::replace(wanted).map(|()| true),
        }
    }

    fn undo(&self) -> Result<(), String> {
        match self {
            Self::Add(setting) => setting.delete().map(drop),
            Self::Delete(setting) => setting.add().map(drop),
            // a step that failed may have changed one of two tables
            Self::Replace { tools, from, .. } => tools.replace(&tools.saved()?.ours, from),
            Self::Native(_) => Ok(()),
        }
    }
}

/// Runs all steps, or none.
///
/// # Errors
///
/// Says why a step failed, and what could not be undone.
pub(crate) fn all_or_nothing(steps: &[Step]) -> Result<(), String> {
    let mut done = Vec::new();
    for step in steps {
        match step.run() {
            Ok(true) => done.push(step),
            Ok(false) => {}
            Err(error) => {
                done.extend(matches!(step, Step::Replace { .. }).then_some(step));
                let undone = done.iter().rev();
                let stuck: Vec<_> = undone.filter_map(|step| step.undo().err()).collect();
                return Err(match stuck.is_empty() {
                    true => format!("{error}\nnothing was changed"),
                    false => format!(
                        "{error}\nnot all of it could be taken back (`strait iptables remove` can be run again): {}",
                        stuck.join("; ")
                    ),
                });
            }
        }
    }
    Ok(())
}

/// Runs every step, even after failures. Returns whether a step changed something.
///
/// # Errors
///
/// Says why steps failed.
pub(crate) fn as_far_as_possible(steps: &[Step]) -> Result<bool, String> {
    let results: Vec<_> = steps.iter().map(Step::run).collect();
    let changed = results.contains(&Ok(true));
    let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() {
        Ok(changed)
    } else {
        Err(errors.join("\n"))
    }
}
