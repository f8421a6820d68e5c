//! The integer Fourier transform behind `ifft`.
//!
//! For a signal x of n integers the transform is
//!
//! ```text
//! X[k] = Σ x[j] · e^(-2πi·j·k/n)        j = 0 … n-1
//! ```
//!
//! without any scaling: a constant c gives `X[0] = n·c`. A real signal has `X[n-k] = conj X[k]`, so
//! n integers hold all of it. They replace the signal in the usual half-complex order:
//!
//! ```text
//! index      0 … n/2           n/2+1 … n-1
//! holds      Re X[index]       Im X[n-index]
//! ```
//!
//! rounded to the nearest integer, and to the largest or smallest where none is near. Any length
//! will do: powers of two by the radix-2 method, others by Bluestein's, so the time is always
//! proportional to n·log n.

use std::f64::consts::PI;
use std::ops::{Add, Mul, Sub};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    fn real(re: f64) -> Complex {
        Complex { re, im: 0.0 }
    }

    /// e^(-πi·turns), for `turns` in half turns.
    fn clockwise(half_turns: f64) -> Complex {
        let angle = -PI * half_turns;
        Complex {
            re: angle.cos(),
            im: angle.sin(),
        }
    }

    fn conjugate(self) -> Complex {
        Complex {
            re: self.re,
            im: -self.im,
        }
    }
}

impl Add for Complex {
    type Output = Complex;
    fn add(self, other: Complex) -> Complex {
        Complex {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

impl Sub for Complex {
    type Output = Complex;
    fn sub(self, other: Complex) -> Complex {
        Complex {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

impl Mul for Complex {
    type Output = Complex;
    fn mul(self, other: Complex) -> Complex {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

/// Replaces the signal by its transform.
pub(crate) fn transform(signal: &mut [i32]) {
    let length = signal.len();
    if length < 2 {
        return;
    }
    let mut spectrum: Vec<Complex> = signal
        .iter()
        .map(|&sample| Complex::real(f64::from(sample)))
        .collect();
    if length.is_power_of_two() {
        radix_two(&mut spectrum);
    } else {
        spectrum = bluestein(&spectrum);
    }
    let half = length / 2;
    for index in 0..=half {
        signal[index] = spectrum[index].re.round() as i32;
    }
    for index in half + 1..length {
        signal[index] = spectrum[length - index].im.round() as i32;
    }
}

/// Transforms in place, for a power of two: bits of the index reversed, then butterflies of growing
/// span.
fn radix_two(values: &mut [Complex]) {
    let length = values.len();
    let bits = length.trailing_zeros();
    for index in 0..length {
        let mirrored = index.reverse_bits() >> (usize::BITS - bits);
        if index < mirrored {
            values.swap(index, mirrored);
        }
    }
    // Each twiddle is computed from its own angle: no error piles up along the row.
    let twiddles: Vec<Complex> = (0..length / 2)
        .map(|index| Complex::clockwise(2.0 * index as f64 / length as f64))
        .collect();
    let mut span = 1;
    while span < length {
        let stride = length / (2 * span);
        for start in (0..length).step_by(2 * span) {
            for offset in 0..span {
                let low = values[start + offset];
                let high = values[start + offset + span] * twiddles[offset * stride];
                values[start + offset] = low + high;
                values[start + offset + span] = low - high;
            }
        }
        span *= 2;
    }
}

/// Transforms any length n, as a convolution: jk = (j² + k² - (k-j)²)/2 turns the sum into a
/// product with "chirps" `w[j] = e^(-πi·j²/n)`, and `radix_two` does the convolution at a length of
/// at least 2n-1.
fn bluestein(values: &[Complex]) -> Vec<Complex> {
    let length = values.len();
    let padded = (2 * length - 1).next_power_of_two();
    // j² modulo 2n first: the chirp repeats there, and a large square would lose its fraction.
    let chirp: Vec<Complex> = (0..length)
        .map(|index| {
            let square = (index as u128 * index as u128) % (2 * length as u128);
            Complex::clockwise(square as f64 / length as f64)
        })
        .collect();
    let mut product = vec![Complex::default(); padded];
    for index in 0..length {
        product[index] = values[index] * chirp[index];
    }
    let mut filter = vec![Complex::default(); padded];
    filter[0] = chirp[0].conjugate();
    for index in 1..length {
        filter[index] = chirp[index].conjugate();
        filter[padded - index] = chirp[index].conjugate();
    }
    radix_two(&mut product);
    radix_two(&mut filter);
    for (factor, other) in product.iter_mut().zip(&filter) {
        // Conjugated, so that one more forward transform is the inverse, conjugated.
        *factor = (*factor * *other).conjugate();
    }
    radix_two(&mut product);
    let scale = Complex::real(1.0 / padded as f64);
    (0..length)
        .map(|index| product[index].conjugate() * scale * chirp[index])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, summed up.
    fn direct(signal: &[i32]) -> Vec<i32> {
        let length = signal.len();
        let term = |k: usize| {
            let mut sum = Complex::default();
            for (j, &sample) in signal.iter().enumerate() {
                let turn = (j * k % length) as f64 / length as f64;
                sum = sum + Complex::real(f64::from(sample)) * Complex::clockwise(2.0 * turn);
            }
            sum
        };
        (0..length)
            .map(|index| {
                let exact = if index <= length / 2 {
                    term(index).re
                } else {
                    term(length - index).im
                };
                exact.round() as i32
            })
            .collect()
    }

    #[test]
    fn every_length_agrees_with_the_definition() {
        let mut state = 12345u32;
        for length in (0..70).chain([97, 100, 128, 255, 256, 257, 360, 1000]) {
            let mut signal: Vec<i32> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                    (state >> 16) as i32 % 4096 - 2048
                })
                .collect();
            let expected = direct(&signal);
            transform(&mut signal);
            for (index, (got, want)) in signal.iter().zip(&expected).enumerate() {
                // Halves may round either way.
                assert!(
                    (got - want).abs() <= 1,
                    "length {length}, index {index}: {got} {want}"
                );
            }
        }
    }

    #[test]
    fn well_known_signals() {
        let mut constant = [5; 6];
        transform(&mut constant);
        assert_eq!(constant, [30, 0, 0, 0, 0, 0]);
        let mut impulse = [9, 0, 0, 0, 0];
        transform(&mut impulse);
        assert_eq!(impulse, [9, 9, 9, 0, 0]);
        let mut wave = [0, 100, 0, -100];
        transform(&mut wave);
        assert_eq!(wave, [0, 0, 0, -200]);
    }

    #[test]
    fn what_no_integer_holds_becomes_the_nearest() {
        let mut loud = [i32::MAX; 3];
        transform(&mut loud);
        assert_eq!(loud, [i32::MAX, 0, 0]);
    }
}
