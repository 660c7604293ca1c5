//! Histograms that are stored in the result and merge exactly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::Distribution;

/// Significant decimal digits that are kept of each value.
const DIGITS: u8 = 3;
/// Characters of a stored histogram that are decoded at most. Three digits over 64 bits are 55,296 buckets of at most
/// 9 bytes each.
const MAX_ENCODED: usize = 1 << 20;
/// Samples that a histogram holds at most: the stored form keeps counts in 63 bits.
const MAX_COUNT: u64 = i64::MAX as u64;
/// Bytes before the counts of HdrHistogram's V2 form, big-endian: cookie u32, length of the counts u32, offset u32, digits
/// u32, lowest value u64, highest value u64, ratio f64.
const HEADER: usize = 40;

/// An HdrHistogram with three significant digits of `value / resolution`, one for values of 0 and above and one for the
/// magnitude of negative values. The resolution depends on the metric's unit alone, so that histograms of one metric from
/// different runs or shards always merge.
#[derive(Clone, Debug)]
pub struct Histogram {
    resolution: f64,
    positive: hdrhistogram::Histogram<u64>,
    negative: hdrhistogram::Histogram<u64>,
    out_of_range: u64,
}

/// A histogram as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EncodedHistogram {
    /// Significant decimal digits kept of each value.
    pub significant_digits: u8,
    /// A stored integer times this is a value in the metric's unit.
    pub resolution: f64,
    /// Samples in the histogram, on both sides and out of range.
    pub count: u64,
    /// Samples whose magnitude exceeds what the histogram can hold; counted here and nowhere else.
    pub out_of_range: u64,
    /// Values of 0 and above: HdrHistogram's V2 form (not compressed, so that equal histograms are equal text) in base64.
    pub positive: Option<String>,
    /// Magnitudes of values below 0, likewise.
    pub negative: Option<String>,
}

/// Why a histogram cannot be read or merged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HistogramError {
    /// The text is no base64, no HdrHistogram, or one of another shape.
    #[error("the histogram does not decode: {0}")]
    Malformed(String),
    /// The histograms count in different steps, so one of them belongs to a metric of another unit.
    #[error("histograms with resolutions {0} and {1} do not merge: they belong to different metrics")]
    Resolutions(f64, f64),
    /// Together they hold more samples than can be stored.
    #[error("the histograms hold more than {MAX_COUNT} samples together")]
    TooMany,
    /// The stated count differs from the number of samples found.
    #[error("the histogram states {stated} samples and holds {found}")]
    Count {
        /// As stated.
        stated: u64,
        /// As found.
        found: u64,
    },
}

/// The step in which values of a unit are counted: a nanosecond for times, a thousandth for rates, bytes and floating-point
/// operations, a billionth for ratios and percentages, a millionth for anything else.
pub fn resolution_of(unit: &str) -> f64 {
    match unit {
        "s" => 1e-9,
        "ms" => 1e-6,
        "us" => 1e-3,
        "ns" => 1.0,
        "1" | "%" => 1e-9,
        _ if unit.ends_with("/s") || unit.contains("By") || unit.to_ascii_lowercase().contains("flop") => {
            1e-3
        }
        _ => 1e-6,
    }
}

fn empty() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new(DIGITS).expect("three digits are within 0 to 5")
}

impl Histogram {
    /// A histogram of samples in a unit.
    pub fn new(samples: &Distribution, unit: &str) -> Self {
        let resolution = resolution_of(unit);
        let mut new = Self {
            resolution,
            positive: empty(),
            negative: empty(),
            out_of_range: 0,
        };
        for (value, count) in samples.buckets() {
            let steps = (value.abs() / resolution).round();
            let side = if *value < 0.0 && steps > 0.0 {
                &mut new.negative
            } else {
                &mut new.positive
            };
            // 2^62 is the largest bucket whose bounds HdrHistogram computes without overflow.
            if steps >= (1u64 << 62) as f64 || side.record_n(steps as u64, *count).is_err() {
                new.out_of_range = new.out_of_range.saturating_add(*count);
            }
        }
        new
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.positive
            .len()
            .saturating_add(self.negative.len())
            .saturating_add(self.out_of_range)
    }

