//! Variables of a kernel that is being built.

use std::marker::PhantomData;

use crate::declaration::VariableId;
use crate::operation::Op;
use crate::statement::StatementKind;

use super::element::{IntoOperand, KernelElement};
use super::kernel::KernelBuilder;
use super::value::Val;

/// A variable of a kernel that is being built. As an operand it is read where it is used.
pub struct Var<'k, T> {
    kernel: &'k KernelBuilder,
    id: VariableId,
    ty: PhantomData<T>,
}

impl<T> Clone for Var<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Var<'_, T> {}

impl<T> std::fmt::Debug for Var<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.id)
    }
}

impl<'k, T: KernelElement> Var<'k, T> {
    pub(crate) fn new(kernel: &'k KernelBuilder, id: VariableId) -> Self {
        Self { kernel, id, ty: PhantomData }
    }

    /// Gives it a name, for the text form.
    pub fn named(self, name: &str) -> Self {
        self.kernel.edit(|draft| {
            if let Some(variable) = draft.variables.get_mut(self.id.index()) {
                variable.name = Some(name.to_owned());
            }
        });
        self
    }

    /// Its current value.
    #[track_caller]
    pub fn get(self) -> Val<'k, T> {
        self.kernel.emit(Op::Read(self.id))
    }

    /// Assigns it.
    #[track_caller]
    pub fn set(self, value: impl IntoOperand<T>) {
        let value = value.operand();
        self.kernel.push(StatementKind::Assign { variable: self.id, value });
    }
}
