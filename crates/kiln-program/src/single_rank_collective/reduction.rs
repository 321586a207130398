//! What a collective computes of the elements of all ranks.

use kiln_ir::Type;
use kiln_runtime::{Element, Result};

use super::error::CollectiveError;
use crate::element_kind::ElementKind;

/// How the elements of all ranks become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ReduceOp {
    /// The sum. Integers wrap.
    Sum,
    /// The product. Integers wrap.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sum divided by the number of ranks.
    Average,
}

impl ReduceOp {
    /// The operation on elements whose Rust type does not say which number it is, such as half precision of another crate.
    ///
    /// ```
    /// use kiln::program::{ReduceOp, Reduction};
    /// use kiln::ir::Type;
    ///
    /// let sum: Reduction = ReduceOp::Sum.of(Type::Bf16);
    /// assert_eq!((sum.op(), sum.element()), (ReduceOp::Sum, Some(Type::Bf16)));
    /// ```
    pub const fn of(self, element: Type) -> Reduction {
        Reduction { op: self, element: Some(element) }
    }
}

/// An operation, and the type of the elements where the buffers do not say it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reduction {
    op: ReduceOp,
    element: Option<Type>,
}

impl From<ReduceOp> for Reduction {
    fn from(op: ReduceOp) -> Self {
        Self { op, element: None }
    }
}

impl Reduction {
    /// The operation.
    pub const fn op(self) -> ReduceOp {
        self.op
    }

    /// The type of the elements, if it was named.
    pub const fn element(self) -> Option<Type> {
        self.element
    }

    /// The type of the elements of a buffer that is reduced.
    pub(super) fn check<T: Element>(self) -> Result<Type> {
        let given = ElementKind::of::<T>();
        let ty = match self.element.or(given.number()) {
            Some(ty) => ty,
            None => return Err(CollectiveError::UnknownElement { given }.into()),
        };
        if ty == Type::Bool {
            return Err(CollectiveError::NoNumber { element: ty }.into());
        }
        match given.fits(ty) {
            true => Ok(ty),
            false => Err(CollectiveError::Element { named: ty, given }.into()),
        }
    }
}
