//! What the two processes say to each other: frames of a length and a value.

use std::io::{self, Read, Write};

use lm_bench_plugin::{LogLevel, Metric, Resolved, Subscription};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::columns::ColumnPlace;
use crate::plugin::failure::Failure;
use crate::plugin::limits::Limits;
use crate::plugin::probes::Sample;

/// First word of the child. Both sides are the same program, so a difference means that the program was replaced.
pub(super) const HELLO: &str = concat!("lm-bench plugin process ", env!("CARGO_PKG_VERSION"));

/// Largest frame that is not a library or a report, in bytes.
pub(super) const SMALL_FRAME: usize = 4 << 20;

/// A call to the child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Call {
    /// Loads the library, whose bytes follow in a frame of their own.
    Load {
        limits: Box<Limits>,
        sha256: String,
        /// The process that is measured.
        process: u64,
    },
    /// Texts of symbols after those before. It has no answer.
    Symbols(Vec<String>),
    Describe,
    Subscribe {
        config: String,
        run: String,
    },
    Open {
        config: String,
        run: String,
        resolved: Resolved,
    },
    Batch(BatchHead),
    LostAfter {
        kind: u16,
        rows: u64,
    },
    Checkpoint,
    Finish,
    ProbeOpen {
        config: String,
        run: String,
    },
    ProbeStart,
    ProbeSample,
    ProbeStop,
}

/// A batch without its columns, which lie in the shared memory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BatchHead {
    pub(super) kind: u16,
    pub(super) seq: u64,
    pub(super) rows: u32,
    pub(super) weight: f64,
    pub(super) lost_before: u64,
    pub(super) columns: Vec<ColumnPlace>,
}

/// What a call gave.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Done,
    Text(String),
    Subscription(Subscription),
    Metrics(Vec<Metric>),
    Sample(Sample),
    /// The library could not be loaded.
    NotLoaded(String),
}

/// The child's answer to a call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) result: Result<Reply, Failure>,
    /// Lines that the plugin logged during the call.
    pub(super) log: Vec<(LogLevel, String)>,
    /// Log lines that were refused during the call.
    pub(super) log_refused: u64,
    /// Most memory that the plugin made the process hold so far, in bytes.
    pub(super) peak_memory: Option<u64>,
}

/// Writes one frame.
pub(super) fn send<T: Serialize>(to: &mut impl Write, value: &T) -> io::Result<()> {
    let bytes = postcard::to_allocvec(value).map_err(io::Error::other)?;
    send_bytes(to, &bytes)
}

/// Writes one frame of bytes.
pub(super) fn send_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)
}

/// Reads one frame of at most `most` bytes.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read, most: usize) -> io::Result<T> {
    let bytes = receive_bytes(from, most)?;
    postcard::from_bytes(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads one frame of bytes, at most `most`.
pub(super) fn receive_bytes(from: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        let text = format!("a message of {length} bytes where {most} are allowed");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut bytes = Vec::new();
    // Grows with what arrives: a length alone reserves nothing.
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use lm_bench_plugin::Value;

    use super::*;

    #[test]
    fn values_arrive_bit_for_bit() {
        let metric = Metric {
            name: "m".to_owned(),
            labels: vec![("layer".to_owned(), "3".to_owned())],
            value: Value::Distribution(vec![(f64::from_bits(0x7ff8_0000_0000_0123), 1), (-0.0, 2)]),
            samples: 3,
        };
        let answer = Answer {
            result: Ok(Reply::Metrics(vec![metric])),
            log: vec![(LogLevel::Warn, "w".to_owned())],
            log_refused: 7,
            peak_memory: Some(9),
        };
        let mut bytes = Vec::new();
        send(&mut bytes, &answer).expect("written");
        let back: Answer = receive(&mut bytes.as_slice(), SMALL_FRAME).expect("read");
        let Ok(Reply::Metrics(metrics)) = back.result else {
            panic!("{back:?}")
        };
        let Value::Distribution(values) = &metrics[0].value else {
            panic!("{metrics:?}")
        };
        let bits: Vec<u64> = values.iter().map(|(value, _)| value.to_bits()).collect();
        assert_eq!(bits, [0x7ff8_0000_0000_0123, (-0.0_f64).to_bits()]);
    }

    #[test]
    fn each_failure_arrives_as_it_was() {
        let failure = Failure::MemoryLimit { wanted: 2, limit: 1 };
        let mut bytes = Vec::new();
        send(&mut bytes, &failure).expect("written");
        let back: Failure = receive(&mut bytes.as_slice(), SMALL_FRAME).expect("read");
        assert_eq!(back, failure);
    }

    #[test]
    fn a_frame_that_is_too_long_or_cut_is_an_error() {
        let mut bytes = Vec::new();
        send(&mut bytes, &"four").expect("written");
        assert!(receive::<String>(&mut bytes.as_slice(), 4).is_err());
        for end in 0..bytes.len() {
            assert!(
                receive::<String>(&mut &bytes[..end], SMALL_FRAME).is_err(),
                "{end}"
            );
        }
    }
}
