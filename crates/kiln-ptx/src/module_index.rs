//! Indexes of a module, so that questions about one function do not walk over the whole module.

use std::collections::HashMap;

use crate::function::{PtxFunction, PtxFunctionId};
use crate::name::Name;
use crate::state_space::Space;
use crate::variable::{PtxVariable, VariableId};

/// Functions by name, and shared variables by the function that declares them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Index {
    functions: HashMap<Name, PtxFunctionId>,
    shared: HashMap<PtxFunctionId, Vec<VariableId>>,
}

impl Index {
    pub(crate) fn of(functions: &[PtxFunction], variables: &[PtxVariable]) -> Self {
        let mut index = Self::default();
        for (at, function) in (0..).zip(functions) {
            // The first one counts, should a name come twice.
            index.functions.entry(function.name.clone()).or_insert(PtxFunctionId(at));
        }
        for (at, variable) in (0..).zip(variables) {
            if let (Some(owner), Space::Shared) = (variable.owner, variable.space.base()) {
                index.shared.entry(owner).or_default().push(VariableId(at));
            }
        }
        index
    }

    pub(crate) fn function(&self, name: &str) -> Option<PtxFunctionId> {
        self.functions.get(name).copied()
    }

    /// The shared variables declared inside a function.
    pub(crate) fn shared_variables(&self, owner: PtxFunctionId) -> &[VariableId] {
        self.shared.get(&owner).map_or(&[], Vec::as_slice)
    }
}
