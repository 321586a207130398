//! Which compute capability a library needs for a type.

use kiln_driver::Capability;
use kiln_operation::{ElementType, Math, Operation};

use crate::Result;
use crate::error::LibraryError;

/// The first capability whose devices multiply `bf16`.
const BF16: Capability = Capability { major: 8, minor: 0 };
/// The first capability whose devices multiply floats of 8 bits.
const F8: Capability = Capability { major: 8, minor: 9 };

/// Refuses an operation on a type that a device of that capability does not compute with, on a simulated device as on a GPU.
pub(crate) fn check_capability(operation: &Operation, capability: Capability) -> Result<()> {
    let (elements, math) = match operation {
        Operation::Matmul(matmul) => {
            (vec![matmul.a.element, matmul.b.element, matmul.d.element], matmul.math)
        }
        Operation::Convolution(convolution) => (vec![convolution.element], Math::Ieee),
        Operation::Attention(attention) => (vec![attention.element], Math::Ieee),
        _ => return Ok(()),
    };
    let (needed, what, hint) = if elements.contains(&ElementType::F8E4M3) {
        (F8, "f8e4m3", "use bf16 or f16, or a device of compute capability 8.9 or newer")
    } else if elements.contains(&ElementType::Bf16) {
        (BF16, "bf16", "use f16 or f32, or a device of compute capability 8.0 or newer")
    } else if math == Math::Bf16x9 {
        (BF16, "bf16x9", "use `Math::Ieee`, or a device of compute capability 8.0 or newer")
    } else {
        return Ok(());
    };
    if (capability.major, capability.minor) >= (needed.major, needed.minor) {
        return Ok(());
    }
    let what = format!("{what} on a device of compute capability {capability}");
    Err(LibraryError::argument(operation.name(), what, hint))
}
