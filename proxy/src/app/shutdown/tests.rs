use super::*;
use crate::app::settings::OutboundDrain;
use crate::runtime::drain;

fn shutdown(outbound: OutboundDrain) -> (Shutdown, drain::Watch, Arc<Admission>) {
    let (trigger, watch) = drain::pair();
    let admission = Admission::new(1, 100);
    let times = Times {
        pre_drain: Duration::ZERO,
        drain_time: Duration::from_secs(30),
        outbound: Some(outbound),
    };
    let shutdown = Shutdown {
        drain: trigger,
        admission: Arc::clone(&admission),
        slot: SnapshotSlot::default(),
        progress: Progress::new(times),
        seen: ObservedProgress::default(),
        ports: None,
        admitted: 0,
    };
    (shutdown, watch, admission)
}

const DEFAULTS: OutboundDrain = OutboundDrain {
    time: Duration::from_secs(20),
    minimum: Duration::from_secs(5),
};

/// Returns the milliseconds from the begin of the drain until outbound listeners drain as well. Each connection of the
/// workload is open from one millisecond to another.
async fn outbound_until(connections: &'static [(u64, u64)]) -> u128 {
    let (mut shutdown, watch, admission) = shutdown(DEFAULTS);
    let begin = Instant::now();
    for (from, to) in connections {
        let admission = Arc::clone(&admission);
        let at = move |millis: &u64| begin + Duration::from_millis(*millis);
        let mut permit = (*from == 0).then(|| admission.admit(0).unwrap());
        tokio::spawn(async move {
            if permit.is_none() {
                sleep_until(at(from)).await;
                permit = admission.admit(0);
            }
            let mut permit = permit.unwrap();
            permit.count_outbound();
            sleep_until(at(to)).await;
            drop(permit);
        });
    }
    let ends = async {
        watch.soft().await;
        begin.elapsed().as_millis()
    };
    let (_, millis) = tokio::join!(shutdown.drain(), ends);
    millis
}

#[tokio::test(start_paused = true)]
async fn outbound_serves_while_the_workload_has_connections() {
    for (connections, expected) in [
        (&[][..], 5_000_u128),
        (&[(0, 2_000)], 5_000),
        (&[(0, 4_000), (4_500, 4_600), (5_500, 5_700)], 7_000),
        (&[(0, 8_000)], 9_000),
        (&[(0, 60_000)], 20_000),
    ] {
        let millis = outbound_until(connections).await;
        assert!(millis.abs_diff(expected) < 100, "{connections:?}: {millis}");
    }
}

#[tokio::test(start_paused = true)]
async fn outbound_drains_at_once_after_a_handover() {
    let (mut shutdown, watch, _admission) = shutdown(DEFAULTS);
    shutdown.is_handed_over();
    let begin = Instant::now();
    shutdown.drain().await;
    assert_eq!(watch.stage(), Stage::Stopped);
    assert!(begin.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn sidecar_drains_inbound_before_its_end_once_the_workload_has_closed_its_ports() {
    let (mut shutdown, watch, admission) = shutdown(OutboundDrain {
        minimum: Duration::ZERO,
        ..DEFAULTS
    });
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    shutdown.ports = Some(WorkloadPorts::from([socket.local_addr().unwrap().port()]));
    shutdown.drain.announce();
    let time = Duration::from_secs(1);
    let _ = tokio::time::timeout(time, shutdown.run()).await;
    assert_eq!(watch.stage(), Stage::Announcing, "nothing ends by itself");
    let connection = admission.admit(0);
    drop(socket);
    let _ = tokio::time::timeout(time, shutdown.run()).await;
    assert_eq!(watch.stage(), Stage::WorkloadGone);
    drop(connection);
    let begin = Instant::now();
    shutdown.drain().await;
    assert!(begin.elapsed() < Duration::from_millis(100));
}
