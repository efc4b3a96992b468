//! Merge of existing and desired conditions.

use config_loader::catalog::gateway_api::status::Condition;
use serde_json::{Value, json};

/// Returns the conditions of an object with the desired ones at that generation; `None` if nothing changes. The
/// transition time changes only with the status. Conditions of other writers stay unchanged.
pub(crate) fn merged(
    existing: &[Value],
    wanted: &[Condition],
    generation: i64,
    now: &str,
) -> Option<Vec<Value>> {
    let conditions = with(existing, wanted, generation, now);
    (conditions != existing).then_some(conditions)
}

/// Returns the conditions with the desired ones.
pub(super) fn with(
    existing: &[Value],
    wanted: &[Condition],
    generation: i64,
    now: &str,
) -> Vec<Value> {
    let mut conditions = existing.to_vec();
    for one in wanted {
        let status = match one.holds {
            None => "Unknown",
            Some(true) => "True",
            Some(false) => "False",
        };
        let known = conditions
            .iter_mut()
            .find(|condition| condition["type"] == one.name);
        let since = known
            .as_ref()
            .filter(|known| known["status"] == status)
            .and_then(|known| known["lastTransitionTime"].as_str())
            .unwrap_or(now);
        let is_same = |known: &&&mut Value| {
            known["status"] == status
                && known["reason"] == one.reason
                && known["observedGeneration"] == generation
        };
        let kept = known.as_ref().filter(|_| one.keeps_message);
        let kept = kept.filter(is_same).map(|known| known["message"].clone());
        let message = kept.unwrap_or_else(|| one.message.clone().into());
        let condition = json!({
            "type": one.name, "status": status, "reason": one.reason, "message": message,
            "lastTransitionTime": since, "observedGeneration": generation,
        });
        match known {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(holds: bool, message: &str) -> Condition {
        Condition::new("Accepted", holds, "Accepted").because(message)
    }

    #[test]
    fn time_changes_with_the_status_only() {
        let first = merged(&[], &[accepted(true, "")], 1, "t1").unwrap();
        assert_eq!(first[0]["lastTransitionTime"], "t1");
        assert_eq!(merged(&first, &[accepted(true, "")], 1, "t2"), None);
        let told = merged(&first, &[accepted(true, "m")], 2, "t2").unwrap();
        assert_eq!(told[0]["lastTransitionTime"], "t1");
        assert_eq!(told[0]["observedGeneration"], 2);
        let flipped = merged(&told, &[accepted(false, "m")], 2, "t3").unwrap();
        assert_eq!(flipped[0]["lastTransitionTime"], "t3");
    }

    #[test]
    fn count_alone_is_no_reason_to_write() {
        let counted = |message: &str| Condition {
            keeps_message: true,
            ..accepted(true, message)
        };
        let first = merged(&[], &[counted("1 of 1")], 1, "t1").unwrap();
        assert_eq!(merged(&first, &[counted("2 of 2")], 1, "t2"), None);
        let next = merged(&first, &[counted("2 of 2")], 2, "t2").unwrap();
        assert_eq!(next[0]["message"], "2 of 2");
        let unknown = Condition {
            holds: None,
            ..counted("none")
        };
        let last = merged(&next, &[unknown], 2, "t3").unwrap();
        assert_eq!(
            (&last[0]["status"], &last[0]["message"]),
            (&"Unknown".into(), &"none".into())
        );
    }

    #[test]
    fn conditions_of_others_stay() {
        let others = [json!({"type": "Reconciled", "status": "True", "lastProbeTime": "t0"})];
        let both = merged(&others, &[accepted(true, "")], 1, "t1").unwrap();
        assert_eq!(both.len(), 2);
        assert_eq!(both[0], others[0]);
    }
}
