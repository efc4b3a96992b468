//! Pod of a headless service that a client has chosen.

use super::answer::DestinationChoice;
use super::endpoints::assign_all_traffic;
use super::sent::TrafficKind;
use crate::exchange::select::target::PickedEndpoint;
use traffic::error::Kind;

/// Assigns all traffic to the pod that the client has chosen, whatever its health; if the pod does not exist, none.
pub(super) fn follow(
    choice: &mut DestinationChoice,
    chosen: Option<PickedEndpoint>,
    what: TrafficKind,
) {
    let Some(used) = &mut choice.cluster else {
        return;
    };
    let key = chosen.as_ref().and_then(PickedEndpoint::pool);
    let key = key.map(|pool| &*pool.member);
    for member in &mut used.member_clusters {
        let is_its = key == Some(&*member.cluster_key);
        member.share = if is_its { 1.0 } else { 0.0 };
    }
    let number = chosen.as_ref().and_then(|picked| {
        let address = picked.endpoint().address.to_string();
        used.endpoints
            .iter()
            .position(|shown| shown.address == address && shown.cluster_key.as_deref() == key)
    });
    assign_all_traffic(&mut used.endpoints, number, choice.probability);
    let (pod, failure) = match &chosen {
        Some(picked) => {
            let endpoint = picked.endpoint();
            let name = endpoint.hostname.as_deref().unwrap_or("a pod");
            let address = &endpoint.address;
            (
                format!("the client has chosen {name}, at {address}: no other pod gets it"),
                None,
            )
        }
        None => {
            let why = "the service has no pod of the name that the client has chosen";
            let failure = what.fails("unavailable", Kind::NoHealthyUpstream, why);
            (why.to_owned(), Some(failure))
        }
    };
    used.chosen_pod = Some(pod);
    choice.failure = failure;
}
