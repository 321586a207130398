//! Variables of a module that lie in global memory, and what they hold at first.

use std::collections::HashMap;

use super::memory::generic_address::{Place, code_address};
use crate::{Linkage, PtxModule, PtxVariable, Relocation, RelocationTarget, Space, VariableId};

/// A `.global` or `.const` variable that the loader of a program must find room for.
///
/// ```
/// use kiln_ptx::exec::ExecProgram;
/// use kiln_ptx::PtxModule;
///
/// let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 limit = 7;";
/// let program = ExecProgram::new(PtxModule::parse(text)?);
/// let limit = &program.variables()[0];
/// assert_eq!((limit.name.as_str(), limit.bytes, limit.constant), ("limit", 4, false));
/// assert_eq!(program.contents(0, &[0x1000]), [7, 0, 0, 0]);
/// # Ok::<(), kiln_ptx::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleVariable {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its alignment.
    pub align: u64,
    /// Whether it is a `.const` variable, which kernels may not write.
    pub constant: bool,
    /// Whether a host may look it up by name.
    pub public: bool,
    /// Whether its first content depends on where variables lie.
    pub relocated: bool,
}

/// The variables of a module that are placed in global memory, in a fixed order.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    pub(crate) list: Vec<ModuleVariable>,
    ids: Vec<VariableId>,
    places: HashMap<u32, u32>,
}

impl Variables {
    pub(crate) fn new(module: &PtxModule) -> Self {
        let mut variables = Self::default();
        for (at, variable) in (0..).zip(module.variables()) {
            if !is_placed(variable) {
                continue;
            }
            variables.places.insert(at, variables.list.len() as u32);
            variables.ids.push(VariableId(at));
            variables.list.push(ModuleVariable {
                name: variable.name.to_string(),
                bytes: variable.shape.size_bytes(),
                align: u64::from(variable.shape.align_bytes().max(1)),
                constant: variable.space == Space::Const,
                public: variable.owner.is_none() && variable.linkage.is_some(),
                relocated: variable.initializer.as_ref().is_some_and(|i| !i.relocations.is_empty()),
            });
        }
        variables
    }

    /// The place of a variable in the list.
    pub(crate) fn place(&self, id: VariableId) -> Option<u32> {
        self.places.get(&id.0).copied()
    }

    /// The first content of a variable when all of them lie at `addresses`.
    pub(crate) fn contents(&self, module: &PtxModule, at: usize, addresses: &[u64]) -> Vec<u8> {
        let variable = self.ids.get(at).and_then(|id| module.variable(*id));
        let Some(initializer) = variable.and_then(|v| v.initializer.as_ref()) else { return Vec::new() };
        let mut bytes = initializer.bytes.clone();
        let width = variable.map_or(8, |v| v.shape.ty.size_bytes()) as usize;
        for relocation in &initializer.relocations {
            let value = self.relocated(module, relocation, addresses).to_le_bytes();
            let start = relocation.offset as usize;
            let end = start + width.min(value.len());
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(&value[..end - start]);
        }
        bytes
    }

    fn relocated(&self, module: &PtxModule, relocation: &Relocation, addresses: &[u64]) -> u64 {
        let address = match relocation.target {
            RelocationTarget::Function(id) => code_address(module.resolve_alias(id).0),
            RelocationTarget::Variable(id) => {
                let placed = self.place(id).and_then(|at| addresses.get(at as usize)).copied().unwrap_or(0);
                let place = module.variable(id).and_then(|v| Place::of(Some(v.space)));
                let base = place.filter(|_| relocation.generic).map_or(0, Place::base);
                placed.wrapping_add(base)
            }
        };
        relocation.value(address)
    }
}

fn is_placed(variable: &PtxVariable) -> bool {
    matches!(variable.space, Space::Global | Space::Const) && variable.linkage != Some(Linkage::Extern)
}
