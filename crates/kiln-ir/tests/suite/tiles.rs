//! Tiles: products of matrices by a whole warp, on the interpreter and as PTX with tensor cores and without.

mod out_of_range;
mod product;
mod races;
mod refused;
mod rounding;

use crate::generate::Random;
use crate::rig::{Launch, Left, interpret, simulate};
use kiln_ir::{Literal, MatrixLayout, Program, PtxTarget, ThreadOrder, Type};

/// Types that tiles multiply, with the type of the sum and the depth of one step.
const FACTORS: [(Type, Type, usize); 5] = [
    (Type::F16, Type::F32, 16),
    (Type::Bf16, Type::F32, 16),
    (Type::F32, Type::F32, 8),
    (Type::I8, Type::I32, 32),
    (Type::F64, Type::F64, 4),
];

/// A matrix of numbers, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
}

impl Numbers {
    pub(crate) fn new(rows: usize, columns: usize, mut value: impl FnMut() -> f64) -> Self {
        Self { rows, columns, values: (0..rows * columns).map(|_| value()).collect() }
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    /// As it lies in memory, and its stride: lines of a multiple of 16 bytes, and 16 bytes between them.
    pub(crate) fn bytes(&self, ty: Type, layout: MatrixLayout) -> (Vec<u8>, usize) {
        let (lines, length) = match layout {
            MatrixLayout::RowMajor => (self.rows, self.columns),
            MatrixLayout::ColumnMajor => (self.columns, self.rows),
        };
        let unit = 16 / ty.bytes() as usize;
        let stride = length.next_multiple_of(unit) + unit;
        let element = |at: usize| match layout {
            _ if at % stride >= length => 77.0,
            MatrixLayout::RowMajor => self.at(at / stride, at % stride),
            MatrixLayout::ColumnMajor => self.at(at % stride, at / stride),
        };
        ((0..lines * stride).flat_map(|at| bytes_of(ty, element(at))).collect(), stride)
    }
}

/// A number as it lies in memory.
pub(crate) fn bytes_of(ty: Type, value: f64) -> Vec<u8> {
    let literal = match ty.is_float() {
        true => Literal::float(ty, value),
        false => Literal::integer(ty, value as i128).unwrap(),
    };
    literal.bits().to_le_bytes()[..ty.bytes() as usize].to_vec()
}

/// Numbers from memory.
pub(crate) fn numbers_of(ty: Type, bytes: &[u8]) -> Vec<f64> {
    let number = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let literal = Literal::new(ty, u64::from_le_bytes(word));
        if ty.is_float() { literal.as_float() } else { literal.as_integer() as f64 }
    };
    bytes.chunks(ty.bytes() as usize).map(number).collect()
}

/// `c + a * b` by one warp.
pub(crate) struct Product {
    pub(crate) ty: Type,
    pub(crate) sum: Type,
    pub(crate) is_shared: bool,
    pub(crate) layouts: [MatrixLayout; 2],
    pub(crate) a: Numbers,
    pub(crate) b: Numbers,
    pub(crate) c: Numbers,
}

impl Product {
    pub(crate) fn new(
        (ty, sum): (Type, Type),
        [rows, columns, depth]: [usize; 3],
        mut value: impl FnMut() -> f64,
    ) -> Self {
        Self {
            ty,
            sum,
            is_shared: true,
            layouts: [MatrixLayout::RowMajor, MatrixLayout::ColumnMajor],
            a: Numbers::new(rows, depth, &mut value),
            b: Numbers::new(depth, columns, &mut value),
            c: Numbers::new(rows, columns, &mut value),
        }
    }

    pub(crate) fn program(&self) -> Program {
        let Self { ty, sum, a, b, .. } = self;
        let [layout_a, layout_b] = self.layouts;
        let ((bytes_a, stride_a), (bytes_b, stride_b)) = (a.bytes(*ty, layout_a), b.bytes(*ty, layout_b));
        let [count_a, count_b] = [bytes_a, bytes_b].map(|bytes| bytes.len() as u64 / ty.bytes());
        let (rows, columns, depth) = (a.rows, b.columns, a.columns);
        let (declared, copied, name_a, name_b) = match self.is_shared {
            true => (
                format!("shared left: {ty}[{count_a}]; shared right: {ty}[{count_b}];"),
                format!(
                    "for i in thread.x..{count_a} step 32 {{ left[i] = a[i]; }}
                     for i in thread.x..{count_b} step 32 {{ right[i] = b[i]; }}
                     barrier block;"
                ),
                "left",
                "right",
            ),
            false => (String::new(), String::new(), "a", "b"),
        };
        let text = format!(
            "kernel product(in a: {ty}[], in b: {ty}[], inout c: {sum}[]) block(32) {{
                {declared}
                tile sum: {sum}[{rows}, {columns}];
                {copied}
                tile_load(sum, row_major c[0, {columns}]);
                tile_multiply_add(sum, {layout_a} {name_a}[0, {stride_a}], {layout_b} {name_b}[0, {stride_b}], {depth});
                tile_store(sum, row_major c[0, {columns}]);
            }}"
        );
        Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    pub(crate) fn launch(&self) -> Launch {
        let (a, _) = self.a.bytes(self.ty, self.layouts[0]);
        let (b, _) = self.b.bytes(self.ty, self.layouts[1]);
        let c = self.c.values.iter().flat_map(|value| bytes_of(self.sum, *value)).collect();
        Launch { grid: [1, 1, 1], dynamic_shared_bytes: 0, scalars: Vec::new(), buffers: vec![a, b, c] }
    }

    /// The exact sums, and for each the sum of all magnitudes.
    pub(crate) fn exact(&self) -> Vec<(f64, f64)> {
        let sum = |at: usize| {
            let (row, column) = (at / self.b.columns, at % self.b.columns);
            let products = (0..self.a.columns).map(|k| self.a.at(row, k) * self.b.at(k, column));
            let terms = [self.c.values[at]].into_iter().chain(products);
            terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
        };
        (0..self.c.values.len()).map(sum).collect()
    }

    pub(crate) fn interpreted(&self) -> Vec<u8> {
        let program = self.program();
        let (ascending, out_of_range) = interpret(&program, &self.launch(), ThreadOrder::Ascending);
        assert_eq!(interpret(&program, &self.launch(), ThreadOrder::Descending).0, ascending);
        assert_eq!(out_of_range, 0, "{program}");
        last_buffer(ascending)
    }

    pub(crate) fn simulated(&self, number: u32) -> Vec<u8> {
        let left = simulate(&self.program(), &self.launch(), PtxTarget::new(number).unwrap(), 0);
        last_buffer(left.unwrap_or_else(|what| panic!("{what}\n{}", self.program())))
    }
}

pub(crate) fn last_buffer(left: Left) -> Vec<u8> {
    match left {
        Left::Buffers(mut buffers) => buffers.pop().unwrap(),
        trap @ Left::Trap { .. } => panic!("{trap:?}"),
    }
}

/// Whole numbers from -4 to 4.
pub(crate) fn small_integers(seed: u64) -> impl FnMut() -> f64 {
    let mut random = Random::new(seed);
    move || random.below(9) as f64 - 4.0
}

/// The four ways in which two factors can lie.
pub(crate) fn all_layouts() -> impl Iterator<Item = [MatrixLayout; 2]> {
    MatrixLayout::ALL.iter().flat_map(|a| MatrixLayout::ALL.iter().map(|b| [*a, *b]))
}
