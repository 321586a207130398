//! Variables that a module declares and the host can reach.

use kiln_ptx::{PtxModule, PtxVariable, ScalarKind, Space};

/// A variable that a module declares.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredVariable {
    /// In PTX.
    pub(crate) name: String,
    kind: ScalarKind,
    is_array: bool,
    pub(crate) bytes: u64,
}

impl DeclaredVariable {
    /// The variables of a module that the host can reach.
    pub(crate) fn all(module: &PtxModule) -> Vec<Self> {
        let variables = module.module_variables().map(|(_, variable)| variable);
        variables.filter(|it| matches!(it.space, Space::Global | Space::Const)).map(Self::of).collect()
    }

    fn of(variable: &PtxVariable) -> Self {
        let shape = &variable.shape;
        let is_array = shape.element_count() != 1;
        Self { name: variable.name.to_string(), kind: shape.ty.kind(), is_array, bytes: shape.size_bytes() }
    }

    /// Whether it is a float or an integer; arrays and structs are bytes in PTX and may be anything.
    pub(crate) fn is_float(&self) -> Option<bool> {
        match self.kind {
            _ if self.is_array => None,
            ScalarKind::Float => Some(true),
            ScalarKind::Signed | ScalarKind::Unsigned => Some(false),
            _ => None,
        }
    }
}
