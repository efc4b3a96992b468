use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::admin::activity::rates::RateRow;

fn row(name: &str, rate: f64, failed: f64, p99: Option<f64>) -> RateRow {
    RateRow {
        name: name.to_owned(),
        rate,
        failed: Some(failed),
        p50_ms: p99.map(|time| time / 2.0),
        p99_ms: p99,
        active: Some(3),
        ..RateRow::default()
    }
}

fn rates() -> Rates {
    let mut endpoint = row("10.0.0.1:80", 5.0, 0.0, None);
    endpoint.about = "cart.test c1".to_owned();
    endpoint.unavailable = Some("ejected for 3s more".to_owned());
    Rates {
        version: "0.1.0".to_owned(),
        generation: 7,
        rate: 1234.0,
        failed: 12.34,
        active: 9,
        destinations: vec![
            row("cart.test", 1000.0, 0.0, Some(12.0)),
            row("web.test", 234.0, 12.34, Some(1500.0)),
        ],
        endpoints: vec![endpoint],
        changes: vec!["ejected: outbound|80||cart.test 10.0.0.1:80: 5 failures".to_owned()],
        ..Rates::default()
    }
}

fn screen() -> Screen {
    let mut screen = Screen::new("127.0.0.1:15000", View::Destination, Column::Rate);
    screen.show(rates(), "22:14:03");
    screen
}

/// Presses keys, none of which ends.
fn press(screen: &mut Screen, codes: &[KeyCode]) {
    for code in codes {
        assert!(
            screen.press(KeyEvent::new(*code, KeyModifiers::NONE)),
            "{code:?}"
        );
    }
}

/// Draws the screen, and returns its lines.
fn drawn(screen: &Screen, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(100, height)).unwrap();
    terminal
        .draw(|canvas| screen::draw(screen, canvas))
        .unwrap();
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(100);
    let lines = lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn screen_has_sum_table_changes_and_keys() {
    let lines = drawn(&screen(), 20);
    let expected = "127.0.0.1:15000  0.1.0  generation 7  1234 req/s  1.0% failed  9 active";
    assert_eq!(lines[0], expected);
    assert_eq!(
        lines[1],
        " 1 hosts  2 rules  3 destinations  4 clusters  5 endpoints"
    );
    let fields = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        fields(&lines[2]),
        [
            "name", "req/s", "v", "failed", "p50", "p99", "active", "about"
        ]
    );
    assert_eq!(
        fields(&lines[3]),
        ["cart.test", "1000", "0%", "6.0ms", "12ms", "3"]
    );
    assert_eq!(
        fields(&lines[4]),
        ["web.test", "234", "5.3%", "750ms", "1500ms", "3"]
    );
    assert!(lines[12].starts_with("changes"), "{lines:?}");
    let change = "22:14:03  ejected: outbound|80||cart.test 10.0.0.1:80: 5 failures";
    assert_eq!(lines[13], change);
    assert!(lines[19].starts_with("1-5 table"), "{lines:?}");
    // a low screen leaves the changes out
    let low = drawn(&screen(), 8);
    assert!(
        low[3].starts_with("cart.test") && low[7].starts_with("1-5"),
        "{low:?}"
    );
    assert!(low.iter().all(|line| !line.contains("ejected")), "{low:?}");
}

#[test]
fn keys_choose_table_order_and_rows() {
    let mut screen = screen();
    let names = |screen: &Screen| -> Vec<String> {
        screen.rows().iter().map(|row| row.name.clone()).collect()
    };
    assert_eq!(names(&screen), ["cart.test", "web.test"]);
    press(&mut screen, &[KeyCode::Right]);
    assert_eq!(
        (screen.column, names(&screen)),
        (
            Column::Failed,
            vec!["web.test".to_owned(), "cart.test".to_owned()]
        )
    );
    press(&mut screen, &[KeyCode::Char('r')]);
    assert_eq!(names(&screen), ["cart.test", "web.test"]);
    press(
        &mut screen,
        &[KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Backspace],
    );
    press(
        &mut screen,
        &[KeyCode::Char('w'), KeyCode::Char('e'), KeyCode::Enter],
    );
    assert_eq!(names(&screen), ["web.test"]);
    assert!(drawn(&screen, 20)[1].ends_with("only with \"we\""));
    press(&mut screen, &[KeyCode::Esc, KeyCode::Down]);
    assert_eq!(screen.offset, 1);
    press(
        &mut screen,
        &[KeyCode::Down, KeyCode::PageUp, KeyCode::BackTab],
    );
    assert_eq!((screen.offset, screen.view), (0, View::Rule));
    press(&mut screen, &[KeyCode::Char('5')]);
    let lines = drawn(&screen, 20);
    assert!(
        lines[3].ends_with("cart.test c1: ejected for 3s more"),
        "{lines:?}"
    );
    let end = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
    assert!(!screen.press(end));
    screen.is_typing = true;
    let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(!screen.press(end), "also while a filter is typed");
}

#[test]
fn problem_of_a_reading_is_shown_until_the_next() {
    let mut screen = screen();
    let mut before = None;
    take(&mut screen, &mut before, Err("cannot connect".to_owned()));
    assert!(drawn(&screen, 20)[0].ends_with("  cannot connect"));
    let reading = |at_seconds| {
        Ok(Activity {
            at_seconds,
            ..Activity::default()
        })
    };
    take(&mut screen, &mut before, reading(1.0));
    take(&mut screen, &mut before, reading(2.0));
    assert_eq!(screen.problem, None);
    assert_eq!(screen.changes.len(), 1, "changes stay");
}

#[test]
fn text_has_all_tables_or_one() {
    let text = text::render("here:15000", &rates(), None, Column::P99);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "here:15000  0.1.0  generation 7  1234 req/s  1.0% failed  9 active"
    );
    let titles: Vec<&str> = lines
        .iter()
        .filter(|line| line.ends_with("active") && line.contains("p50"))
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        titles,
        ["hosts", "rules", "destinations", "clusters", "endpoints"]
    );
    let at = |name: &str| {
        lines
            .iter()
            .position(|line| line.starts_with(name))
            .unwrap()
    };
    assert!(at("web.test") < at("cart.test"), "{text}");
    assert!(
        text.contains("cart.test c1: ejected for 3s more\n"),
        "{text}"
    );
    assert!(text.ends_with("\nejected: outbound|80||cart.test 10.0.0.1:80: 5 failures\n"));
    let one = text::render("here", &rates(), Some(View::Endpoint), Column::Rate);
    assert!(!one.contains("web.test"), "{one}");
}
