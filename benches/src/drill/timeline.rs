//! Summary of the results of a run.

use std::time::Duration;

use super::load::Answer;

/// Time for which all requests must succeed at the first attempt until traffic counts as moved.
const QUIET: Duration = Duration::from_millis(200);

/// Summary of one variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    requests: usize,
    /// Failed requests until traffic had moved.
    failed_first: usize,
    /// Failed requests after traffic had moved, because the proxy sends new attempts to the failed zone.
    failed_later: usize,
    /// Requests that succeeded after a retry.
    retried: usize,
    /// Time from the failure of the zone until all traffic goes to the other zone.
    moved: Duration,
    /// Time from the recovery of the zone until it gets all traffic again; `None` if that was not observed.
    back: Option<Duration>,
}

/// Summarizes results, which are in the order of sending. The first zone fails at `dies` and recovers at `recovers`.
pub(super) fn summarize(answers: &[Answer], dies: Duration, recovers: Duration) -> Summary {
    let disturbed = |answer: &&Answer| answer.failed() || answer.attempt > 1;
    let mut moved_at = dies;
    for answer in answers
        .iter()
        .filter(|answer| answer.sent >= dies)
        .filter(disturbed)
    {
        if answer.sent > moved_at + QUIET {
            break;
        }
        moved_at = answer.sent;
    }
    let failed = || answers.iter().filter(|answer| answer.failed());
    let failed_first = failed().filter(|answer| answer.sent <= moved_at).count();
    let mut after = answers.iter().filter(|answer| answer.sent >= recovers);
    let elsewhere = after.rfind(|answer| answer.zone == Some(1));
    let ends_there = answers.last().is_some_and(|answer| answer.zone == Some(0));
    Summary {
        requests: answers.len(),
        failed_first,
        failed_later: failed().count() - failed_first,
        retried: answers
            .iter()
            .filter(|answer| !answer.failed() && answer.attempt > 1)
            .count(),
        moved: moved_at - dies,
        back: elsewhere
            .filter(|_| ends_there)
            .map(|answer| answer.sent - recovers),
    }
}

/// Summarizes results of clusters that share requests: the first cluster is back with its first response.
pub(super) fn summarize_clusters(
    answers: &[Answer],
    dies: Duration,
    recovers: Duration,
) -> Summary {
    let mut after = answers.iter().filter(|answer| answer.sent >= recovers);
    let first = after.find(|answer| !answer.failed() && answer.zone == Some(0));
    Summary {
        back: first.map(|answer| answer.sent - recovers),
        ..summarize(answers, dies, recovers)
    }
}

impl Summary {
    /// Head of the table of clusters.
    pub(super) const CLUSTERS_HEAD: &str = "\
| c1 | policy | retries | requests | failed until moved | failed later | saved by another try | ms until moved | ms until back |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

    /// Head of the table of zones.
    pub(super) const HEAD: &str = "\
| zone | retries | requests | failed until moved | failed later | saved by retries | ms until moved | ms until back |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

    /// Formats one line of the table.
    pub(super) fn row(&self, zone: &str, retries: &str) -> String {
        let back = self
            .back
            .map_or("-".to_owned(), |time| time.as_millis().to_string());
        format!(
            "| {zone} | {retries} | {} | {} | {} | {} | {} | {back} |\n",
            self.requests,
            self.failed_first,
            self.failed_later,
            self.retried,
            self.moved.as_millis(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(millis: u64, status: u16, zone: u8, attempt: u32) -> Answer {
        Answer {
            sent: Duration::from_millis(millis),
            status,
            zone: Some(zone),
            attempt,
        }
    }

    #[test]
    fn answers_are_summed_up() {
        let millis = Duration::from_millis;
        let answers = [
            answer(50, 200, 0, 1),
            answer(110, 503, 0, 1),
            answer(120, 200, 1, 2),
            answer(200, 200, 1, 1),
            // the zone is tried again, too early
            answer(600, 503, 0, 1),
            answer(700, 200, 1, 1),
            answer(1100, 200, 0, 1),
            answer(1150, 200, 1, 1),
            answer(1200, 200, 0, 1),
        ];
        let summary = Summary {
            requests: 9,
            failed_first: 1,
            failed_later: 1,
            retried: 1,
            moved: millis(20),
            back: Some(millis(150)),
        };
        assert_eq!(summarize(&answers, millis(100), millis(1000)), summary);
    }

    #[test]
    fn cluster_is_back_with_its_first_answer() {
        let millis = Duration::from_millis;
        let answers = [
            answer(50, 200, 0, 1),
            answer(110, 500, 0, 1),
            answer(120, 200, 2, 1),
            answer(1010, 200, 1, 1),
            answer(1040, 200, 0, 2),
            answer(1050, 200, 2, 1),
        ];
        let summary = summarize_clusters(&answers, millis(100), millis(1000));
        assert_eq!(summary.back, Some(millis(40)));
        assert_eq!((summary.failed_first, summary.moved), (1, millis(10)));
    }

    #[test]
    fn zone_that_does_not_come_back_has_no_time() {
        let millis = Duration::from_millis;
        let answers = [answer(1100, 200, 1, 1)];
        let summary = summarize(&answers, millis(100), millis(1000));
        assert_eq!((summary.back, summary.moved), (None, Duration::ZERO));
    }
}
