//! Comparison with `ml_dtypes`, an independent implementation, on the values it left in `tests/assets/reference`.

use serde::Deserialize;

use super::{ChannelAxis, Granularity, Matrix, QuantError, decode, encode, quantize_measured};

#[derive(Deserialize)]
struct Golden {
    shape: (usize, usize),
    /// Value of each code, `null` for NaN.
    values: Vec<Option<f32>>,
    /// f32 bits and E4M3 code in turn.
    vectors: Vec<u32>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    input: String,
    first: [f32; 4],
    granularity: String,
    scale_from: String,
    sqnr_db: f64,
    sqnr_channel_p50: f64,
    underflow: u64,
    max_abs_err: f32,
    amax: f32,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../../../tests/assets/reference/fp8-golden.json")).expect("valid")
}

#[test]
fn codes_and_conversions_agree() {
    let golden = golden();
    for (code, value) in (0..=255u8).zip(&golden.values) {
        match value {
            Some(value) => assert_eq!(decode(code).to_bits(), value.to_bits(), "{code:#04x}"),
            None => assert!(decode(code).is_nan(), "{code:#04x}"),
        }
    }
    for pair in golden.vectors.chunks_exact(2) {
        let value = f32::from_bits(pair[0]);
        assert_eq!(u32::from(encode(value)), pair[1], "{value:e}");
    }
}

/// The recipe's normals: SplitMix64 as a counter, Box-Muller in f64.
fn normals(seed: u64, count: usize) -> Vec<f64> {
    let draw = |k: u64| {
        let mut z = seed.wrapping_add((k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) >> 11
    };
    let unit = 1.0 / (1u64 << 53) as f64;
    let pair = |i: u64| {
        let (u, v) = ((draw(2 * i) + 1) as f64 * unit, draw(2 * i + 1) as f64 * unit);
        let (sin, cos) = (std::f64::consts::TAU * v).sin_cos();
        let r = (-2.0 * u.ln()).sqrt();
        [r * cos, r * sin]
    };
    (0..count as u64 / 2).flat_map(pair).collect()
}

fn matrix(input: &str, (rows, columns): (usize, usize)) -> Option<Vec<f32>> {
    let mut values = match input {
        "normal" => normals(10, rows * columns),
        "loud_channels" => normals(3, rows * columns),
        _ => return None,
    };
    if input == "loud_channels" {
        for row in values.chunks_exact_mut(columns) {
            for column in [5, 77, 1333, 2048, 2900, 4095] {
                row[column] *= 300.0;
            }
        }
    }
    Some(values.into_iter().map(|v| v as f32).collect())
}

fn measured(values: &[f32], columns: usize, granularity: &str) -> QuantError {
    let granularity = [
        Granularity::Tensor,
        Granularity::Row,
        Granularity::TILE_1X128,
        Granularity::TILE_128X128,
    ]
    .into_iter()
    .find(|g| g.name() == granularity)
    .expect("a granularity");
    let mut copy = values.to_vec();
    quantize_measured(
        Matrix::new(&mut copy, columns).expect("whole rows"),
        granularity,
        ChannelAxis::Columns,
    )
}

#[test]
fn error_statistics_agree() {
    let golden = golden();
    let mut compared = 0;
    for input in ["normal", "loud_channels"] {
        let values = matrix(input, golden.shape).expect("a recipe");
        for row in golden
            .rows
            .iter()
            .filter(|r| r.input == input && r.scale_from == "amax")
        {
            assert!(
                values
                    .iter()
                    .zip(row.first)
                    .all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs()),
                "{input}"
            );
            let e = measured(&values, golden.shape.1, &row.granularity);
            let name = format!("{input}, {}", row.granularity);
            let db = 10.0 * (e.sum_sq_ref / e.sum_sq_err).log10();
            assert!(
                (db - row.sqnr_db).abs() < 1e-3,
                "{name}: {db} dB, {}",
                row.sqnr_db
            );
            let p50 = e.sqnr_channel_p50();
            assert!(
                (p50 - row.sqnr_channel_p50).abs() < 1e-3,
                "{name}: median {p50}, {}",
                row.sqnr_channel_p50
            );
            assert!(
                e.underflow.abs_diff(row.underflow) <= 1,
                "{name}: {} underflows",
                e.underflow
            );
            assert!(
                (e.max_abs_err / row.max_abs_err - 1.0).abs() < 1e-3,
                "{name}: {}",
                e.max_abs_err
            );
            assert!((e.amax / row.amax - 1.0).abs() < 1e-6, "{name}: amax {}", e.amax);
            // The scale is moved up where amax itself would leave the range, so nothing saturates.
            assert_eq!(e.saturated, 0, "{name}");
            compared += 1;
        }
    }
    assert_eq!(compared, 8);
}
