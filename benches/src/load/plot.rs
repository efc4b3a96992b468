//! Latency distribution as an SVG image.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::percentiles::{Point, points};

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Number of grid lines.
const STEPS: u32 = 5;

/// Draws latency by percentile; the scale of percentiles is logarithmic, like that of HdrHistogram's plotter.
pub fn svg(histogram: &Histogram<u64>, title: &str) -> String {
    let points = points(histogram);
    // Each nine of the percentile takes the same width.
    let nines = points.iter().filter_map(nines).fold(1.0_f64, f64::max);
    let decades = nines.ceil();
    let top = ceiling(points.last().map_or(0.0, |point| point.value));
    let x = |nines: f64| LEFT + (WIDTH - LEFT - RIGHT) * nines / decades;
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"14\">{}</text>\n",
        escaped(title)
    );
    for step in 0..=STEPS {
        let value = top * f64::from(step) / f64::from(STEPS);
        line(&mut svg, [(x(0.0), y(value)), (x(decades), y(value))]);
        label(&mut svg, LEFT - 6.0, y(value) + 4.0, "end", &number(value));
    }
    for decade in 0..=decades as i32 {
        let at = x(f64::from(decade));
        line(&mut svg, [(at, y(0.0)), (at, y(top))]);
        label(
            &mut svg,
            at,
            HEIGHT - BOTTOM + 18.0,
            "middle",
            &percentile(decade),
        );
    }
    label(&mut svg, LEFT, TOP - 6.0, "end", "ms");
    label(&mut svg, WIDTH / 2.0, HEIGHT - 10.0, "middle", "percentile");
    let curve = points.iter().map(|point| {
        let at = nines_or(point, decades);
        format!("{:.1},{:.1}", x(at), y(point.value))
    });
    let curve: Vec<_> = curve.collect();
    let _ = write!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"2\"/>\n</svg>\n",
        curve.join(" ")
    );
    svg
}

/// Returns the position of a point on the logarithmic scale: 1 at 90 %, 2 at 99 %; `None` at 100 %, which is infinite.
fn nines(point: &Point) -> Option<f64> {
    (point.quantile < 1.0).then(|| -(1.0 - point.quantile).log10())
}

fn nines_or(point: &Point, last: f64) -> f64 {
    nines(point).unwrap_or(last)
}

fn percentile(decade: i32) -> String {
    match decade {
        0 => "0 %".to_owned(),
        1 => "90 %".to_owned(),
        _ => {
            let places = usize::try_from(decade - 2).unwrap_or_default();
            format!("{:.places$} %", 100.0 - 100.0 * 10.0_f64.powi(-decade))
        }
    }
}

/// Rounds up to the next of 1, 2, 5, 10, 20, 50, ...
fn ceiling(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let decade = 10.0_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

fn number(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}

fn line(svg: &mut String, [from, to]: [(f64, f64); 2]) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn label(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::record::histogram;

    fn curve(svg: &str) -> Vec<(f64, f64)> {
        let points = svg
            .split("<polyline points=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let point = |text: &str| {
            let (x, y) = text.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        points.split_whitespace().map(point).collect()
    }

    #[test]
    fn curve_rises_inside_of_the_image() {
        let mut histogram = histogram();
        (1..=10_000).for_each(|value| histogram.record(value).unwrap());
        let svg = svg(&histogram, "a <title> & more");
        assert!(svg.contains("a &lt;title&gt; &amp; more"));
        assert!(svg.contains(">99.99 %<"));
        let curve = curve(&svg);
        assert!(curve.len() > 20);
        assert!(curve.is_sorted_by(|a, b| a.0 <= b.0 && a.1 >= b.1));
        for (x, y) in curve {
            assert!((LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y));
        }
    }

    #[test]
    fn scale_ends_at_a_round_number() {
        for (value, top) in [
            (0.0, 1.0),
            (0.13, 0.2),
            (1.0, 1.0),
            (3.0, 5.0),
            (51.0, 100.0),
        ] {
            assert!(
                (ceiling(value) - top).abs() < 1e-9,
                "{value}: {}",
                ceiling(value)
            );
        }
    }

    #[test]
    fn percentiles_are_named_by_their_nines() {
        let names: Vec<_> = (0..=4).map(percentile).collect();
        assert_eq!(names, ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
    }

    #[test]
    fn nothing_measured_is_still_an_image() {
        assert!(svg(&histogram(), "").ends_with("</svg>\n"));
    }
}
