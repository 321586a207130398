//! Machine code of a simulated device.
//!
//! The engine of a simulated device runs PTX, so its machine code is that text behind one line that names the format
//! and the compute capability. As on a GPU, code for another capability is refused.

use kiln_driver::{Capability, Code, Error, Refusal, Result};

const MARK: &str = "kiln-sim machine code for ";

/// The machine code of PTX that was loaded on a device of this capability.
pub(crate) fn assemble(ptx: &str, capability: Capability) -> Vec<u8> {
    format!("{MARK}{capability}\n{ptx}").into_bytes()
}

/// The PTX in machine code; none if the bytes are no machine code of a simulated device.
///
/// # Errors
/// Refused for code of another capability.
pub(crate) fn disassemble<'a>(
    call: &'static str,
    code: &'a [u8],
    capability: Capability,
) -> Result<Option<&'a str>> {
    let text = std::str::from_utf8(code).ok().and_then(|text| text.strip_prefix(MARK));
    let Some((compiled_for, ptx)) = text.and_then(|text| text.split_once('\n')) else { return Ok(None) };
    if compiled_for == capability.to_string() {
        return Ok(Some(ptx));
    }
    let log = format!("the code is for compute capability {compiled_for}, and the device has {capability}");
    Err(Error::refused(call, Refusal::Image { code: Some(Code::NO_BINARY_FOR_GPU), log }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_read_on_its_own_capability_and_refused_on_another() {
        let [hopper, ampere] = [(9, 0), (8, 0)].map(|(major, minor)| Capability { major, minor });
        let code = assemble(".version 8.0\n", hopper);
        assert_eq!(disassemble("load", &code, hopper).unwrap(), Some(".version 8.0\n"));
        let error = disassemble("load", &code, ampere).unwrap_err();
        assert_eq!(error.code(), Some(Code::NO_BINARY_FOR_GPU));
        assert_eq!(disassemble("load", b"\x7fELF", hopper).unwrap(), None);
    }
}
