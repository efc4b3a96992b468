//! Selection of mirrors for a request; pure.

/// The whole in units of a share: shares are exact to a ten-thousandth of a percent.
pub const WHOLE: u32 = 1_000_000;

/// Mirrors of a rule, each with its share of requests.
///
/// Source: VirtualService `http[].mirror` with `mirrorPercentage`, or `http[].mirrors`; HTTPRoute and GRPCRoute, filter
/// `RequestMirror`.
#[derive(Clone, Debug)]
pub struct Mirrors<T> {
    entries: Box<[(u32, T)]>,
    draws: Draws,
}

/// Draws that decide which mirrors get a copy of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// One draw for all, so that the requests of a mirror are a subset of those of any mirror with a larger share.
    ///
    /// Source: VirtualService.
    One,
    /// One for each mirror.
    ///
    /// Source: HTTPRoute and GRPCRoute, filter `RequestMirror`.
    Each,
}

impl<T> Mirrors<T> {
    /// Creates mirrors with shares in parts of [`WHOLE`]; `None` if all shares are 0.
    pub fn build(draws: Draws, entries: impl IntoIterator<Item = (u32, T)>) -> Option<Self> {
        let entries: Box<[_]> = entries
            .into_iter()
            .filter(|(share, _)| *share > 0)
            .collect();
        (!entries.is_empty()).then_some(Self { entries, draws })
    }

    /// The mirrors for a request, given random draws below [`WHOLE`].
    pub fn at(&self, mut draw: impl FnMut() -> u32) -> impl Iterator<Item = &T> {
        let mut last = draw();
        let hit = self.entries.iter().filter(move |(share, _)| {
            let drawn = last;
            if self.draws == Draws::Each {
                last = draw();
            }
            drawn < *share
        });
        hit.map(|(_, mirror)| mirror)
    }

    /// Whether the host of copies may get the suffix of [`shadow`]: those of a VirtualService.
    pub fn may_have_suffix(&self) -> bool {
        self.draws == Draws::One
    }

    /// All mirrors with their shares; for explanations.
    pub fn entries(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().map(|(share, mirror)| (*share, mirror))
    }
}

/// The host of a copy with the `-shadow` suffix of older Istio versions, before the port.
pub fn shadow(authority: &str) -> String {
    // the last colon of `[::1]` is not before a port
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{host}-shadow:{port}")
        }
        _ => format!("{authority}-shadow"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sample_decides_for_all_mirrors() {
        let mirrors = Mirrors::build(
            Draws::One,
            [(500_000, 'a'), (200_000, 'b'), (0, 'c'), (1, 'd')],
        )
        .unwrap();
        let at = |draw| mirrors.at(|| draw).collect::<String>();
        let rows = [
            (0, "abd"),
            (1, "ab"),
            (199_999, "ab"),
            (200_000, "a"),
            (499_999, "a"),
            (500_000, ""),
            (999_999, ""),
        ];
        for (draw, expected) in rows {
            assert_eq!(at(draw), expected, "{draw}");
        }
    }

    #[test]
    fn each_mirror_can_have_a_draw_of_its_own() {
        let mirrors = Mirrors::build(Draws::Each, [(500_000, 'a'), (200_000, 'b')]).unwrap();
        let at = |draws: [u32; 2]| {
            let mut draws = draws.into_iter();
            let draw = || draws.next().unwrap_or_default();
            mirrors.at(draw).collect::<String>()
        };
        let found = [[0, 0], [0, 200_000], [500_000, 0], [500_000, 200_000]].map(at);
        assert_eq!(found, ["ab", "a", "b", ""]);
    }

    #[test]
    fn percentage_100_mirrors_all_requests_and_0_is_dropped() {
        let mirrors = Mirrors::build(Draws::One, [(WHOLE, ())]).unwrap();
        assert_eq!(mirrors.at(|| WHOLE - 1).count(), 1);
        assert!(Mirrors::build(Draws::One, [(0, ())]).is_none());
    }

    #[test]
    fn shadow_suffix_is_added_before_the_port() {
        for (authority, expected) in [
            ("cart", "cart-shadow"),
            ("cart:8080", "cart-shadow:8080"),
            ("[::1]:80", "[::1]-shadow:80"),
            ("[::1]", "[::1]-shadow"),
        ] {
            assert_eq!(shadow(authority), expected);
        }
    }
}
