//! Matrix products.

use std::fmt;

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::{Extent, check_sizes};
use crate::field::{Field, operation, words};
use crate::operand::OperationOperand;

words! {
    /// How the products are computed.
    Math {
        /// Each product and sum in the precision of the type: `f64` for `f64`, `i32` for `i8`, `f32` for the others.
        Ieee = "ieee",
        /// Inputs of `f32` are rounded to 11 bits, products are added in `f32`.
        Tf32 = "tf32",
        /// Inputs of `f32` are split into three `bf16`, and nine products are added: as accurate as `f32`.
        Bf16x9 = "bf16x9",
        /// Products of `f16` are added in `f16`.
        F16 = "f16",
    }
}

words! {
    /// Whether equal calls give equal bits.
    Determinism {
        /// The library may choose algorithms that add in another order each time.
        Any = "any",
        /// Equal calls on one device give equal bits, also on different streams.
        RunToRun = "run_to_run",
    }
}

impl Default for Determinism {
    /// Any order.
    fn default() -> Self {
        Self::Any
    }
}

words! {
    /// What is applied to each element of the result.
    Activation {
        /// Nothing.
        None = "none",
        /// `max(x, 0)`.
        Relu = "relu",
        /// `x / 2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
        Gelu = "gelu",
    }
}

/// What is done to the product before it is stored: a bias is added, then the activation is applied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Epilogue {
    /// Whether a vector with an element for each row of the result is added to each column.
    pub bias: bool,
    /// What is applied to each element.
    pub activation: Activation,
}

impl Epilogue {
    /// Neither bias nor activation.
    pub const NONE: Self = Self { bias: false, activation: Activation::None };
}

impl fmt::Display for Epilogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.bias, self.activation) {
            (false, activation) => activation.fmt(f),
            (true, Activation::None) => f.write_str("bias"),
            (true, activation) => write!(f, "bias+{activation}"),
        }
    }
}

impl Field for Epilogue {
    const WANTED: &'static str = "none, bias, relu, gelu, bias+relu or bias+gelu";

    fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("bias") {
            Some("") => Some(Self { bias: true, activation: Activation::None }),
            Some(rest) => {
                let activation = Activation::parse(rest.strip_prefix('+')?)?;
                (activation != Activation::None).then_some(Self { bias: true, activation })
            }
            None => Some(Self { bias: false, activation: Activation::parse(text)? }),
        }
    }
}

/// How a matrix of a product lies in memory: `bf16:t:128:0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// The type of its elements.
    pub element: ElementType,
    /// Whether the product uses the transpose of what is stored.
    pub transposed: bool,
    /// Distance between columns, in elements.
    pub leading: u64,
    /// Distance between matrices of a batch, in elements. 0 uses one input for all of them.
    pub stride: u64,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transposed = if self.transposed { 't' } else { 'n' };
        write!(f, "{}:{transposed}:{}:{}", self.element, self.leading, self.stride)
    }
}

impl Field for Layout {
    const WANTED: &'static str = "element:n|t:leading:stride, such as f32:n:128:0";

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let element = ElementType::parse(parts.next()?)?;
        let transposed = match parts.next()? {
            "t" => true,
            "n" => false,
            _ => return None,
        };
        let (leading, stride) = (u64::parse(parts.next()?)?, u64::parse(parts.next()?)?);
        parts.next().is_none().then_some(Self { element, transposed, leading, stride })
    }
}

operation! {
    /// `D = epilogue(alpha op(A) op(B))`, or with `+ beta D` before the epilogue, for each matrix of a batch. Where factors are scaled, `op(A) op(B)` is
    /// multiplied with a number for each of them, which lie in device memory.
    Matmul = "blas.matmul" {
        /// Rows of `D`.
        m: u64,
        /// Columns of `D`.
        n: u64,
        /// Columns of `op(A)`.
        k: u64,
        /// How many products.
        batch: u64,
        /// `A`.
        a: Layout,
        /// `B`.
        b: Layout,
        /// `D`, which is never transposed.
        d: Layout,
        /// How products are computed.
        math: Math,
        /// What is done to the product before it is stored. The bias has the type of `D`.
        epilogue: Epilogue,
        /// Whether `A` and `B` have a scale factor each, of type `f32`. Only for `f8e4m3`.
        scaled: bool,
        /// Whether `beta D` is added.
        accumulate: bool,
        /// Whether equal calls give equal bits.
        order: Determinism,
        /// Bytes of workspace at most.
        workspace: u64,
        /// What all addresses are a multiple of: a power of two from the size of the widest element to 256.
        alignment: u64,
        /// Which of the algorithms that the library proposes, below [`Matmul::ALGORITHMS`]. 0 is the one that it expects to be the fastest.
        algorithm: u64,
    }
}

impl Matmul {
    /// So many algorithms can be named at most. A library may propose fewer.
    pub const ALGORITHMS: u64 = 16;

    /// Rows and columns of `A` as it is stored.
    pub fn a_stored(&self) -> (u64, u64) {
        if self.a.transposed { (self.k, self.m) } else { (self.m, self.k) }
    }

