//! The E4M3 number format (Micikevicius et al., arXiv 2209.05433): 4 exponent bits with bias 7, 3 mantissa bits, no
//! infinities, NaN only as S.1111.111.

/// Largest finite value, S.1111.110.
pub const MAX: f32 = 448.0;

/// Smallest normal value, 2⁻⁶.
const MIN_NORMAL: f32 = 0.015_625;
/// Adding and subtracting this rounds to multiples of 2⁻⁹ (the subnormal step): f32 values from 2¹⁴ to 2¹⁵ are that
/// far apart.
const SUBNORMAL_ROUNDER: f32 = 16_384.0;
/// f32 keeps 23 mantissa bits, E4M3 three.
const DROPPED_BITS: u32 = 20;
const NAN_CODE: u8 = 0x7f;
const MAX_CODE: u8 = 0x7e;

/// `value` rounded to the nearest E4M3 number, ties to even, magnitudes above [`MAX`] (infinity too) to [`MAX`].
/// NaN stays NaN.
#[inline(always)]
pub(super) fn round(value: f32) -> f32 {
    let magnitude = value.abs();
    let rounded = if magnitude < MIN_NORMAL {
        (magnitude + SUBNORMAL_ROUNDER) - SUBNORMAL_ROUNDER
    } else {
        f32::from_bits(round_mantissa(magnitude.to_bits()))
    };
    // `min` would turn NaN into MAX.
    let limited = if rounded > MAX { MAX } else { rounded };
    limited.copysign(value)
}

/// Rounds an f32 mantissa to three bits; a carry moves into the exponent, as it should.
#[inline(always)]
fn round_mantissa(bits: u32) -> u32 {
    if bits > f32::INFINITY.to_bits() {
        return bits;
    }
    let odd = (bits >> DROPPED_BITS) & 1;
    (bits + (1 << (DROPPED_BITS - 1)) - 1 + odd) >> DROPPED_BITS << DROPPED_BITS
}

/// The E4M3 code of `value`, with the rounding and saturation that conversion instructions have (`satfinite`).
pub fn encode(value: f32) -> u8 {
    let sign = ((value.to_bits() >> 31) as u8) << 7;
    if value.is_nan() {
        return sign | NAN_CODE;
    }
    let magnitude = round(value).abs();
    let code = if magnitude < MIN_NORMAL {
        (magnitude * 512.0) as u8
    } else {
        // Exponent and three mantissa bits are adjacent in both formats; the biases differ by 120.
        ((magnitude.to_bits() >> DROPPED_BITS) - (120 << 3)) as u8
    };
    sign | code.min(MAX_CODE)
}

/// The value of an E4M3 code.
pub fn decode(code: u8) -> f32 {
    let magnitude = code & 0x7f;
    let value = match magnitude {
        NAN_CODE => f32::NAN,
        0..=7 => f32::from(magnitude) / 512.0,
        _ => f32::from_bits((u32::from(magnitude) + (120 << 3)) << DROPPED_BITS),
    };
    value.copysign(if code & 0x80 == 0 { 1.0 } else { -1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: (−1)^s · 2^(e−7) · (1 + m/8), and 2^−6 · m/8 for e = 0.
    fn by_definition(code: u8) -> f64 {
        let (e, m) = (i32::from(code >> 3 & 15), f64::from(code & 7));
        let magnitude = match e {
            15 if m == 7.0 => f64::NAN,
            0 => m / 8.0 * 2f64.powi(-6),
            _ => (1.0 + m / 8.0) * 2f64.powi(e - 7),
        };
        if code & 0x80 == 0 { magnitude } else { -magnitude }
    }

    #[test]
    fn all_256_codes_decode_by_the_definition_and_encode_back() {
        for code in 0..=255u8 {
            let (got, expected) = (decode(code), by_definition(code));
            if expected.is_nan() {
                assert!(got.is_nan(), "{code:#04x}");
            } else {
                assert_eq!(f64::from(got), expected, "{code:#04x}");
            }
            assert_eq!(encode(got), code, "{code:#04x}");
        }
        assert_eq!(
            (decode(0x7e), decode(0x08), decode(0x01)),
            (448.0, 0.015_625, 0.001_953_125)
        );
    }

    #[test]
    fn midpoints_go_to_the_even_code_and_their_neighbours_to_the_nearer() {
        for code in 0..0x7eu8 {
            let (low, high) = (decode(code), decode(code + 1));
            // Both have at most four significant bits, so the midpoint is exact in f32.
            let middle = (low + high) / 2.0;
            let even = if code % 2 == 0 { code } else { code + 1 };
            assert_eq!(encode(middle), even, "between {low} and {high}");
            assert_eq!(encode(middle.next_down()), code, "below {middle}");
            assert_eq!(encode(middle.next_up()), code + 1, "above {middle}");
            assert_eq!(encode(-middle), even | 0x80);
        }
    }

    #[test]
    fn values_computed_by_hand() {
        // 17 lies between 16 (1.000·2⁴) and 18 (1.001·2⁴), a tie: mantissa 000 is even.
        // 19 lies between 18 (001) and 20 (010), a tie: 010 is even.
        // 0.013671875 = 7·2⁻⁹ is the largest subnormal; 7.5·2⁻⁹ ties to 8·2⁻⁹, the smallest normal.
        // 2⁻¹⁰ ties between 0 and 2⁻⁹: 0 is even. 3·2⁻¹⁰ ties between 1 and 2 steps: 2 is even.
        for (value, expected) in [
            (17.0, 16.0),
            (19.0, 20.0),
            (0.014_648_437_5, 0.015_625),
            (0.000_976_562_5, 0.0),
            (0.002_929_687_5, 0.003_906_25),
            (447.9, 448.0),
            (432.0, 448.0),
            (431.9, 416.0),
            (1e9, 448.0),
            (f32::INFINITY, 448.0),
            (f32::MIN_POSITIVE, 0.0),
        ] {
            assert_eq!(decode(encode(value)), expected, "{value}");
            assert_eq!(decode(encode(-value)), -expected, "-{value}");
        }
    }

    #[test]
    fn round_agrees_with_the_codes() {
        let mut bits = 0u32;
        // A stride that is odd and large visits all exponents and both signs.
        for _ in 0..200_000 {
            bits = bits.wrapping_add(0x9e37_79b1);
            let value = f32::from_bits(bits);
            let (a, b) = (round(value), decode(encode(value)));
            assert!(a == b || a.is_nan() && b.is_nan(), "{value}: {a} against {b}");
        }
        assert_eq!(
            round(-1e-9).to_bits(),
            (-0.0f32).to_bits(),
            "the sign survives underflow"
        );
    }
}
