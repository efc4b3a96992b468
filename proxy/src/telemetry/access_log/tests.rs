use std::fs;
use std::path::Path;
use std::time::Instant;

use super::timestamp::Timestamp;
use super::*;

fn settings(target: &Path) -> AccessLogSettings {
    AccessLogSettings {
        target: AccessLogTarget::File(target.to_owned()),
        ..AccessLogSettings::new(2)
    }
}

fn entry(route_name: &str) -> Entry<'_> {
    Entry {
        route_name: Some(route_name),
        ..Entry::default()
    }
}

/// The only target's numbers of lines.
fn totals(log: &AccessLog) -> AccessLogTotals {
    let totals = log.totals();
    assert!(totals.len() <= 1, "{totals:?}");
    totals.first().map(|(_, one)| *one).unwrap_or_default()
}

fn routes(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    // the last line may be half written
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .filter_map(|line| line.rsplit(' ').next())
        .map(str::to_owned)
        .collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        std::thread::yield_now();
    }
}

#[test]
fn disabled_log_records_nothing() {
    let log = AccessLog::off(1);
    let logger = log.logger(WorkerId(0));
    assert!(!logger.is_on());
    logger.log(&entry("a"));
    assert_eq!(totals(&log), AccessLogTotals::default());
    assert!(!AccessLogger::off().is_on());
}

#[test]
fn lines_are_written_while_the_log_runs() {
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("access.log");
    let log = AccessLog::start(settings(&file)).expect("log");
    // One at a time, so that the writer goes to sleep and is woken in between.
    for count in 1..=3 {
        log.logger(WorkerId(count % 2)).log(&entry("r"));
        wait_until("the line is written", || {
            routes(&file).len() == usize::from(count)
        });
    }
    assert_eq!(
        totals(&log),
        AccessLogTotals {
            lines: 3,
            dropped: 0
        }
    );
}

#[test]
fn lines_of_all_workers_are_written_whole_before_the_log_ends() {
    const EACH: usize = 5_000;
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("access.log");
    let log = AccessLog::start(AccessLogSettings {
        buffer_bytes_max: 8 << 20,
        ..settings(&file)
    })
    .expect("log");
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let logger = log.logger(WorkerId(worker));
            scope.spawn(move || {
                for count in 0..EACH {
                    logger.log(&entry(&format!("w{worker}-{count}")));
                }
            });
        }
    });
    log.shut_down(Duration::from_secs(20));
    let routes = routes(&file);
    assert_eq!(
        totals(&log),
        AccessLogTotals {
            lines: 2 * EACH as u64,
            dropped: 0
        }
    );
    for worker in 0..2 {
        let prefix = format!("w{worker}-");
        let mut counts: Vec<usize> = routes
            .iter()
            .filter_map(|route| route.strip_prefix(&prefix))
            .map(|count| count.parse().expect("a number"))
            .collect();
        counts.sort_unstable();
        assert!(
            counts.into_iter().eq(0..EACH),
            "worker {worker} has every line once"
        );
    }
}

#[test]
fn a_sleeping_writer_never_misses_a_line() {
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("access.log");
    let settings = AccessLogSettings {
        flush_interval: Duration::ZERO,
        ..settings(&file)
    };
    let log = AccessLog::start(settings).expect("log");
    let size = || fs::metadata(&file).map_or(0, |file| file.len());
    let loggers = [log.logger(WorkerId(0)), log.logger(WorkerId(1))];
    let mut line = Vec::new();
    format::text(&mut line, &mut Timestamp::default(), &entry("r"));
    let mut written = 0;
    // Each round meets the writer somewhere between its last look at the buffers and its sleep.
    for round in 0..2_000 {
        for logger in &loggers[round % 2..] {
            logger.log(&entry("r"));
            written += line.len() as u64;
        }
        wait_until("the lines are written", || size() == written);
    }
    assert_eq!(totals(&log).dropped, 0);
}

