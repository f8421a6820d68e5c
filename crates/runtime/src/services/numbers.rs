//! Arithmetic of the standard procedures, as plain functions.

/// Truncates, but a positive fraction above one half counts as one more: 2.5 is 2, 2.6 is 3, -2.6
/// is -2. The language's own rule; programs depend on it. Beyond the integers the result is the
/// nearest integer, and of NaN it is 0.
pub(crate) fn real_to_int(real: f32) -> i32 {
    let whole = real.trunc();
    let round_up = real - whole > 0.5;
    (whole as i32).saturating_add(i32::from(round_up))
}

/// The square, computed in double precision as every intermediate result is.
pub(crate) fn square_real(real: f32) -> f32 {
    (f64::from(real) * f64::from(real)) as f32
}

/// The square root; 0 for zero and negatives.
pub(crate) fn square_root(real: f32) -> f32 {
    if real > 0.0 {
        f64::from(real).sqrt() as f32
    } else {
        0.0
    }
}

/// The mean, summed exactly.
pub(crate) fn average_of_integers(values: &[i32]) -> f32 {
    if values.is_empty() {
        return 0.0;
    }
    let sum: i64 = values.iter().map(|&value| i64::from(value)).sum();
    (sum as f64 / values.len() as f64) as f32
}

/// The mean, summed in double precision.
pub(crate) fn average_of_reals(values: &[f32]) -> f32 {
    if values.is_empty() {
        return 0.0;
    }
    let sum: f64 = values.iter().map(|&value| f64::from(value)).sum();
    (sum / values.len() as f64) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_becomes_an_integer_by_the_language_s_odd_rounding() {
        let cases = [
            (2.5, 2),
            (2.6, 3),
            (-2.6, -2),
            (-2.4, -2),
            (0.5, 0),
            (0.51, 1),
            (0.0, 0),
            (7.0, 7),
            (3e9, i32::MAX),
            (-3e9, i32::MIN),
            (f32::INFINITY, i32::MAX),
            (f32::NAN, 0),
        ];
        for (real, expected) in cases {
            assert_eq!(real_to_int(real), expected, "{real}");
        }
    }

    #[test]
    fn roots_and_squares() {
        assert_eq!(square_root(2.25), 1.5);
        assert_eq!(square_root(0.0), 0.0);
        assert_eq!(square_root(-4.0), 0.0);
        assert_eq!(square_root(f32::NAN), 0.0);
        assert_eq!(square_real(-1.5), 2.25);
    }

    #[test]
    fn averages() {
        assert_eq!(average_of_integers(&[1, 2]), 1.5);
        assert_eq!(average_of_integers(&[i32::MAX; 4]), i32::MAX as f32);
        assert_eq!(average_of_integers(&[]), 0.0);
        assert_eq!(average_of_reals(&[0.5, 1.0, 1.5]), 1.0);
        assert_eq!(average_of_reals(&[f32::MAX, f32::MAX]), f32::MAX);
    }
}
