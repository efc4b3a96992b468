//! Whether a request is sampled: by an earlier decision, else by a draw that all proxies repeat.

use super::context::{DecidedBy, RANDOM, TraceContext};
use super::headers::Incoming;
use super::settings::{Sampler, TracingSettings};

/// Position of the character of a request id that says whether the request is sampled, as in Envoy.
const MARK: usize = 14;

/// Facts that a decision is based on, beside the context of the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Request id that goes upstream, if it is a UUID.
    pub id: Option<RequestId>,
    /// Whether the id is the client's.
    pub is_id_kept: bool,
    /// Whether `x-envoy-force-trace` came, of an internal client.
    pub is_forced: bool,
    /// Whether `x-client-trace-id` came.
    pub has_client_id: bool,
}

/// Parts of a request id that sampling depends on.
#[derive(Clone, Copy, Debug)]
pub struct RequestId {
    /// `9` for a sampled request, `a` for a forced one, `b` by the client, `4` for all others.
    mark: u8,
    /// Number of the first 8 digits.
    draw: u32,
}

impl RequestId {
    /// Reads a request id; `None` if it is no UUID. One that this proxy made is one.
    pub fn read(id: &[u8], is_kept: bool) -> Option<Self> {
        let id: &[u8; 36] = id.try_into().ok()?;
        if is_kept && !is_uuid(id) {
            return None;
        }
        let digits = id[..8].iter().map(|digit| char::from(*digit).to_digit(16));
        let draw = digits.fold(0, |draw, digit| draw << 4 | digit.unwrap_or_default());
        let mark = match id[MARK] {
            mark @ (b'9' | b'a' | b'b') => mark,
            _ => b'4',
        };
        Some(Self { mark, draw })
    }
}

/// Decides about a request, whose context is begun already. `admit` asks for the budget of external clients.
pub fn decide(
    context: &mut TraceContext,
    parent: &Incoming,
    request: &Request,
    settings: &TracingSettings,
    admit: impl Fn() -> bool,
) {
    context.b3 = parent.b3;
    if let Some((trace, span)) = parent.ids {
        context.trace_id = trace;
        context.parent_id = span;
        context.flags = if parent.is_random { RANDOM } else { 0 };
    }
    let (is_sampled, by) = earlier(context, parent, request, settings, admit)
        .unwrap_or_else(|| (drawn(context, request, settings), DecidedBy::Random));
    context.set_sampled(is_sampled);
    context.decided_by = by;
}

/// The decision that was made before, in the order in which they count.
fn earlier(
    context: &TraceContext,
    parent: &Incoming,
    request: &Request,
    settings: &TracingSettings,
    admit: impl Fn() -> bool,
) -> Option<(bool, DecidedBy)> {
    let follows = settings.sampler == Sampler::ParentBased;
    let is_marked = request.is_id_kept && request.id.is_some_and(|id| id.mark != b'4');
    if follows && let Some(is_sampled) = parent.is_sampled {
        return (!is_sampled || admit()).then_some((is_sampled, DecidedBy::Parent));
    }
    if request.is_forced {
        return Some((true, DecidedBy::Forced));
    }
    if follows && settings.uses_request_id && is_marked {
        return Some((true, DecidedBy::RequestId));
    }
    let hits = || settings.client.hits(draw(context, request));
    if request.has_client_id && hits() && admit() {
        return Some((true, DecidedBy::Client));
    }
    None
}

fn drawn(context: &TraceContext, request: &Request, settings: &TracingSettings) -> bool {
    let draw = match settings.sampler {
        Sampler::ParentBased => draw(context, request),
        Sampler::TraceIdRatio => trace_draw(context),
    };
    settings.random.hits(draw)
}

/// First 8 digits of the request id, as in Envoy; of an id of another form, bits of the trace id.
fn draw(context: &TraceContext, request: &Request) -> u64 {
    let of_id = request.id.map(|id| u64::from(id.draw));
    of_id.unwrap_or_else(|| trace_draw(context))
}

/// The 56 bits of a trace id that are random.
fn trace_draw(context: &TraceContext) -> u64 {
    let mut low = [0; 8];
    low[1..].copy_from_slice(&context.trace_id[9..]);
    u64::from_be_bytes(low)
}

/// Returns the mark for the request id, if it is to have another one: the proxies behind this one, Envoy too, follow it.
pub fn new_mark(
    context: &TraceContext,
    request: &Request,
    settings: &TracingSettings,
) -> Option<u8> {
    let old = request.id.filter(|_| settings.uses_request_id)?.mark;
    let is_marked = old != b'4';
    let new = match (context.is_sampled(), context.decided_by) {
        (true, DecidedBy::Forced) => b'a',
        (true, DecidedBy::Client) => b'b',
        (true, _) if is_marked => return None,
        (true, _) => b'9',
        (false, DecidedBy::Parent) => b'4',
        (false, _) => return None,
    };
    (new != old).then_some(new)
}

