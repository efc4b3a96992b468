//! State of the screen of `strait top`: the table, its order, and the part that is seen. Keys change it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::admin::activity::rates::{Column, RateRow, Rates, View, sort};

/// Number of changes that are kept.
const CHANGES_MAX: usize = 200;

/// State of the screen.
#[derive(Clone, Debug)]
pub(super) struct Screen {
    pub(super) view: View,
    pub(super) column: Column,
    pub(super) is_reversed: bool,
    /// Only rows whose name or description contain this text.
    pub(super) filter: String,
    /// Whether keys are text of the filter.
    pub(super) is_typing: bool,
    /// Number of rows above the first that is seen.
    pub(super) offset: usize,
    pub(super) rates: Rates,
    /// Changes so far, newest last.
    pub(super) changes: Vec<String>,
    /// Problem of the last reading.
    pub(super) problem: Option<String>,
    pub(super) admin: String,
}

impl Screen {
    pub(super) fn new(admin: &str, view: View, column: Column) -> Self {
        Self {
            view,
            column,
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            offset: 0,
            rates: Rates::default(),
            changes: Vec::new(),
            problem: None,
            admin: admin.to_owned(),
        }
    }

    /// Takes over the rates of an interval; `time` is that of its end.
    pub(super) fn show(&mut self, mut rates: Rates, time: &str) {
        let new = rates.changes.drain(..);
        self.changes
            .extend(new.map(|change| format!("{time}  {change}")));
        let beyond = self.changes.len().saturating_sub(CHANGES_MAX);
        self.changes.drain(..beyond);
        self.rates = rates;
        self.problem = None;
    }

    /// The rows of the table in their order.
    pub(super) fn rows(&self) -> Vec<&RateRow> {
        let rows = self.rates.rows(self.view).iter();
        let has_text =
            |row: &&RateRow| row.name.contains(&self.filter) || row.about.contains(&self.filter);
        let mut rows: Vec<&RateRow> = rows.filter(has_text).collect();
        sort(&mut rows, self.column, self.is_reversed);
        rows
    }

    /// Carries out a key; returns false to end.
    pub(super) fn press(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return false;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return true;
        }
        match key.code {
            KeyCode::Char('q') => return false,
            KeyCode::Char(digit @ '1'..='5') => {
                self.view = View::ALL[digit as usize - '1' as usize];
                self.offset = 0;
            }
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(View::ALL.len() - 1),
            KeyCode::Left => self.sort_by(Column::ALL.len() - 1),
            KeyCode::Right => self.sort_by(1),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up => self.scroll(-1),
            KeyCode::Down => self.scroll(1),
            KeyCode::PageUp => self.scroll(-10),
            KeyCode::PageDown => self.scroll(10),
            KeyCode::Home => self.offset = 0,
            _ => {}
        }
        true
    }

    fn type_filter(&mut self, code: KeyCode) {
        self.offset = 0;
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(char) => self.filter.push(char),
            _ => {}
        }
    }

    fn turn(&mut self, by: usize) {
        let at = View::ALL.iter().position(|one| *one == self.view);
        self.view = View::ALL[(at.unwrap_or(0) + by) % View::ALL.len()];
        self.offset = 0;
    }

    fn sort_by(&mut self, by: usize) {
        self.column = Column::ALL[(self.column.position() + by) % Column::ALL.len()];
    }

    fn scroll(&mut self, by: isize) {
        let last = self.rows().len().saturating_sub(1);
        self.offset = self.offset.saturating_add_signed(by).min(last);
    }
}
