//! The `date` of a response that has none (RFC 9110, section 6.6.1).

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

use crate::runtime::dates;

/// The present time as a header value, written once a second.
#[derive(Debug, Default)]
pub(in crate::codec) struct Dates(RefCell<Option<(u64, HeaderValue)>>);

impl Dates {
    /// The value for this moment.
    pub(in crate::codec) fn now(&self) -> HeaderValue {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs());
        let mut last = self.0.borrow_mut();
        match &*last {
            Some((second, value)) if *second == seconds => value.clone(),
            _ => {
                let text = dates::http_date(seconds);
                let value = HeaderValue::try_from(text).expect("visible ASCII");
                *last = Some((seconds, value.clone()));
                value
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_is_the_present_second() {
        let value = Dates::default().now();
        let age = SystemTime::now()
            .duration_since(httpdate::parse_http_date(value.to_str().unwrap()).unwrap());
        assert!(age.unwrap().as_secs() < 60, "{value:?}");
    }
}
