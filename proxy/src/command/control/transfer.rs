//! `strait control import`, `export`, `backup` and `restore`.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use config_loader::diagnostic::render;
use config_server::transfer::backup::{self, Backup};
use config_server::transfer::import::{Finding, Report};
use config_server::transfer::{export as files, import as applied, restore as restored};

use super::data::DataArgs;
use super::wait::block_on;
use crate::command::exit::{counted, show};

/// Applies the resources in files.
pub(super) fn import(paths: &[PathBuf], data: &DataArgs) -> Result<(), String> {
    let report = block_on(async {
        let opened = data.location().open_or_make().await?;
        Ok(applied::import(&opened.api(), paths).await)
    })?;
    let style = match std::io::stdout().is_terminal() {
        true => render::Style::Coloured,
        false => render::Style::Plain,
    };
    for finding in &report.findings {
        match finding {
            Finding::Checked(found) => {
                show(render::text(std::slice::from_ref(&**found), style).trim_end())
            }
            Finding::Refused(why) => show(&format!("error: {why}")),
        }
        show("");
    }
    let Report {
        created,
        changed,
        unchanged,
        skipped,
        refused,
        ..
    } = report;
    let mut summary = format!("{created} created, {changed} changed, {unchanged} unchanged");
    if skipped > 0 {
        summary += &format!(", {skipped} skipped (the server does not have their kinds)");
    }
    show(&summary);
    match report.stopped {
        Some(why) => Err(format!("the import stopped at {why}")),
        None if refused > 0 => Err(format!(
            "{} rejected, see above",
            counted(refused, "object")
        )),
        None => Ok(()),
    }
}

/// Writes each object to a file.
pub(super) fn export(directory: &Path, data: &DataArgs) -> Result<(), String> {
    let count = block_on(async {
        let opened = data.location().open().await?;
        files::export(&opened, directory).await
    })?;
    show(&format!(
        "{} in {}",
        counted(count, "object"),
        directory.display()
    ));
    Ok(())
}

/// Writes a backup, through the server if it is running.
pub(super) fn backup(file: &Path, data: &DataArgs) -> Result<(), String> {
    let made = block_on(async {
        let location = data.location();
        match location.is_served()? {
            true => backup::of_server(&data.data.join("admin.kubeconfig")).await,
            false => Backup::of(&location.open().await?).await,
        }
    })?;
    made.write_to(file)?;
    let count = counted(made.objects.len(), "object");
    show(&format!(
        "{count} as of revision {} in {}",
        made.revision,
        file.display()
    ));
    Ok(())
}

/// Restores a backup.
pub(super) fn restore(file: &Path, data: &DataArgs) -> Result<(), String> {
    let in_file = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let bytes = fs::read(file).map_err(|error| in_file(&error))?;
    let read = Backup::read(&bytes).map_err(|why| in_file(&why))?;
    block_on(restored::restore(&read, &data.location()))?;
    let count = counted(read.objects.len(), "object");
    show(&format!("{count} of {} restored", read.time));
    Ok(())
}
