use std::sync::{Arc, Mutex};

use super::*;

/// A writer that stores what is written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("kept").clone()).expect("UTF-8")
    }
}

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("kept").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Kept {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[test]
fn the_level_can_be_changed_while_running() {
    let kept = Kept::default();
    let (subscriber, control) = LogControl::subscriber("warn", kept.clone()).expect("filter");
    tracing::subscriber::with_default(subscriber, || {
        let speak = |round: &str| {
            tracing::debug!("debug {round}");
            tracing::warn!("warn {round}");
        };
        speak("one");
        control.set_filter("debug").expect("filter");
        speak("two");
        control.set_filter("off").expect("filter");
        speak("three");
        control
            .set_filter("error,proxy::telemetry=debug")
            .expect("filter");
        speak("four");
    });
    let text = kept.text();
    for (line, logged) in [
        ("debug one", false),
        ("warn one", true),
        ("debug two", true),
        ("warn two", true),
        ("warn three", false),
        ("debug four", true),
    ] {
        assert_eq!(text.contains(line), logged, "{line}");
    }
    assert_eq!(control.filter(), "error,proxy::telemetry=debug");
}

#[test]
fn an_invalid_filter_changes_nothing() {
    let (_subscriber, control) = LogControl::subscriber("info", Kept::default()).expect("filter");
    for bad in [
        "debg",
        "proxy=loud",
        "proxy",
        "",
        "info,,debug",
        "info,[=debug",
    ] {
        let error = control.set_filter(bad).expect_err(bad);
        assert!(
            error.to_string().contains(&format!("found `{bad}`")),
            "{error}"
        );
        assert_eq!(control.filter(), "info");
    }
    assert!(LogControl::subscriber("verbose", Kept::default()).is_err());
}
