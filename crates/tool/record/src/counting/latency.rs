//! Latency as stored: percentiles for display, the whole HDR histogram for recomputation.

use base64::{Engine, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Deserializer, Serializer, V2DeflateSerializer},
};
use serde::{Deserialize, Serialize};

/// Latency in nanoseconds. A percentile with fewer than ten samples beyond it is `None`
/// (method, rule 6).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Shortest.
    pub min: Option<u64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p99_9: Option<u64>,
    /// 99.99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<u64>,
    /// Longest.
    pub max: Option<u64>,
}

impl Latency {
    /// Minimum number of samples beyond a percentile that is shown.
    pub const SAMPLES_BEYOND: u64 = 10;

    /// Computes the percentiles of a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Self::of_censored(histogram, 0)
    }

    /// The same, with `beyond` further samples that are only known to be longer than all in the
    /// histogram, e.g. requests that timed out. A percentile that falls among them is `None`, and
    /// so is the maximum; the mean is that of the histogram alone.
    pub fn of_censored(histogram: &Histogram<u64>, beyond: u64) -> Self {
        let n = histogram.len();
        if n == 0 {
            return Latency::default();
        }
        let at = |quantile: f64| {
            let rank = ((n + beyond) as f64 * quantile).ceil() as u64;
            let known = rank <= n && n + beyond - rank >= Self::SAMPLES_BEYOND;
            // Half a rank less: the histogram rounds up.
            known.then(|| histogram.value_at_quantile((rank as f64 - 0.5) / n as f64))
        };
        Latency {
            min: Some(histogram.min()),
            mean: Some(histogram.mean()),
            p50: at(0.50),
            p90: at(0.90),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: (beyond == 0).then(|| histogram.max()),
        }
    }
}

/// Why a stored histogram could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// Not base64.
    #[error("the histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// Not an HDR histogram in the V2 compressed format.
    #[error("the histogram is not in HDR V2 format: {0:?}")]
    Hdr(hdrhistogram::serialization::DeserializeError),
    /// Not in the format written by [`encode_histogram`].
    #[error("the histogram cannot be read: {0}")]
    Format(&'static str),
}

/// Encodes a histogram in HDR's V2 format (compressed), in base64. Other HDR tools can read it.
pub fn encode_histogram(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("a histogram with its bounds set serialises into memory");
    STANDARD.encode(bytes)
}

/// The reverse of [`encode_histogram`], without loss.
pub fn decode_histogram(text: &str) -> Result<Histogram<u64>, HistogramError> {
    let bytes = STANDARD.decode(text)?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(HistogramError::Hdr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_survives_the_round_trip() {
        let mut h = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        for v in [1, 999, 1_000_000, 59_999_999_999] {
            h.record(v).unwrap();
        }
        assert_eq!(decode_histogram(&encode_histogram(&h)).unwrap(), h);
        assert!(decode_histogram("!!").is_err());
        assert!(decode_histogram("AAAA").is_err());
    }

    #[test]
    fn omits_a_percentile_with_fewer_than_ten_samples_beyond_it() {
        let mut h = Histogram::<u64>::new(3).unwrap();
        (0..100).for_each(|v| h.record(v).unwrap());
        let l = Latency::of(&h);
        assert_eq!(l.p90, Some(89));
        assert_eq!(l.p95, None);
        assert_eq!(Latency::of(&Histogram::<u64>::new(3).unwrap()), Latency::default());
    }

    #[test]
    fn samples_beyond_all_others_shift_percentiles_and_hide_the_highest() {
        let mut h = Histogram::<u64>::new(3).unwrap();
        (1..=900).for_each(|v| h.record(v).unwrap());
        let l = Latency::of_censored(&h, 100);
        assert_eq!((l.min, l.p50, l.p90), (Some(1), Some(500), Some(900)));
        assert_eq!((l.p95, l.p99, l.max), (None, None, None));
        assert_eq!(Latency::of_censored(&h, 101).p90, None);
        let all = Latency::of_censored(&h, 0);
        assert_eq!((all.p50, all.p95, all.max), (Some(450), Some(855), Some(900)));
        assert_eq!(Latency::of_censored(&Histogram::<u64>::new(3).unwrap(), 5), Latency::default());
    }
}
