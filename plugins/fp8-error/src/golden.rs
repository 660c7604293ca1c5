//! The collector's figures against ml_dtypes: matrices made by the recipe in `tests/assets/reference/fp8-golden.json`,
//! quantised here, summed into `quant` rows, and compared with what the reference computed.

use lm_bench_plugin::kinds::{phase, quant};
use lm_bench_plugin::testing::CollectorTest;

use super::*;

const ROWS: usize = 1024;
const COLUMNS: usize = 4096;
const REFERENCE: &str = include_str!("../../../tests/assets/reference/fp8-golden.json");

/// dB per tensor, row and 1x128 of an earlier, separate measurement with other random numbers.
const TABLE: [(&str, [f64; 3]); 4] = [
    ("normal", [31.5, 31.5, 31.8]),
    ("student_t3", [31.5, 32.0, 33.1]),
    ("loud_channels", [31.5, 34.7, 43.5]),
    ("lognormal_rows", [31.6, 31.5, 31.8]),
];
const SATURATED_DB: f64 = 11.6;

/// SplitMix64 as a counter, and Box-Muller.
fn normals(seed: u64, count: usize) -> Vec<f64> {
    let draw = |k: u64| {
        let state = seed.wrapping_add((k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) >> 11
    };
    let unit = 2.0_f64.powi(-53);
    let pair = |k: u64| {
        let (u, v) = ((draw(2 * k) as f64 + 1.0) * unit, draw(2 * k + 1) as f64 * unit);
        let (radius, angle) = ((-2.0 * u.ln()).sqrt(), 2.0 * std::f64::consts::PI * v);
        [radius * angle.cos(), radius * angle.sin()]
    };
    (0..count as u64 / 2).flat_map(pair).collect()
}

fn matrix(input: &str) -> Vec<f32> {
    const N: usize = ROWS * COLUMNS;
    let loud = [5, 77, 1333, 2048, 2900, 4095];
    match input {
        "normal" => normals(10, N).into_iter().map(|z| z as f32).collect(),
        "student_t3" => {
            let z = normals(2, 4 * N);
            let t = |z: &[f64]| z[0] / ((z[1] * z[1] + z[2] * z[2] + z[3] * z[3]) / 3.0).sqrt();
            z.chunks_exact(4).map(|z| t(z) as f32).collect()
        }
        "loud_channels" => {
            let z = normals(3, N).into_iter().enumerate();
            z.map(|(i, z)| if loud.contains(&(i % COLUMNS)) { z * 300.0 } else { z } as f32).collect()
        }
        "lognormal_rows" => {
            let rows = normals(5, ROWS);
            let z = normals(4, N).into_iter().enumerate();
            z.map(|(i, z)| (z * (1.5 * rows[i / COLUMNS]).exp()) as f32)
                .collect()
        }
        other => panic!("no recipe for {other}"),
    }
}

/// Nearest E4M3 value, ties to even, saturating: steps of 2^-9 below 2^-6, of an eighth of the binade above
/// (Micikevicius et al., arXiv 2209.05433).
fn e4m3(value: f32) -> f32 {
    let magnitude = value.abs().min(448.0);
    let exponent = (magnitude.to_bits() >> 23) as i32 - 127;
    let step = 2.0_f32.powi(exponent.max(-6) - 3);
    ((magnitude / step).round_ties_even() * step).copysign(value)
}

fn group(granularity: &str) -> (usize, usize) {
    match granularity {
        "tensor" => (ROWS, COLUMNS),
        "row" => (1, COLUMNS),
        "1x128" => (1, 128),
        "128x128" => (128, 128),
        other => panic!("no granularity {other}"),
    }
}

/// The `quant` row of a quantised matrix, without its symbols.
fn quantise(x: &[f32], (rows, columns): (usize, usize), divisor: f32) -> quant::Row<'static> {
    let across = COLUMNS / columns;
    let place = |i: usize| (i / COLUMNS / rows) * across + (i % COLUMNS) / columns;
    let mut amax = vec![0.0_f32; ROWS / rows * across];
    for (i, x) in x.iter().enumerate() {
        let group = &mut amax[place(i)];
        *group = group.max(x.abs());
    }
    let scales: Vec<f32> = amax.iter().map(|amax| amax / divisor / 448.0).collect();
    let mut channels = vec![(0.0_f64, 0.0_f64); COLUMNS];
    let mut row = quant::Row {
        n: x.len() as u64,
        phase: phase::PREFILL,
        ..Default::default()
    };
    for (i, &x) in x.iter().enumerate() {
        let scale = scales[place(i)];
        let scaled = x / scale;
        let error = f64::from(e4m3(scaled) * scale) - f64::from(x);
        let channel = &mut channels[i % COLUMNS];
        channel.0 += f64::from(x) * f64::from(x);
        channel.1 += error * error;
        row.saturated += u64::from(scaled.abs() > 448.0);
        row.underflow += u64::from(x != 0.0 && e4m3(scaled) == 0.0);
        row.max_abs_err = row.max_abs_err.max(error.abs() as f32);
    }
    row.amax = amax.iter().copied().fold(0.0, f32::max);
    row.scale = scales.iter().copied().fold(0.0, f32::max);
    row.sum_sq_ref = channels.iter().map(|channel| channel.0).sum();
    row.sum_sq_err = channels.iter().map(|channel| channel.1).sum();
    let mut decibels: Vec<f64> = channels.iter().map(|(x, e)| 10.0 * (x / e).log10()).collect();
    decibels.sort_by(f64::total_cmp);
    row.sqnr_channel_p50 = f64::midpoint(decibels[COLUMNS / 2 - 1], decibels[COLUMNS / 2]) as f32;
    row
}

