//! Histograms in messages: HDR V2 in base64, which includes range and precision. Merges them without
//! loss.

use crate::{Mismatch, decode_histogram, encode_histogram};
use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Most values in a histogram of a message: what a server answers in a day, at 200 million in a second. Sums over
/// all processes do not overflow.
const MOST: u64 = 1 << 44;

pub fn serialize<S: Serializer>(
    histogram: &Histogram<u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode_histogram(histogram))
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let histogram = decode_histogram(&text).map_err(D::Error::custom)?;
    match histogram.len() {
        ..=MOST => Ok(histogram),
        more => {
            Err(D::Error::custom(format!("a histogram of {more} values: expected at most {MOST}")))
        }
    }
}

/// Rejects histograms of different range or precision. Their buckets differ, so merging them would move
/// samples.
pub(crate) fn check_like(one: &Histogram<u64>, other: &Histogram<u64>) -> Result<(), Mismatch> {
    let like = |h: &Histogram<u64>| (h.low(), h.high(), h.sigfig());
    if like(one) == like(other) {
        return Ok(());
    }
    let shape =
        |h: &Histogram<u64>| format!("{} to {} ns, {} digits", h.low(), h.high(), h.sigfig());
    Err(Mismatch(format!("a histogram of {} and one of {}", shape(one), shape(other))))
}

/// Adds the samples of `one` to the same buckets of `sum`.
pub(crate) fn add(sum: &mut Histogram<u64>, one: &Histogram<u64>) -> Result<(), Mismatch> {
    check_like(sum, one)?;
    sum.add(one).map_err(|error| Mismatch(format!("a histogram cannot be added: {error}")))
}
