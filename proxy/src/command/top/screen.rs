//! The screen of `strait top`, drawn from its state.

use ratatui::Frame as Canvas;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as TableRow, Table};

use super::state::Screen;
use super::text::{count, heading, milliseconds, percent};
use crate::admin::activity::rates::{Column, RateRow, View};

const KEYS: &str = "1-5 table   <- -> sort   r reverse   / filter   up down scroll   q quit";

/// Number of lines of changes, with their title.
const CHANGES_HEIGHT: u16 = 7;

/// Draws the screen.
pub(super) fn draw(screen: &Screen, canvas: &mut Canvas<'_>) {
    let changes = match canvas.area().height {
        ..16 => 0,
        _ => CHANGES_HEIGHT,
    };
    let parts = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(3),
        Constraint::Length(changes),
        Constraint::Length(1),
    ]);
    let [top, table, below, keys] = parts.areas(canvas.area());
    canvas.render_widget(Paragraph::new(summary(screen)), top);
    draw_table(screen, canvas, table);
    draw_changes(screen, canvas, below);
    let keys_line = match screen.is_typing {
        true => format!("filter: {}_   enter keeps it, esc clears it", screen.filter),
        false => KEYS.to_owned(),
    };
    let dim = Style::new().add_modifier(Modifier::DIM);
    canvas.render_widget(Paragraph::new(keys_line).style(dim), keys);
}

fn summary(screen: &Screen) -> Vec<Line<'static>> {
    let rates = &screen.rates;
    let mut first = vec![Span::raw(heading(&screen.admin, rates))];
    if let Some(problem) = &screen.problem {
        let red = Style::new().fg(Color::Red);
        first.push(Span::styled(format!("  {problem}"), red));
    }
    let mut tabs = Vec::new();
    for (number, view) in (1..).zip(View::ALL) {
        let title = format!(" {number} {} ", view.title());
        let style = match view == screen.view {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        tabs.push(Span::styled(title, style));
    }
    if !screen.filter.is_empty() {
        tabs.push(Span::raw(format!("  only with {:?}", screen.filter)));
    }
    vec![Line::from(first), Line::from(tabs)]
}

fn draw_table(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let titles = Column::ALL.map(|column| {
        let mark = match (column == screen.column, screen.is_reversed) {
            (false, _) => "",
            (true, false) => " v",
            (true, true) => " ^",
        };
        format!("{}{mark}", title(column))
    });
    let header = TableRow::new(titles.into_iter().chain(["about".to_owned()]))
        .style(Style::new().add_modifier(Modifier::BOLD));
    let rows = screen.rows();
    let widest = rows.iter().map(|row| row.name.chars().count()).max();
    let seen = rows
        .into_iter()
        .skip(screen.offset)
        .take(area.height.into());
    let name = u16::try_from(widest.unwrap_or(0).clamp(12, 60)).unwrap_or(60);
    let widths = [
        Constraint::Length(name),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Min(10),
    ];
    canvas.render_widget(Table::new(seen.map(table_row), widths).header(header), area);
}

fn title(column: Column) -> &'static str {
    match column {
        Column::Name => "name",
        Column::Rate => "req/s",
        Column::Failed => "failed",
        Column::P50 => "p50",
        Column::P99 => "p99",
        Column::Active => "active",
    }
}

fn table_row(row: &RateRow) -> TableRow<'static> {
    let failed = row.failed_percent();
    let is_failing = failed.is_some_and(|percent| percent >= 1.0);
    let red = Style::new().fg(Color::Red);
    let about = match &row.unavailable {
        Some(reason) => Cell::from(format!("{}: {reason}", row.about)).style(red),
        None => Cell::from(row.about.clone()),
    };
    TableRow::new([
        Cell::from(row.name.clone()),
        Cell::from(count(row.rate)),
        Cell::from(percent(failed)).style(if is_failing { red } else { Style::new() }),
        Cell::from(milliseconds(row.p50_ms)),
        Cell::from(milliseconds(row.p99_ms)),
        Cell::from(
            row.active
                .map_or("-".to_owned(), |active| active.to_string()),
        ),
        about,
    ])
}

fn draw_changes(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let room = usize::from(area.height.saturating_sub(1));
    let first = screen.changes.len().saturating_sub(room);
    let lines = screen.changes[first..].iter();
    let lines: Vec<Line<'_>> = lines.map(|change| Line::raw(change.as_str())).collect();
    let block = Block::new().borders(Borders::TOP).title("changes");
    canvas.render_widget(Paragraph::new(lines).block(block), area);
}