#[test]
fn lines_beyond_the_limit_are_dropped_and_counted() {
    let mut line = Vec::new();
    format::text(&mut line, &mut Timestamp::default(), &entry("r"));
    // No writer: both buffers of the lane stay as they are.
    let lanes = Arc::new(Lanes::new(&AccessLogSettings {
        buffer_bytes_max: 3 * line.len() + 1,
        ..AccessLogSettings::new(1)
    }));
    let logger = AccessLogger {
        lane: Some(Lent {
            lanes: lanes.clone(),
            format: AccessLogFormat::Text,
            sample: LogSample::ALL,
            index: 0,
            writers: Writers::One,
        }),
        plan: None,
    };
    for _ in 0..10 {
        logger.log(&entry("r"));
    }
    assert_eq!(
        lanes.totals(),
        AccessLogTotals {
            lines: 3,
            dropped: 7
        }
    );

    let mut taken = Vec::new();
    lanes.lanes[0].take(&mut taken);
    assert_eq!(taken, line.repeat(3), "whole lines only");
    logger.log(&entry("r"));
    assert_eq!(
        lanes.totals(),
        AccessLogTotals {
            lines: 4,
            dropped: 7
        }
    );
}

#[test]
fn a_worker_never_waits_for_the_writer() {
    let lanes = Lanes::new(&AccessLogSettings::new(1));
    let lane = &lanes.lanes[0];
    let append = |buffer: &mut lanes::Buffer| buffer.bytes.extend_from_slice(b"line\n");
    let held = lane.buffers.each().next();
    lanes.log(lane, Writers::One, append);
    assert_eq!(
        lanes.totals(),
        AccessLogTotals {
            lines: 1,
            dropped: 0
        }
    );
    drop(held);

    // Both buffers are held all the time: the line is dropped at last.
    let held: Vec<_> = lane.buffers.each().collect();
    lanes.log(lane, Writers::Many, append);
    assert_eq!(
        lanes.totals(),
        AccessLogTotals {
            lines: 1,
            dropped: 1
        }
    );
    drop(held);
}

#[test]
fn a_renamed_file_is_replaced_by_a_new_one() {
    let dir = tempfile::tempdir().expect("dir");
    let (file, old) = (
        dir.path().join("access.log"),
        dir.path().join("access.log.1"),
    );
    let settings = AccessLogSettings {
        rotation_interval: Duration::ZERO,
        ..settings(&file)
    };
    let log = AccessLog::start(settings).expect("log");
    let logger = log.logger(WorkerId(0));
    logger.log(&entry("before"));
    wait_until("the first line is written", || !routes(&file).is_empty());
    fs::rename(&file, &old).expect("rename");
    // Lines go on meanwhile; sooner or later one of them finds the path gone.
    wait_until("the path names a file again", || {
        logger.log(&entry("after"));
        !routes(&file).is_empty()
    });
    assert!(routes(&file).iter().all(|route| route == "after"));
    assert_eq!(routes(&old)[0], "before");
}

#[test]
fn reopen_request_works_without_a_new_line() {
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("access.log");
    let log = AccessLog::start(settings(&file)).expect("log");
    fs::rename(&file, dir.path().join("access.log.1")).expect("rename");
    log.reopen();
    wait_until("the path names a file again", || file.exists());
    assert_eq!(totals(&log), AccessLogTotals::default());
}

#[test]
fn unopenable_file_is_a_startup_error() {
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("missing").join("access.log");
    let error = AccessLog::start(settings(&file)).expect_err("no such folder");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
#[cfg(target_os = "linux")]
fn unwritable_lines_are_counted() {
    let log = AccessLog::start(settings(Path::new("/dev/full"))).expect("log");
    let logger = log.logger(WorkerId(0));
    logger.log(&entry("r"));
    logger.log(&entry("r"));
    log.shut_down(Duration::from_secs(20));
    assert_eq!(
        totals(&log),
        AccessLogTotals {
            lines: 2,
            dropped: 2
        }
    );
}
