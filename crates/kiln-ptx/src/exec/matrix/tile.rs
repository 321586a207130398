//! Matrices of 8 by 8 elements of 16 bits, and how they are spread over a warp.
//!
//! A row is 16 bytes: four words in memory order. In registers lane `l` holds, of each matrix, elements `2 (l % 4)` and the next one of row `l / 4`.

use crate::Form;
use crate::exec::warp_register::{Column, LANES};

/// The one form of `movmatrix`.
pub(crate) const TRANSPOSE: &str = "movmatrix.sync.aligned.m8n8.trans.b16";

/// The matrices that `ldmatrix` and `stmatrix` move.
pub(crate) struct Tiles {
    pub(crate) count: usize,
    pub(crate) transposed: bool,
}

impl Tiles {
    /// `ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16`
    pub(crate) fn of(form: &Form) -> Option<Self> {
        let mut words = form.text().split('.').skip(1).peekable();
        for expected in ["sync", "aligned", "m8n8"] {
            words.next().filter(|word| *word == expected)?;
        }
        let count = match words.next()? {
            "x1" => 1,
            "x2" => 2,
            "x4" => 4,
            _ => return None,
        };
        let transposed = words.next_if_eq(&"trans").is_some();
        words.next_if(|word| word.starts_with("shared"));
        (words.next() == Some("b16") && words.next().is_none()).then_some(Self { count, transposed })
    }
}

/// `ldmatrix`: row `r` of matrix `m` was loaded by lane `8 m + r` as four words. Gives the register of each matrix.
pub(crate) fn distribute(words: &[Column], matrices: usize, transposed: bool) -> Vec<Column> {
    let half = |matrix: usize, row: usize, column: usize| {
        words
            .get(column / 2)
            .map_or(0, |word| word[(8 * matrix + row) % LANES] >> (16 * (column % 2)) & 0xffff)
    };
    (0..matrices)
        .map(|matrix| {
            std::array::from_fn(|lane| {
                let (row, column) = (lane / 4, lane % 4 * 2);
                let at = |offset: usize| match transposed {
                    false => half(matrix, row, column + offset),
                    true => half(matrix, column + offset, row),
                };
                at(0) | at(1) << 16
            })
        })
        .collect()
}

/// `stmatrix`: from the register of each matrix the four words that lane `8 m + r` stores as row `r` of matrix `m`.
pub(crate) fn gather_rows(registers: &[Column], transposed: bool) -> Vec<Column> {
    let half = |matrix: usize, row: usize, column: usize| {
        let (row, column) = if transposed { (column, row) } else { (row, column) };
        registers
            .get(matrix)
            .map_or(0, |register| register[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff)
    };
    (0..4)
        .map(|word| {
            std::array::from_fn(|lane| {
                let (matrix, row) = (lane / 8, lane % 8);
                half(matrix, row, 2 * word) | half(matrix, row, 2 * word + 1) << 16
            })
        })
        .collect()
}

/// `movmatrix`: one matrix, transposed.
pub(crate) fn transpose(register: &Column) -> Column {
    let half = |row: usize, column: usize| register[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
    std::array::from_fn(|lane| {
        let (row, column) = (lane / 4, lane % 4 * 2);
        half(column, row) | half(column + 1, row) << 16
    })
}
