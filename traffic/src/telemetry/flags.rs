//! Envoy's response flags: reasons for the outcome of a request or a connection.
//!
//! Imports nothing. Dashboards and runbooks match on the printed text, so this is the only place for names and their
//! order.

use std::fmt;
use std::str::FromStr;

/// A set of response flags, printed as Envoy prints it: short names in a fixed order, joined by `,`, `-` when empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResponseFlags(u32);

/// Declares the flags in print order: the position in this table is the bit.
macro_rules! response_flags {
    ($($(#[doc = $doc:literal])+ $constant:ident $short:literal $long:literal,)+) => {
        /// Bit numbers; private, so that only whole flags leave this file.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        enum Bit { $($constant,)+ }

        impl ResponseFlags {
            $($(#[doc = $doc])+ pub const $constant: Self = Self(1 << Bit::$constant as u32);)+

            /// Every flag, in print order: short name, long name.
            const TABLE: &'static [(&'static str, &'static str)] = &[$(($short, $long),)+];
        }
    };
}

response_flags! {
    /// The local health check failed (reserved).
    LH "LH" "FailedLocalHealthCheck",
    /// No endpoint, or all of them are ejected or unhealthy.
    UH "UH" "NoHealthyUpstream",
    /// The route's timeout, or the per-try timeout of the last attempt, expired.
    UT "UT" "UpstreamRequestTimeout",
    /// This proxy reset the upstream stream.
    LR "LR" "LocalReset",
    /// The upstream reset the stream.
    UR "UR" "UpstreamRemoteReset",
    /// Connecting to the upstream failed or timed out, including its TLS handshake.
    UF "UF" "UpstreamConnectionFailure",
    /// The upstream closed the connection.
    UC "UC" "UpstreamConnectionTermination",
    /// A circuit breaker overflowed.
    UO "UO" "UpstreamOverflow",
    /// No virtual host, no route, or no filter chain.
    NR "NR" "NoRouteFound",
    /// A fault delayed the request.
    DI "DI" "DelayInjected",
    /// A fault aborted the request.
    FI "FI" "FaultInjected",
    /// A rate limit refused the request.
    RL "RL" "RateLimited",
    /// The external authorization service refused the request.
    UAEX "UAEX" "UnauthorizedExternalService",
    /// The rate limit service failed.
    RLSE "RLSE" "RateLimitServiceError",
    /// The client disconnected.
    DC "DC" "DownstreamConnectionTermination",
    /// The retries, or the connect attempts of a TCP connection, are exhausted.
    URX "URX" "UpstreamRetryLimitExceeded",
    /// The stream was idle for too long.
    SI "SI" "StreamIdleTimeout",
    /// The strict check of `x-envoy-` request headers failed.
    IH "IH" "InvalidEnvoyRequestHeaders",
    /// The client broke the protocol.
    DPE "DPE" "DownstreamProtocolError",
    /// The upstream stream reached its maximum duration.
    UMSDR "UMSDR" "UpstreamMaxStreamDurationReached",
    /// The response came from a cache (reserved).
    RFCF "RFCF" "ResponseFromCacheFilter",
    /// A filter had no configuration (reserved).
    NFCF "NFCF" "NoFilterConfigFound",
    /// The downstream connection or stream reached its maximum duration.
    DT "DT" "DurationTimeout",
    /// The upstream broke the protocol.
    UPE "UPE" "UpstreamProtocolError",
    /// The destination host or subset is unknown.
    NC "NC" "NoClusterFound",
    /// The overload manager ended the request.
    OM "OM" "OverloadManagerTerminated",
    /// Resolving a name for this request failed.
    DF "DF" "DnsResolutionFailed",
    /// Dropped to shed load (reserved).
    DO "DO" "DropOverload",
    /// The client reset the stream (reserved; Envoy prints it last).
    DR "DR" "DownstreamRemoteReset",
}

impl ResponseFlags {
    /// No flags: the response came from the upstream.
    pub const NONE: Self = Self(0);

    /// Number of flags.
    pub const COUNT: usize = Self::TABLE.len();

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// This set together with `other`.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Adds the flags of `other`.
    pub const fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// The set as a number, below `1 << ResponseFlags::COUNT`.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Creates a set from [`ResponseFlags::bits`]; ignores bits without a flag.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & ((1 << Self::COUNT) - 1))
    }

    /// The short names of the flags that are set, in print order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.indexes().map(|index| Self::TABLE[index].0)
    }

    /// The long names of the flags that are set, in print order.
    pub fn long_names(self) -> impl Iterator<Item = &'static str> {
        self.indexes().map(|index| Self::TABLE[index].1)
    }

    /// Positions of the flags that are set, ascending, which is print order.
    pub fn indexes(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let index = rest.trailing_zeros() as usize;
            // clears the lowest set bit; `index` is 32 when none is left
            rest &= rest.wrapping_sub(1);
            (index < Self::COUNT).then_some(index)
        })
    }

    /// The short name of the flag at one of [`ResponseFlags::indexes`].
    pub fn name_at(index: usize) -> &'static str {
        Self::TABLE[index].0
    }

    /// Appends the printed form without the formatting machinery.
    pub fn append_to(self, out: &mut Vec<u8>) {
        if self.is_empty() {
            out.push(b'-');
            return;
        }
        for (count, name) in self.names().enumerate() {
            if count > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name.as_bytes());
        }
    }
}

impl std::ops::BitOr for ResponseFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl std::ops::BitOrAssign for ResponseFlags {
    fn bitor_assign(&mut self, other: Self) {
        self.insert(other);
    }
}

impl fmt::Display for ResponseFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        for (count, name) in self.names().enumerate() {
            if count > 0 {
                f.write_str(",")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

/// A word that is not a response flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFlag(pub String);

impl fmt::Display for UnknownFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a response flag such as `UF`, found `{}`",
            self.0
        )
    }
}

impl std::error::Error for UnknownFlag {}

impl FromStr for ResponseFlags {
    type Err = UnknownFlag;

    /// Reads short names joined by `,`, in any order, or `-`.
    fn from_str(text: &str) -> Result<Self, UnknownFlag> {
        let mut flags = Self::NONE;
        if text == "-" {
            return Ok(flags);
        }
        for word in text.split(',') {
            let index = Self::TABLE.iter().position(|(short, _)| *short == word);
            let index = index.ok_or_else(|| UnknownFlag(word.to_owned()))?;
            flags.insert(Self(1 << index));
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests;
