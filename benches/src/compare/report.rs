//! Results of a run, and their Markdown format.

pub use crate::compare::figures::{Figure, Figures, Section, number, ratio};
use crate::compare::target;

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    environment: Vec<(String, String)>,
    /// Notes on missing programs and failures.
    pub notes: Vec<String>,
    /// Tables so far.
    pub sections: Vec<Section>,
    /// Figures so far.
    pub figures: Figures,
}

impl Report {
    /// Creates a report without results, with the description of this machine.
    pub fn new(environment: Vec<(String, String)>) -> Self {
        Self {
            environment,
            ..Self::default()
        }
    }

    /// Formats the whole report.
    pub fn markdown(&self) -> String {
        let mut out = String::from("## Environment\n\n");
        let facts = self
            .environment
            .iter()
            .map(|(name, value)| vec![name.clone(), value.clone()]);
        table(
            &mut out,
            &["what".to_owned(), "value".to_owned()],
            facts.collect::<Vec<_>>().as_slice(),
        );
        let targets = target::section(&self.figures);
        for section in targets.iter().chain(&self.sections) {
            out.push_str(&format!("\n## {}\n\n{}\n\n", section.title, section.text));
            table(&mut out, &section.columns, &section.rows);
        }
        if !self.notes.is_empty() {
            out.push_str("\n## Notes\n\n");
            for note in &self.notes {
                out.push_str(&format!("- {}\n", one_line(note)));
            }
        }
        out
    }
}

/// Writes a table. Columns are padded, so that the text is readable without rendering.
fn table(out: &mut String, columns: &[String], rows: &[Vec<String>]) {
    let lines: Vec<Vec<String>> = std::iter::once(columns)
        .chain(rows.iter().map(Vec::as_slice))
        .map(|cells| {
            cells
                .iter()
                .map(|cell| one_line(cell).replace('|', "\\|"))
                .collect()
        })
        .collect();
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
            .max(3)
    };
    for (index, cells) in lines.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            out.push_str(&format!("| {cell:<width$} ", width = width(column)));
        }
        out.push_str("|\n");
        if index == 0 {
            for column in 0..columns.len() {
                // The first column is text, the others are figures.
                let end = if column == 0 { "-" } else { ":" };
                out.push_str(&format!("| {}{end} ", "-".repeat(width(column) - 1)));
            }
            out.push_str("|\n");
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
