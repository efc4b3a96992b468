//! `date` header of responses without one (RFC 9110, section 6.6.1).

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

use crate::runtime::clock::Tick;
use crate::runtime::dates;

/// Current time as a header value: formatted once per second, and the clock read once per tick of the worker.
#[derive(Debug, Default)]
pub(super) struct Dates(RefCell<Option<Dated>>);

#[derive(Debug)]
struct Dated {
    looked: Tick,
    second: u64,
    value: HeaderValue,
}

impl Dates {
    /// Returns the value for this tick.
    pub(super) fn at(&self, tick: Tick) -> HeaderValue {
        self.with(tick, HeaderValue::clone)
    }

    /// Appends the value for this tick to `out`.
    pub(super) fn write(&self, tick: Tick, out: &mut Vec<u8>) {
        self.with(tick, |value| out.extend_from_slice(value.as_bytes()));
    }

    fn with<T>(&self, tick: Tick, use_value: impl FnOnce(&HeaderValue) -> T) -> T {
        let mut dated = self.0.borrow_mut();
        match &mut *dated {
            Some(dated) if dated.looked == tick => use_value(&dated.value),
            dated => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                let second = since.map_or(0, |since| since.as_secs());
                let known = dated.take().filter(|dated| dated.second == second);
                let value = known.map_or_else(|| date(second), |dated| dated.value);
                let dated = dated.insert(Dated {
                    looked: tick,
                    second,
                    value,
                });
                use_value(&dated.value)
            }
        }
    }
}

fn date(second: u64) -> HeaderValue {
    HeaderValue::try_from(dates::http_date(second)).expect("visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_is_the_present_second() {
        let dates = Dates::default();
        for tick in [Tick(0), Tick(0), Tick(1), Tick(9)] {
            let value = dates.at(tick);
            let mut out = Vec::new();
            dates.write(tick, &mut out);
            assert_eq!(out, value.as_bytes());
            let age = SystemTime::now()
                .duration_since(httpdate::parse_http_date(value.to_str().unwrap()).unwrap());
            assert!(age.unwrap().as_secs() < 60, "{value:?}");
        }
    }
}