    /// Adds the samples of another histogram: bucket by bucket, so the result is the histogram of all samples.
    ///
    /// # Errors
    /// [`HistogramError::Resolutions`] and [`HistogramError::TooMany`].
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        if self.resolution != other.resolution {
            return Err(HistogramError::Resolutions(self.resolution, other.resolution));
        }
        if self.count().saturating_add(other.count()) > MAX_COUNT {
            return Err(HistogramError::TooMany);
        }
        let fits = "an auto-resizing histogram takes every value of another";
        self.positive.add(&other.positive).expect(fits);
        self.negative.add(&other.negative).expect(fits);
        self.out_of_range += other.out_of_range;
        Ok(())
    }

    /// The histogram as a distribution of its buckets' middles, within 0.1 % of the samples; those out of range are
    /// missing. `None` without samples.
    pub fn distribution(&self) -> Option<Distribution> {
        let of = |side: &hdrhistogram::Histogram<u64>, sign: f64| -> Vec<(f64, u64)> {
            let middle = |value| side.median_equivalent(value) as f64 * self.resolution * sign;
            side.iter_recorded()
                .map(|step| (middle(step.value_iterated_to()), step.count_at_value()))
                .collect()
        };
        let both = of(&self.negative, -1.0)
            .into_iter()
            .chain(of(&self.positive, 1.0));
        Distribution::from_buckets(both).ok()
    }

    /// The form that is stored.
    pub fn encode(&self) -> EncodedHistogram {
        EncodedHistogram {
            significant_digits: DIGITS,
            resolution: self.resolution,
            count: self.count(),
            out_of_range: self.out_of_range,
            positive: encode(&self.positive),
            negative: encode(&self.negative),
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`HistogramError::Malformed`] and [`HistogramError::Count`].
    pub fn decode(encoded: &EncodedHistogram) -> Result<Self, HistogramError> {
        if encoded.significant_digits != DIGITS
            || !(encoded.resolution > 0.0 && encoded.resolution.is_finite())
        {
            return Err(HistogramError::Malformed(
                "digits or resolution are not this program's".to_owned(),
            ));
        }
        let decoded = Self {
            resolution: encoded.resolution,
            positive: decode(encoded.positive.as_deref())?,
            negative: decode(encoded.negative.as_deref())?,
            out_of_range: encoded.out_of_range,
        };
        let (stated, found) = (encoded.count, decoded.count());
        if stated == found {
            Ok(decoded)
        } else {
            Err(HistogramError::Count { stated, found })
        }
    }
}

/// `None` without samples. Equal counts give equal text: the bounds are those of the values, not those the histogram
/// happened to grow to.
fn encode(histogram: &hdrhistogram::Histogram<u64>) -> Option<String> {
    let largest = histogram.max().max(2);
    let mut exact =
        hdrhistogram::Histogram::new_with_bounds(1, largest, DIGITS).expect("1 * 2 <= the largest value");
    exact
        .add(histogram)
        .expect("its bounds were taken from the added histogram");
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(&exact, &mut bytes)
        .expect("memory takes all bytes and counts fit 63 bits");
    (!histogram.is_empty()).then(|| STANDARD.encode(bytes))
}