    /// Rows and columns of `B` as it is stored.
    pub fn b_stored(&self) -> (u64, u64) {
        if self.b.transposed { (self.n, self.k) } else { (self.k, self.n) }
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        check_sizes(Self::NAME, &[("m", self.m), ("n", self.n), ("k", self.k), ("batch", self.batch)])?;
        self.check_types()?;
        self.check_output()?;
        let extent = |name, stored: (u64, u64), layout: &Layout| {
            Extent::matrices((Self::NAME, name), stored, layout.leading, (self.batch, layout.stride))
        };
        let d = extent("d", (self.m, self.n), &self.d)?;
        let mut operands = vec![
            extent("a", self.a_stored(), &self.a)?.read("a", self.a.element),
            extent("b", self.b_stored(), &self.b)?.read("b", self.b.element),
            d.written("d", self.d.element, self.accumulate),
        ];
        if self.epilogue.bias {
            operands.push(Extent::vector((Self::NAME, "bias"), self.m, 1)?.read("bias", self.d.element));
        }
        operands.iter_mut().for_each(|operand| operand.alignment = self.alignment);
        if self.scaled {
            let factor = Extent::vector((Self::NAME, "a_scale"), 1, 1)?;
            operands.extend(["a_scale", "b_scale"].map(|name| factor.read(name, ElementType::F32)));
        }
        operands.push(OperationOperand::scalar("alpha"));
        operands.extend(self.accumulate.then(|| OperationOperand::scalar("beta")));
        Ok(operands)
    }

    /// How many operands are memory. Scalars come behind them.
    pub fn memory_operands(&self) -> usize {
        3 + usize::from(self.epilogue.bias) + 2 * usize::from(self.scaled)
    }

    /// The place of the scale factor of `A` among the operands, if there is one. That of `B` comes next.
    pub fn scale_operand(&self) -> Option<usize> {
        self.scaled.then(|| 3 + usize::from(self.epilogue.bias))
    }

    /// The types that go together.
    fn check_types(&self) -> Result<(), OperationError> {
        use ElementType::{Bf16, F8E4M3, F16, F32, F64, I8, I32};
        let (a, b, d) = (self.a.element, self.b.element, self.d.element);
        let refuse = |what: String, hint| Err(OperationError::shape(Self::NAME, what, hint));
        let fits = a == b
            && match a {
                F64 => d == F64,
                F32 => d == F32,
                F16 => matches!(d, F16 | F32),
                Bf16 => matches!(d, Bf16 | F32),
                I8 => d == I32,
                F8E4M3 => matches!(d, F16 | Bf16 | F32),
                _ => false,
            };
        if !fits {
            let what = format!("a product of {a} and {b} into {d}");
            let hint = "use f64 into f64, f32 into f32, f16 into f16 or f32, bf16 into bf16 or f32, i8 into i32, or f8e4m3 into f16, bf16 or f32";
            return refuse(what, hint);
        }
        let math = match self.math {
            Math::Ieee => true,
            Math::Tf32 | Math::Bf16x9 => a == F32,
            Math::F16 => a == F16 && d == F16,
        };
        if !math {
            return refuse(
                format!("math {} for {a} into {d}", self.math),
                "use ieee; tf32 and bf16x9 are for f32, f16 for f16",
            );
        }
        if self.scaled && a != F8E4M3 {
            return refuse(format!("scale factors for {a}"), "use `alpha`; scale factors are for f8e4m3");
        }
        if a == F8E4M3 && d == F32 && self.epilogue.bias {
            return refuse("a bias of f32 on a product of f8e4m3".to_owned(), "use a result of bf16 or f16");
        }
        if a == I8 && self.epilogue != Epilogue::NONE {
            return refuse(
                format!("the epilogue {} on integers", self.epilogue),
                "apply it in a kernel after the product",
            );
        }
        Ok(())
    }

    /// The result is not transposed, and the matrices of a batch do not overlap.
    fn check_output(&self) -> Result<(), OperationError> {
        if self.d.transposed {
            let what = "a transposed result".to_owned();
            return Err(OperationError::shape(
                Self::NAME,
                what,
                "exchange the inputs and transpose them instead",
            ));
        }
        let widest = self.a.element.bytes().max(self.d.element.bytes());
        if !self.alignment.is_power_of_two() || !(widest..=256).contains(&self.alignment) {
            let what = format!("an alignment of {}", self.alignment);
            let hint = "use a power of two from the size of the widest element to 256";
            return Err(OperationError::shape(Self::NAME, what, hint));
        }
        if self.algorithm >= Self::ALGORITHMS {
            let what = format!("algorithm {}", self.algorithm);
            return Err(OperationError::shape(
                Self::NAME,
                what,
                "use a number below 16; 0 is the library's choice",
            ));
        }
        let matrix = u128::from(self.d.leading) * u128::from(self.n);
        if self.batch > 1 && u128::from(self.d.stride) < matrix {
            let what = format!("results {} elements apart that take {matrix} each", self.d.stride);
            return Err(OperationError::shape(Self::NAME, what, "use a stride that holds a result"));
        }
        Ok(())
    }
}
