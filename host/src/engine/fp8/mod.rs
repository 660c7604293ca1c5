//! FP8 E4M3 as a storage format, computed exactly on the CPU, with the error it makes.
//!
//! Values are quantised and at once turned back into f32, so that any kernel can compute with them; what is measured
//! is the format and its scaling, not a particular kernel's accumulation.

mod e4m3;
mod error;
#[cfg(test)]
mod golden;
mod quantize;

pub use e4m3::{MAX, decode, encode};
pub use error::{ChannelAxis, QuantError};
pub use quantize::{Fp8Scales, Granularity, Matrix, quantize, quantize_measured};