fn decode(text: Option<&str>) -> Result<hdrhistogram::Histogram<u64>, HistogramError> {
    let Some(text) = text else { return Ok(empty()) };
    let malformed = |reason: &dyn std::fmt::Display| HistogramError::Malformed(reason.to_string());
    if text.len() > MAX_ENCODED {
        return Err(malformed(&format_args!(
            "{} characters are more than {MAX_ENCODED}",
            text.len()
        )));
    }
    let bytes = STANDARD.decode(text).map_err(|error| malformed(&error))?;
    // Checked here because the library allocates what the header asks for.
    let word = |at: usize| {
        bytes
            .get(at..at + 4)
            .and_then(|word| word.try_into().ok())
            .map(u32::from_be_bytes)
    };
    if word(4).and_then(|length| usize::try_from(length).ok()) != bytes.len().checked_sub(HEADER) {
        return Err(malformed(&"its length differs from the one it states"));
    }
    if word(12) != Some(u32::from(DIGITS)) || (word(16), word(20)) != (Some(0), Some(1)) {
        return Err(malformed(
            &"it keeps another number of digits or starts at another value",
        ));
    }
    let read: hdrhistogram::Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| malformed(&error))?;
    let mut grown = empty();
    grown.add(&read).map_err(|error| malformed(&error))?;
    Ok(grown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(samples: &[f64], unit: &str) -> Histogram {
        Histogram::new(
            &Distribution::from_samples(samples.iter().copied()).unwrap(),
            unit,
        )
    }

    #[test]
    fn keeps_three_digits_on_both_sides_of_zero() {
        let histogram = of(&[0.0, -12.345678, 1.5, 1.5, 987_654.321], "ms");
        let read = histogram.distribution().unwrap();
        assert_eq!(read.count(), 5);
        for (got, want) in read.buckets().iter().zip([-12.345678, 0.0, 1.5, 987_654.321]) {
            assert!(
                (got.0 - want).abs() <= 1e-3 * f64::abs(want),
                "{got:?} is not {want}"
            );
        }
        assert_eq!(read.buckets()[2].1, 2);
    }

    #[test]
    fn small_integers_of_the_resolution_are_exact() {
        let histogram = of(&[1.0, 2.0, 2047.0], "ns");
        assert_eq!(
            histogram.distribution().unwrap().buckets(),
            [(1.0, 1), (2.0, 1), (2047.0, 1)]
        );
    }

    #[test]
    fn what_does_not_fit_is_counted_and_not_clamped() {
        let histogram = of(&[1.0, 1e300, -1e300, 1e12], "s");
        // 1e12 s are 1e21 steps, above 2^62.
        assert_eq!((histogram.out_of_range, histogram.count()), (3, 4));
        assert_eq!(histogram.encode().out_of_range, 3);
        let most = of(&[4_000_000_000.0], "s");
        assert_eq!((most.out_of_range, most.count()), (0, 1));
    }

    #[test]
    fn the_resolution_follows_the_unit() {
        for (unit, step) in [
            ("s", 1e-9),
            ("ms", 1e-6),
            ("By/s", 1e-3),
            ("{flop}", 1e-3),
            ("1", 1e-9),
            ("dB", 1e-6),
        ] {
            assert_eq!(resolution_of(unit), step, "{unit}");
        }
        let error = of(&[1.0], "ms").merge(&of(&[1.0], "s")).unwrap_err();
        assert_eq!(error, HistogramError::Resolutions(1e-6, 1e-9));
    }

    #[test]
    fn the_text_is_what_other_libraries_read() {
        // Written by hand from the V2 layout: cookie 0x1c849303 | 0x10, 2 bytes of counts, offset 0, 3 digits, values 1 to 2,
        // ratio 1.0, then the counts as zigzag numbers: 0 for the value 0, and 5, which is 10.
        let bytes = [
            0x1c, 0x84, 0x93, 0x13, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
            0, 0, 0, 2, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0, 10,
        ];
        let encoded = of(&[1.0; 5], "ns").encode();
        assert_eq!(encoded.positive, Some(STANDARD.encode(bytes)));
        assert_eq!((encoded.count, encoded.negative), (5, None));
    }

    #[test]
    fn refuses_what_is_no_histogram() {
        let good = of(&[1.0, 5.0], "ms").encode();
        let with = |text: &str| EncodedHistogram {
            positive: Some(text.to_owned()),
            ..good.clone()
        };
        let mut huge = STANDARD.decode(good.positive.as_deref().unwrap()).unwrap();
        huge[4..8].copy_from_slice(&[0xff; 4]);
        let mut digits = STANDARD.decode(good.positive.as_deref().unwrap()).unwrap();
        digits[15] = 5;
        for text in [
            "",
            "!!",
            "AAAA",
            &STANDARD.encode(huge),
            &STANDARD.encode(digits),
            &"A".repeat(MAX_ENCODED + 4),
        ] {
            assert!(
                matches!(Histogram::decode(&with(text)), Err(HistogramError::Malformed(_))),
                "{text:.20}"
            );
        }
        let lying = EncodedHistogram {
            count: 3,
            ..good.clone()
        };
        assert_eq!(
            Histogram::decode(&lying).err(),
            Some(HistogramError::Count { stated: 3, found: 2 })
        );
        let flat = EncodedHistogram {
            resolution: 0.0,
            ..good
        };
        assert!(Histogram::decode(&flat).is_err());
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(prop_oneof![-1e7..1e7, -1.0..1.0, Just(0.0)], 1..50)
    }

    proptest! {
        #[test]
        fn merging_stored_shards_is_recording_everything(left in samples(), right in samples()) {
            let stored = |list: &[f64]| Histogram::decode(&of(list, "ms").encode()).unwrap();
            let mut merged = stored(&left);
            merged.merge(&stored(&right)).unwrap();
            let whole = of(&[left, right].concat(), "ms");
            prop_assert_eq!(merged.encode(), whole.encode());
            prop_assert_eq!(merged.distribution(), whole.distribution());
        }

        #[test]
        fn arbitrary_text_never_panics(text in "[A-Za-z0-9+/=]{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let mut framed = vec![0x1c, 0x84, 0x93, 0x13];
            framed.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
            framed.extend([0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
            framed.extend(1.0f64.to_be_bytes());
            framed.extend(bytes);
            for text in [text, STANDARD.encode(framed)] {
                let encoded = EncodedHistogram { positive: Some(text), ..of(&[1.0], "ms").encode() };
                let _ = Histogram::decode(&encoded);
            }
        }
    }
}