/// Compares one row of the reference.
fn compare(x: &[f32], golden: &serde_json::Value) {
    let text = |key: &str| golden[key].as_str().expect("a text");
    let number = |key: &str| golden[key].as_f64().expect("a number");
    let granularity = text("granularity");
    let divisor = if text("scale_from") == "amax/4" { 4.0 } else { 1.0 };
    let row = quantise(x, group(granularity), divisor);
    assert_eq!(number("amax") as f32, row.amax, "{golden}");

    let mut test = CollectorTest::<Fp8Error>::new();
    let tensor = test.symbol("x");
    let (format, scales) = (test.symbol("e4m3"), test.symbol(granularity));
    test.row(&quant::Row {
        tensor,
        format,
        granularity: scales,
        ..row
    });
    let metrics = test.metrics();
    let labels = [
        ("format", "e4m3"),
        ("granularity", granularity),
        ("phase", "prefill"),
    ];
    let near = |name: &str, expected: f64, tolerance: f64| {
        metrics.assert_near(name, &labels, (expected, tolerance));
    };
    near("quantization_error_l2", number("rel_l2"), 1e-4 * number("rel_l2"));
    near("sqnr_db", number("sqnr_db"), 0.001);
    near("sqnr_channel_p50_db", number("sqnr_channel_p50"), 0.01);
    near(
        "max_abs_error",
        number("max_abs_err"),
        1e-5 * number("max_abs_err"),
    );
    // A last bit of ln, sin or cos may move a few of 4 million values over the edge.
    near(
        "saturation_ratio",
        number("saturated_share"),
        2e-6 + 1e-3 * number("saturated_share"),
    );
    near(
        "underflow_ratio",
        number("underflow_share"),
        2e-6 + 1e-3 * number("underflow_share"),
    );
    near("nonfinite_ratio", 0.0, 0.0);
    near("scale_headroom_log2_min", -f64::from(divisor).log2(), 1e-6);

    let column = ["tensor", "row", "1x128"]
        .iter()
        .position(|have| *have == granularity);
    let table = TABLE.iter().find(|(input, _)| *input == text("input"));
    match (column, table) {
        (Some(_), _) if divisor > 1.0 => near("sqnr_db", SATURATED_DB, 0.2),
        (Some(column), Some((_, decibels))) => near("sqnr_db", decibels[column], 0.2),
        _ => {}
    }
}

#[test]
fn figures_agree_with_ml_dtypes() {
    let reference: serde_json::Value = serde_json::from_str(REFERENCE).expect("valid JSON");
    let rows = reference["rows"].as_array().expect("a list");
    for (input, _) in TABLE {
        let of_input: Vec<_> = rows.iter().filter(|row| row["input"] == input).collect();
        assert!(
            of_input.len() >= 4,
            "{input} has {} reference rows",
            of_input.len()
        );
        let x = matrix(input);
        for row in of_input {
            compare(&x, row);
        }
    }
}

#[test]
fn rounding_agrees_with_ml_dtypes() {
    let reference: serde_json::Value = serde_json::from_str(REFERENCE).expect("valid JSON");
    let values = reference["values"].as_array().expect("a list");
    let vectors = reference["vectors"].as_array().expect("a list");
    assert!(vectors.len() > 200);
    for pair in vectors.chunks_exact(2) {
        let (bits, code) = (pair[0].as_u64().expect("bits"), pair[1].as_u64().expect("a code"));
        let input = f32::from_bits(bits as u32);
        // A code whose value is null stands for NaN, which the collector's rows count apart.
        if let Some(expected) = values[code as usize].as_f64() {
            assert_eq!(f64::from(e4m3(input)), expected, "{input:e}");
        }
    }
}
