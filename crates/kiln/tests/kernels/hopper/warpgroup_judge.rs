//! What a product of a warpgroup may be: integers exactly; floats within the contract of the tensor cores, NaN and infinities as in exact arithmetic.

use super::element::{size, value};
use super::trial::Judge;
use super::warpgroup::{Operands, Product, THREADS};

/// Knows the operands of all blocks.
pub(crate) struct ProductJudge {
    pub(crate) product: Product,
    pub(crate) blocks: Vec<Operands>,
}

/// A sum of products, exact or nearly so.
struct Exact {
    sum: f64,
    /// The sum of the sizes of what is added up.
    size: f64,
}

impl ProductJudge {
    /// Block, row and column of an element of the result.
    fn cell(&self, element: usize) -> (usize, usize, usize) {
        let per_thread = self.product.columns / 2;
        let (thread, at) = (element / per_thread, element % per_thread);
        let (row, column) = Product::cell(thread % THREADS, at);
        (thread / THREADS, row, column)
    }

    fn exact(&self, (block, row, column): (usize, usize, usize)) -> Exact {
        let (Product { a, b, sum, .. }, operands) = (self.product, &self.blocks[block]);
        let depth = self.product.depth();
        let repeats = if self.product.adds { self.product.repeats } else { 1 };
        let sign = f64::from(self.product.scales[0] * self.product.scales[1]) * repeats as f64;
        let mut exact = Exact { sum: 0.0, size: 0.0 };
        for at in 0..depth {
            let (x, y) = (operands.a[row * depth + at], operands.b[column * depth + at]);
            exact.sum += sign * value(a, x) * value(b, y);
            exact.size += repeats as f64 * size(a, x) * size(b, y);
        }
        if self.product.adds {
            let c = operands.c[row * self.product.columns + column];
            exact.sum += value(sum, c);
            exact.size += size(sum, c);
        }
        exact
    }

    /// Whether an element of the result can be what it is.
    fn accepts(&self, exact: &Exact, found: u64) -> bool {
        let found = value(self.product.sum, found);
        if self.product.sum == "s32" {
            let limits = [f64::from(i32::MIN), f64::from(i32::MAX)];
            let wanted = match self.product.satfinite {
                true => exact.sum.clamp(limits[0], limits[1]),
                false => f64::from(exact.sum as i64 as i32),
            };
            return found == wanted;
        }
        let Exact { sum, size } = *exact;
        if !sum.is_finite() {
            return if sum.is_nan() { found.is_nan() } else { found == sum };
        }
        // Of 8-bit floats only 13 bits below the largest exponent take part.
        let bits = if matches!(self.product.a, "e4m3" | "e5m2") { 13 } else { 23 };
        let mut off = ((self.product.depth() + 2) * self.product.repeats) as f64 * 2f64.powi(-bits) * size;
        let (largest, rounded, least) = match self.product.sum {
            "f16" => (65504.0, 2f64.powi(-11), 2f64.powi(-25)),
            _ => (f64::from(f32::MAX), 0.0, 2f64.powi(-149)),
        };
        off += (sum.abs() + (self.product.repeats - 1) as f64 * size) * rounded
            + least * self.product.repeats as f64;
        // Close to the largest number the result may be infinite.
        (found - sum).abs() <= off
            || sum.abs() + off >= largest && (found.is_infinite() && found * sum > 0.0)
            || size + off >= f64::from(f32::MAX)
    }
}

impl Judge for ProductJudge {
    fn wrong(&self, result: &[u8]) -> Vec<String> {
        let bytes = 4 / self.product.per_register();
        let elements = result.chunks(bytes).enumerate();
        let wrong = elements.filter_map(|(element, found)| {
            let found = found.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            let exact = self.exact(self.cell(element));
            (!self.accepts(&exact, found)).then(|| {
                format!("{found:#x} ({}): {}", value(self.product.sum, found), self.operands(element))
            })
        });
        wrong.collect()
    }

    fn operands(&self, element: usize) -> String {
        let cell = self.cell(element);
        let (block, row, column) = cell;
        let (operands, depth) = (&self.blocks[block], self.product.depth());
        let exact = self.exact(cell);
        let list = |all: &[u64], line: usize| {
            let words: Vec<String> = all[line * depth..(line + 1) * depth]
                .iter()
                .take(32)
                .map(|bits| format!("{bits:x}"))
                .collect();
            words.join(" ")
        };
        format!(
            "{:?} [{row}, {column}] exact {} of {}; C {:x}; A {}; B {}",
            operands.spread,
            exact.sum,
            exact.size,
            operands.c[row * self.product.columns + column],
            list(&operands.a, row),
            list(&operands.b, column)
        )
    }
}
