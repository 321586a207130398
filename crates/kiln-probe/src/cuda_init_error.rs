//! Why CUDA did not start, as an error of this crate.

use kiln_cuda::{StartFault, Unavailable};
use kiln_driver::{Code, Fault, Refusal};

use crate::absence_reason::Absence;
use crate::error::ProbeError;

/// The same reason as an error of this crate.
pub(crate) fn unavailable(reason: Unavailable) -> ProbeError {
    match reason {
        Unavailable::Absent(absence) => ProbeError::from(Absence::from(absence)),
        Unavailable::Fault(fault) => driver_error(fault).into(),
        Unavailable::Forked => ProbeError::Forked,
    }
}

/// The same fault in the words of the driver interface.
pub(crate) fn driver_error(StartFault { call, code }: StartFault) -> kiln_driver::Error {
    match code {
        Code::OUT_OF_MEMORY => kiln_driver::Error::out_of_memory(call, 0, None),
        code if code.is_sticky() => {
            kiln_driver::Error::lost(call, Fault { code, detail: "before the device was opened".into() })
        }
        code => kiln_driver::Error::refused(call, Refusal::Driver(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_keeps_its_call_and_code_and_answers_as_what_it_is() {
        let of = |code| unavailable(Unavailable::Fault(StartFault { call: "cuInit", code }));
        for code in [Code::OUT_OF_MEMORY, Code::ILLEGAL_ADDRESS, Code::UNKNOWN, Code(424_242)] {
            let fault = of(code);
            let error = fault.driver().unwrap();
            assert_eq!((error.code(), error.call()), (Some(code), "cuInit"));
            assert_eq!((error.is_oom(), error.is_sticky()), (code == Code::OUT_OF_MEMORY, code.is_sticky()));
        }
    }
}
