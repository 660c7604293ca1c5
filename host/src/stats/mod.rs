//! Statistics on weighted samples: quantiles, intervals and mergeable histograms. Pure: no I/O, no clock, no random
//! numbers, and no function of the platform's mathematics library, so that equal samples give equal bits everywhere.
//!
//! A [`Distribution`] holds distinct values with their counts; what is asked of it comes with its uncertainty.
//!
//! | question | rule |
//! |---|---|
//! | percentile | nearest rank, as HdrHistogram: the smallest value that at least `p %` of the samples do not exceed |
//! | interval of a percentile | order statistics with binomial tails, no assumption on the distribution |
//! | fewest samples for a percentile | those with which both ends of that interval are samples |
//! | interval of a mean | Student's t on the samples' standard deviation; none where it holds impossible values |
//! | what a change costs, from pairs | ratio of means over strata, Student's t on the linearised logarithm |

mod distribution;
mod histogram;
mod interval;
mod paired;
mod percent;
mod special;

pub use distribution::{Distribution, DistributionError};
pub use histogram::{EncodedHistogram, Histogram, HistogramError, resolution_of};
pub use interval::{Confidence, Interval, NoInterval, PercentileEstimate, Undersampled};
pub use paired::{MIN_PAIRS, RatioEstimate, Stratum, ratio_of_means};
pub use percent::{Percent, PercentError};