/// The request id with another mark.
pub fn marked(id: &[u8], mark: u8) -> Option<[u8; 36]> {
    let mut id: [u8; 36] = id.try_into().ok()?;
    id[MARK] = mark;
    Some(id)
}

fn is_uuid(id: &[u8; 36]) -> bool {
    let is_right = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    id.iter().enumerate().all(is_right)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::super::settings::Percent;
    use super::*;

    const PLAIN: &[u8] = b"00000063-0000-4000-8000-000000000000";
    const MARKED: &[u8] = b"00000064-0000-9000-8000-000000000000";

    fn request(id: &[u8]) -> Request {
        Request {
            id: RequestId::read(id, true),
            is_id_kept: true,
            is_forced: false,
            has_client_id: false,
        }
    }

    fn settings(percent: f64) -> TracingSettings {
        TracingSettings {
            random: Percent::of(percent),
            ..TracingSettings::default()
        }
    }

    fn parent(is_sampled: Option<bool>) -> Incoming {
        Incoming {
            ids: is_sampled.map(|_| ([7; 16], [8; 8])),
            is_sampled,
            ..Incoming::default()
        }
    }

    /// Decision, origin and mark.
    type Row = (bool, DecidedBy, Option<u8>);

    fn decided(
        parent: Incoming,
        request: Request,
        settings: &TracingSettings,
        admits: bool,
    ) -> Row {
        let mut context = TraceContext::begin(&mut SmallRng::seed_from_u64(1));
        decide(&mut context, &parent, &request, settings, || admits);
        let mark = new_mark(&context, &request, settings);
        (context.is_sampled(), context.decided_by, mark)
    }

    #[test]
    fn earlier_decisions_come_before_draws() {
        use DecidedBy::{Client, Forced, Parent, Random, RequestId};
        let forced = Request {
            is_forced: true,
            ..request(PLAIN)
        };
        let client = Request {
            has_client_id: true,
            ..request(PLAIN)
        };
        let fresh = Request {
            is_id_kept: false,
            ..request(MARKED)
        };
        let rows = [
            (None, request(PLAIN), 0.0, (false, Random, None)),
            (None, request(PLAIN), 100.0, (true, Random, Some(b'9'))),
            (Some(true), request(PLAIN), 0.0, (true, Parent, Some(b'9'))),
            (Some(true), request(MARKED), 0.0, (true, Parent, None)),
            (Some(false), request(PLAIN), 100.0, (false, Parent, None)),
            (
                Some(false),
                request(MARKED),
                100.0,
                (false, Parent, Some(b'4')),
            ),
            (None, forced, 0.0, (true, Forced, Some(b'a'))),
            (Some(false), forced, 0.0, (false, Parent, None)),
            (None, request(MARKED), 0.0, (true, RequestId, None)),
            (None, fresh, 0.0, (false, Random, None)),
            (None, client, 0.0, (true, Client, Some(b'b'))),
            (None, request(b"abc"), 100.0, (true, Random, None)),
            (None, request(b"abc"), 0.0, (false, Random, None)),
        ];
        for (flag, request, percent, expected) in rows {
            let found = decided(parent(flag), request, &settings(percent), true);
            assert_eq!(found, expected, "{flag:?} {request:?} {percent}");
        }
    }

    #[test]
    fn external_claims_without_budget_are_drawn() {
        let claim = parent(Some(true));
        let client = Request {
            has_client_id: true,
            ..request(PLAIN)
        };
        let none = settings(0.0);
        let by = DecidedBy::Random;
        assert_eq!(
            decided(claim, request(PLAIN), &none, false),
            (false, by, None)
        );
        assert_eq!(
            decided(parent(None), client, &none, false),
            (false, by, None)
        );
    }

    #[test]
    fn draw_is_that_of_the_first_digits() {
        // 0x63 is 99, 0x64 is 100
        let one = settings(1.0);
        let ignoring = TracingSettings {
            uses_request_id: false,
            ..settings(1.0)
        };
        let none = parent(None);
        assert!(decided(none, request(PLAIN), &one, true).0);
        assert_eq!(
            decided(none, request(MARKED), &ignoring, true),
            (false, DecidedBy::Random, None)
        );
    }

    #[test]
    fn ratio_of_trace_ids_ignores_earlier_decisions() {
        let ratio = TracingSettings {
            sampler: Sampler::TraceIdRatio,
            ..settings(0.0)
        };
        let by = DecidedBy::Random;
        assert_eq!(
            decided(parent(Some(true)), request(MARKED), &ratio, true),
            (false, by, None)
        );
    }

    #[test]
    fn percentages_are_exact_at_both_ends() {
        assert!(!Percent::of(0.0).hits(0));
        assert!(Percent::of(100.0).hits(9_999));
        assert_eq!(Percent::of(0.014), Percent::of(0.01));
        assert_eq!(Percent::of(12.34).value(), 12.34);
    }
}
