//! Vector operations of BLAS, for `f32` and `f64`.

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::{Extent, check_sizes};
use crate::field::operation;
use crate::operand::{OperandEffect, OperationOperand};

operation! {
    /// `result = x · y`.
    Dot = "blas.dot" {
        /// Of both vectors and of the result.
        element: ElementType,
        /// Elements of each vector.
        n: u64,
        /// Distance between elements of `x`.
        x_step: u64,
        /// Distance between elements of `y`.
        y_step: u64,
    }
}

operation! {
    /// `result = ‖x‖₂`.
    Nrm2 = "blas.nrm2" {
        /// Of the vector and of the result.
        element: ElementType,
        /// Elements of the vector.
        n: u64,
        /// Distance between them.
        x_step: u64,
    }
}

operation! {
    /// `y = alpha x + y`.
    Axpy = "blas.axpy" {
        /// Of both vectors.
        element: ElementType,
        /// Elements of each vector.
        n: u64,
        /// Distance between elements of `x`.
        x_step: u64,
        /// Distance between elements of `y`.
        y_step: u64,
    }
}

operation! {
    /// `x = alpha x`.
    Scal = "blas.scal" {
        /// Of the vector.
        element: ElementType,
        /// Elements of the vector.
        n: u64,
        /// Distance between them.
        x_step: u64,
    }
}

operation! {
    /// `y = x`.
    VectorCopy = "blas.copy" {
        /// Of both vectors.
        element: ElementType,
        /// Elements of each vector.
        n: u64,
        /// Distance between elements of `x`.
        x_step: u64,
        /// Distance between elements of `y`.
        y_step: u64,
    }
}

operation! {
    /// `x` and `y` exchange their elements.
    Swap = "blas.swap" {
        /// Of both vectors.
        element: ElementType,
        /// Elements of each vector.
        n: u64,
        /// Distance between elements of `x`.
        x_step: u64,
        /// Distance between elements of `y`.
        y_step: u64,
    }
}

operation! {
    /// `result = Σ |x|`.
    Asum = "blas.asum" {
        /// Of the vector and of the result.
        element: ElementType,
        /// Elements of the vector.
        n: u64,
        /// Distance between them.
        x_step: u64,
    }
}

operation! {
    /// The place of the element with the largest absolute value, counted from 1, as an integer of 64 bits.
    Iamax = "blas.iamax" {
        /// Of the vector.
        element: ElementType,
        /// Elements of the vector.
        n: u64,
        /// Distance between them.
        x_step: u64,
    }
}

/// Refuses other types than `f32` and `f64`.
pub(crate) fn check_element(operation: &'static str, element: ElementType) -> Result<(), OperationError> {
    if element.is_single_or_double() {
        return Ok(());
    }
    Err(OperationError::shape(operation, format!("elements of {element}"), "use f32 or f64"))
}

impl Dot {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        Ok(vec![
            Extent::vector((Self::NAME, "x"), self.n, self.x_step)?.read("x", self.element),
            Extent::vector((Self::NAME, "y"), self.n, self.y_step)?.read("y", self.element),
            Extent::vector((Self::NAME, "result"), 1, 1)?.written("result", self.element, false),
        ])
    }
}

impl Nrm2 {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        Ok(vec![
            Extent::vector((Self::NAME, "x"), self.n, self.x_step)?.read("x", self.element),
            Extent::vector((Self::NAME, "result"), 1, 1)?.written("result", self.element, false),
        ])
    }
}

impl Axpy {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        Ok(vec![
            Extent::vector((Self::NAME, "x"), self.n, self.x_step)?.read("x", self.element),
            Extent::vector((Self::NAME, "y"), self.n, self.y_step)?.written("y", self.element, true),
            OperationOperand::scalar("alpha"),
        ])
    }
}

impl Scal {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        let x = Extent::vector((Self::NAME, "x"), self.n, self.x_step)?;
        Ok(vec![
            x.operand("x", self.element, OperandEffect::ReadsAndWrites),
            OperationOperand::scalar("alpha"),
        ])
    }
}

impl VectorCopy {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        Ok(vec![
            Extent::vector((Self::NAME, "x"), self.n, self.x_step)?.read("x", self.element),
            Extent::vector((Self::NAME, "y"), self.n, self.y_step)?.written("y", self.element, false),
        ])
    }
}

impl Swap {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        Ok(vec![
            Extent::vector((Self::NAME, "x"), self.n, self.x_step)?.written("x", self.element, true),
            Extent::vector((Self::NAME, "y"), self.n, self.y_step)?.written("y", self.element, true),
        ])
    }
}

impl Asum {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        Ok(vec![
            Extent::vector((Self::NAME, "x"), self.n, self.x_step)?.read("x", self.element),
            Extent::vector((Self::NAME, "result"), 1, 1)?.written("result", self.element, false),
        ])
    }
}

impl Iamax {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_element(Self::NAME, self.element)?;
        check_sizes(Self::NAME, &[("n", self.n)])?;
        Ok(vec![
            Extent::vector((Self::NAME, "x"), self.n, self.x_step)?.read("x", self.element),
            // An integer has as many bytes as an `f64`.
            Extent::vector((Self::NAME, "result"), 1, 1)?.written("result", ElementType::F64, false),
        ])
    }
}
