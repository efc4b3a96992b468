use super::*;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const GATEWAY: Times = Times {
    pre_drain: seconds(10),
    drain_time: seconds(40),
    outbound: None,
};

const SIDECAR: Times = Times {
    outbound: Some(OutboundDrain {
        time: seconds(20),
        minimum: seconds(5),
    }),
    ..GATEWAY
};

/// Second at which each observation begins; 99 for never.
#[derive(Clone, Copy)]
struct Script {
    announced: u64,
    ending: u64,
    workload_gone: u64,
    quiet: u64,
    finished: u64,
}

const NEVER: u64 = 99;

const NOTHING: Script = Script {
    announced: NEVER,
    ending: NEVER,
    workload_gone: NEVER,
    quiet: NEVER,
    finished: NEVER,
};

/// Runs the script and returns the stages that are entered, with the second of each.
fn stages(times: Times, script: Script) -> Vec<(u64, Stage)> {
    let begin = Instant::now();
    let mut progress = Progress::new(times);
    let mut entered = Vec::new();
    let mut due = None;
    for second in 0..NEVER {
        let now = begin + seconds(second);
        let since = |from| (second >= from).then(|| begin + seconds(from));
        let seen = ObservedProgress {
            announced: second >= script.announced.min(script.ending),
            ending: since(script.ending),
            workload_gone: second >= script.workload_gone,
            quiet: since(script.quiet),
            finished: second >= script.finished,
        };
        let before = entered.len();
        let next = progress.step(&seen, now, |stage| entered.push((second, stage)));
        assert!(next.is_none_or(|next| next > now), "{next:?}");
        let is_new = [
            script.announced,
            script.ending,
            script.workload_gone,
            script.quiet,
            script.finished,
        ]
        .contains(&second);
        let is_due = due.is_some_and(|due| now >= due);
        assert!(
            is_new || is_due || entered.len() == before,
            "a stage at {second} s that nobody waited for"
        );
        due = next;
    }
    entered
}

#[tokio::test(start_paused = true)]
async fn stages_follow_from_signals_workload_and_time() {
    use Stage::{Announcing, Draining, DrainingInbound, Stopped, WorkloadGone};
    let end = Script {
        ending: 1,
        ..NOTHING
    };
    for (name, times, script, expected) in [
        ("nothing", SIDECAR, NOTHING, &[][..]),
        (
            "gateway is idle",
            GATEWAY,
            Script {
                finished: 12,
                ..end
            },
            &[(1, Announcing), (11, Draining), (12, Stopped)],
        ),
        (
            "gateway is busy",
            GATEWAY,
            end,
            &[(1, Announcing), (11, Draining), (51, Stopped)],
        ),
        (
            "gateway is announced and does not end",
            GATEWAY,
            Script {
                announced: 1,
                workload_gone: 2,
                finished: 3,
                ..NOTHING
            },
            &[(1, Announcing)],
        ),
        (
            "workload serves longer than the pre-drain",
            SIDECAR,
            Script {
                quiet: 20,
                finished: 22,
                ..end
            },
            &[
                (1, Announcing),
                (11, DrainingInbound),
                (21, Draining),
                (22, Stopped),
            ],
        ),
        (
            "workload ends within the pre-drain",
            SIDECAR,
            Script {
                workload_gone: 4,
                quiet: 5,
                finished: 6,
                ..end
            },
            &[
                (1, Announcing),
                (4, WorkloadGone),
                (6, Draining),
                (6, Stopped),
            ],
        ),
        (
            "workload ends after the pre-drain and keeps a connection",
            SIDECAR,
            Script {
                workload_gone: 14,
                ..end
            },
            &[
                (1, Announcing),
                (11, DrainingInbound),
                (14, WorkloadGone),
                (31, Draining),
                (51, Stopped),
            ],
        ),
        (
            "native sidecar: told by its hook, ended after its workload",
            Times {
                pre_drain: seconds(0),
                outbound: Some(OutboundDrain {
                    time: seconds(20),
                    minimum: seconds(0),
                }),
                ..GATEWAY
            },
            Script {
                announced: 1,
                workload_gone: 6,
                quiet: 7,
                ending: 8,
                finished: 8,
            },
            &[
                (1, Announcing),
                (6, WorkloadGone),
                (8, Draining),
                (8, Stopped),
            ],
        ),
    ] {
        assert_eq!(stages(times, script), expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn drain_without_an_announcement_needs_no_pre_drain() {
    let now = Instant::now();
    let mut progress = Progress::new(SIDECAR);
    progress.enter(Stage::Draining, now);
    let mut seen = ObservedProgress::default();
    assert_eq!(progress.step(&seen, now, |_| ()), None);
    seen.ending = Some(now + seconds(5));
    let due = progress.step(&seen, now + seconds(5), |_| ());
    assert_eq!(due, Some(now + seconds(45)));
}
