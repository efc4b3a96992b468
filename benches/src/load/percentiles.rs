//! Percentiles as text, in the format of HdrHistogram's plotting tools.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

/// Number of lines per halving of the distance to 100 %.
const TICKS_PER_HALF_DISTANCE: u32 = 5;

/// Conversion factor: values are in us, and written in ms.
const MICROS_PER_MILLI: f64 = 1000.0;

/// Line of the distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Value, in ms.
    pub value: f64,
    /// Quantile, from 0 to 1.
    pub quantile: f64,
    /// Number of values up to this one.
    pub total: u64,
}

/// Returns the distribution, from the lowest value to the highest.
pub fn points(histogram: &Histogram<u64>) -> Vec<Point> {
    let mut total = 0;
    let mut points = Vec::new();
    for step in histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        total += step.count_since_last_iteration();
        points.push(Point {
            value: millis(step.value_iterated_to().min(histogram.max())),
            quantile: step.quantile_iterated_to(),
            total,
        });
    }
    points
}

/// Converts a time from us to ms.
pub fn millis(micros: u64) -> f64 {
    micros as f64 / MICROS_PER_MILLI
}

/// Formats the distribution, with values in ms.
pub fn text(histogram: &Histogram<u64>) -> String {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for Point {
        value,
        quantile,
        total,
    } in points(histogram)
    {
        // The last line has no distance to 100 %.
        let _ = if quantile < 1.0 {
            let distance = 1.0 / (1.0 - quantile);
            writeln!(
                text,
                "{value:>12.3} {quantile:>2.12} {total:>10} {distance:>14.2}"
            )
        } else {
            writeln!(text, "{value:>12.3} {quantile:>2.12} {total:>10}")
        };
    }
    let _ = write!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>12.3}, Total count    = {:>12}]\n\
         #[Buckets = {:>12}, SubBuckets     = {:>12}]\n",
        histogram.mean() / MICROS_PER_MILLI,
        histogram.stdev() / MICROS_PER_MILLI,
        millis(histogram.max()),
        histogram.len(),
        histogram.buckets(),
        sub_buckets(histogram),
    );
    text
}

/// Returns the number of sub-buckets: the power of two that holds the significant digits at a resolution of one unit.
fn sub_buckets(histogram: &Histogram<u64>) -> u64 {
    (2 * 10_u64.pow(u32::from(histogram.sigfig()))).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::record::histogram;

    fn filled() -> Histogram<u64> {
        let mut histogram = histogram();
        (1..=1000).for_each(|value| histogram.record(value * 100).unwrap());
        histogram
    }

    /// Parses the text like hdr-plot.py and HdrHistogram's plotter: four columns, or three in the last line.
    fn parse(text: &str) -> Vec<(f64, f64, u64, Option<f64>)> {
        let lines = text
            .lines()
            .skip(1)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines
            .map(|line| {
                let words: Vec<_> = line.split_ascii_whitespace().collect();
                let distance = words.get(3).map(|word| word.parse().unwrap());
                let [value, quantile, total] = [words[0], words[1], words[2]];
                (
                    value.parse().unwrap(),
                    quantile.parse().unwrap(),
                    total.parse().unwrap(),
                    distance,
                )
            })
            .collect()
    }

    #[test]
    fn text_has_the_layout_of_hdrhistogram() {
        let text = text(&filled());
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some("       Value     Percentile TotalCount 1/(1-Percentile)")
        );
        assert_eq!(lines.next(), Some(""));
        assert_eq!(
            lines.next(),
            Some("       0.100 0.000000000000          1           1.00")
        );
        let last: Vec<_> = text.lines().rev().take(4).collect();
        assert_eq!(last[3], "     100.031 1.000000000000       1000");
        assert!(last[2].starts_with("#[Mean    =       50.0"), "{}", last[2]);
        assert!(
            last[2].contains(", StdDeviation   =       28.8"),
            "{}",
            last[2]
        );
        assert_eq!(
            last[1],
            "#[Max     =      100.031, Total count    =         1000]"
        );
        assert_eq!(
            last[0],
            "#[Buckets =           22, SubBuckets     =         2048]"
        );
    }

    #[test]
    fn text_can_be_parsed_and_rises() {
        let rows = parse(&text(&filled()));
        assert!(rows.len() > 20);
        assert!(rows.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1 && a.2 <= b.2));
        let median = rows.iter().find(|row| row.1 >= 0.5).unwrap();
        assert!((49.9..50.2).contains(&median.0), "{median:?}");
        for (_, quantile, _, distance) in &rows[..rows.len() - 1] {
            let distance = distance.unwrap();
            assert!((distance - 1.0 / (1.0 - quantile)).abs() < 0.01 * distance);
        }
        assert_eq!(rows.last().unwrap().3, None);
    }

    #[test]
    fn nothing_measured_is_still_a_text() {
        assert!(parse(&text(&histogram())).is_empty());
    }
}
