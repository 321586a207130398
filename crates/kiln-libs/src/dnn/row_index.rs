//! Numbers that name a class or a row of a table.

use crate::prims::Numeric;

/// What a class or a row is named by: `i32` or `i64`, counted from 0.
pub trait RowIndex: Numeric {}

impl RowIndex for i32 {}
impl RowIndex for i64 {}

/// An element of a buffer of a program as an `i64`.
pub(super) fn wide<I: RowIndex>(element: &str) -> String {
    if I::NAME == "i64" { element.to_owned() } else { format!("i64({element})") }
}

/// An element of a buffer of a program as an `f32`.
pub(super) fn single(of: &str, element: &str) -> String {
    if of == "f32" { element.to_owned() } else { format!("f32({element})") }
}

/// A number of a program in a type.
pub(super) fn stored(of: &str, value: &str) -> String {
    if of == "f32" { value.to_owned() } else { format!("{of}({value})") }
}
