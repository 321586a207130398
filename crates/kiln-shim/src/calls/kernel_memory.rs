//! What a launch does to memory, by the PTX of its kernel.
//!
//! The layer that checks the order of commands on a GPU is told of each pointer argument through which the kernel reads or writes for certain. What cannot be told
//! from the PTX is left out, so that nothing is found that is none.

use kiln_driver::{Access, DeclaredSpan, DeviceAddress};
use kiln_ptx::{EffectAnswer, PtxModule};

use crate::calls::functions::Function;
use crate::calls::process_state::ProcessState;
use crate::records;

/// A pointer among the parameters of a kernel.
pub(crate) struct PointerParameter {
    /// The index of the parameter.
    parameter: usize,
    /// Bytes from the start of the parameter.
    offset: u32,
    access: Access,
}

/// Reads the PTX of a module that was loaded.
pub(crate) fn parse(ptx: &str) -> Option<PtxModule> {
    let parsed = PtxModule::parse(ptx);
    if let Err(error) = &parsed {
        let text = format!(
            "what kernels of a module do to memory is not followed, because its PTX cannot be read here: {error}"
        );
        records::note_once(&text, &text);
    }
    parsed.ok()
}

/// The pointers of a kernel.
pub(crate) fn pointers(module: &PtxModule, kernel: &str) -> Vec<PointerParameter> {
    let effects = module.find_function(kernel).and_then(|entry| module.effects(entry));
    let uses = effects.map(|effects| effects.pointers).unwrap_or_default();
    let known = uses.iter().filter_map(|pointer| {
        let is = |answer: EffectAnswer| answer == EffectAnswer::Yes;
        let access = match (is(pointer.effect.reads), is(pointer.effect.writes)) {
            (true, true) => Access::ReadWrite,
            (true, false) => Access::Read,
            (false, true) => Access::Write,
            (false, false) => return None,
        };
        Some(PointerParameter { parameter: pointer.parameter, offset: pointer.offset, access })
    });
    known.collect()
}

/// The memory behind the pointers of a launch, from where each points to the end of its block.
#[inline]
pub(crate) fn spans(state: &ProcessState, function: &Function, arguments: &[u8]) -> Vec<DeclaredSpan> {
    // A simulated device sees what kernels do, and needs none.
    if function.pointers.is_empty() { Vec::new() } else { known_spans(state, function, arguments) }
}

fn known_spans(state: &ProcessState, function: &Function, arguments: &[u8]) -> Vec<DeclaredSpan> {
    let parameters = function.below.attributes.parameters.as_deref().unwrap_or_default();
    let span = |pointer: &PointerParameter| {
        let start = (parameters.get(pointer.parameter)?.offset + pointer.offset) as usize;
        let address = u64::from_le_bytes(arguments.get(start..start + 8)?.try_into().ok()?);
        let (allocation, offset) = state.memory.around(address)?;
        let (bytes, parameter) = (allocation.bytes - offset, u16::try_from(pointer.parameter).ok());
        Some(DeclaredSpan { address: DeviceAddress(address), bytes, access: pointer.access, parameter })
    };
    function.pointers.iter().filter_map(span).collect()
}
