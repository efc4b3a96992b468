//! Changes the kernel step by step, and takes all of it back if one step fails.

use super::native::{self, Wanted};
use super::routes::Setting;
use super::ruleset::Ruleset;
use super::tools::Tools;

/// One change.
#[derive(Debug)]
pub enum Step {
    /// Adds a setting.
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
    /// Replaces our own tables. Must be the last step: it cannot be taken back.
    Native(Wanted),
}

impl Step {
    /// Does it. Returns whether that changed something.
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

/// Does all of this, or nothing.
///
/// # Errors
///
/// Why a step failed, and what could not be taken back.
pub fn all_or_nothing(steps: &[Step]) -> Result<(), String> {
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

/// Does as much of this as possible. Returns whether that changed something.
///
/// # Errors
///
/// Why steps failed.
pub fn as_far_as_possible(steps: &[Step]) -> Result<bool, String> {
    let results: Vec<_> = steps.iter().map(Step::run).collect();
    let changed = results.contains(&Ok(true));
    let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() {
        Ok(changed)
    } else {
        Err(errors.join("\n"))
    }
}
