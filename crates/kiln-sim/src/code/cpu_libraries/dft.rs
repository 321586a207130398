//! The discrete Fourier transform in `f64`, for every length.
//!
//! Lengths that are powers of two are halved; short ones are summed up; the others become a convolution (Bluestein) whose length is a power of two.

use super::elementary_functions::unit_root;

/// A complex number.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Complex {
    pub(super) re: f64,
    pub(super) im: f64,
}

/// Lengths up to this one are summed up.
const SHORT: usize = 16;

impl Complex {
    pub(super) fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    pub(super) fn conjugate(self) -> Self {
        Self::new(self.re, -self.im)
    }

    fn plus(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }

    fn minus(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }

    fn times(self, other: Self) -> Self {
        Self::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }
}

/// Transforms of one length, with the exponent `-2πi`.
pub(super) struct Transform {
    len: usize,
    /// `exp(-2πi j / len)`.
    roots: Vec<Complex>,
    convolution: Option<Box<Convolution>>,
}

/// What a length needs that is no power of two.
struct Convolution {
    /// `exp(-πi j² / len)`.
    chirp: Vec<Complex>,
    /// The transform of the conjugate chirp.
    spectrum: Vec<Complex>,
    transform: Transform,
}

impl Transform {
    pub(super) fn new(len: usize) -> Self {
        let root = |at: usize| {
            let (cosine, sine) = unit_root(at as u64, len.max(1) as u64);
            Complex::new(cosine, -sine)
        };
        let is_direct = len.is_power_of_two() || len <= SHORT;
        let convolution = (!is_direct).then(|| Box::new(Convolution::new(len)));
        let roots = if is_direct { (0..len).map(root).collect() } else { Vec::new() };
        Self { len, roots, convolution }
    }

    /// Transforms data of its length.
    pub(super) fn run(&self, data: &mut [Complex]) {
        match &self.convolution {
            Some(convolution) => convolution.run(data),
            None if self.len.is_power_of_two() => self.halve(data),
            None => self.sum(data),
        }
    }

    /// The same with the exponent `+2πi`.
    pub(super) fn run_inverse(&self, data: &mut [Complex]) {
        data.iter_mut().for_each(|value| *value = value.conjugate());
        self.run(data);
        data.iter_mut().for_each(|value| *value = value.conjugate());
    }

    fn sum(&self, data: &mut [Complex]) {
        let row = |at: usize| {
            data.iter().enumerate().fold(Complex::default(), |sum, (from, value)| {
                sum.plus(value.times(self.roots[at * from % self.len]))
            })
        };
        let sums: Vec<Complex> = (0..self.len).map(row).collect();
        data.copy_from_slice(&sums);
    }

    fn halve(&self, data: &mut [Complex]) {
        let bits = self.len.trailing_zeros();
        for at in 0..self.len {
            let other = if bits == 0 { 0 } else { at.reverse_bits() >> (usize::BITS - bits) };
            if at < other {
                data.swap(at, other);
            }
        }
        let mut half = 1;
        while half < self.len {
            let step = self.len / (2 * half);
            for part in data.chunks_exact_mut(2 * half) {
                let (low, high) = part.split_at_mut(half);
                for (at, (low, high)) in low.iter_mut().zip(high).enumerate() {
                    let turned = high.times(self.roots[at * step]);
                    (*low, *high) = (low.plus(turned), low.minus(turned));
                }
            }
            half *= 2;
        }
    }
}

impl Convolution {
    fn new(len: usize) -> Self {
        let chirp: Vec<Complex> = (0..len as u128)
            .map(|at| {
                let turn = 2 * len as u128;
                let (cosine, sine) = unit_root((at * at % turn) as u64, turn as u64);
                Complex::new(cosine, -sine)
            })
            .collect();
        let transform = Transform::new((2 * len - 1).next_power_of_two());
        let mut spectrum = vec![Complex::default(); transform.len];
        for (at, value) in chirp.iter().enumerate() {
            spectrum[at] = value.conjugate();
            spectrum[(transform.len - at) % transform.len] = value.conjugate();
        }
        transform.run(&mut spectrum);
        Self { chirp, spectrum, transform }
    }

    fn run(&self, data: &mut [Complex]) {
        let len = self.transform.len;
        let mut work = vec![Complex::default(); len];
        work.iter_mut().zip(data.iter().zip(&self.chirp)).for_each(|(work, (x, w))| *work = x.times(*w));
        self.transform.run(&mut work);
        work.iter_mut().zip(&self.spectrum).for_each(|(work, other)| *work = work.times(*other));
        self.transform.run_inverse(&mut work);
        let scale = 1.0 / len as f64;
        for (value, (work, w)) in data.iter_mut().zip(work.iter().zip(&self.chirp)) {
            let product = work.times(*w);
            *value = Complex::new(product.re * scale, product.im * scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_the_sum_it_stands_for() {
        for len in (1..40).chain([64, 97, 100, 128, 243, 255]) {
            let input: Vec<Complex> = (0..len)
                .map(|at| Complex::new((at * 7 % 11) as f64 - 5.0, (at * 5 % 13) as f64 - 6.0))
                .collect();
            let mut found = input.clone();
            Transform::new(len).run(&mut found);
            for (at, found) in found.iter().enumerate() {
                let (mut re, mut im) = (0.0, 0.0);
                for (from, value) in input.iter().enumerate() {
                    let angle = -2.0 * std::f64::consts::PI * ((at * from % len) as f64) / len as f64;
                    re += value.re * angle.cos() - value.im * angle.sin();
                    im += value.re * angle.sin() + value.im * angle.cos();
                }
                let error = (found.re - re).hypot(found.im - im);
                assert!(error < 1e-12 * len as f64, "element {at} of {len}: {found:?} is not {re} {im}");
            }
            Transform::new(len).run_inverse(&mut found);
            let is_back = found.iter().zip(&input).all(|(found, input)| {
                (found.re / len as f64 - input.re).hypot(found.im / len as f64 - input.im)
                    < 1e-13 * len as f64
            });
            assert!(is_back, "{len}");
        }
    }
}
