//! Code that a driver refuses.

use std::sync::LazyLock;
use std::time::SystemTime;

use kiln::{DeviceRuntime, code::CodeError, error::ErrorKind};

use crate::machine::{Machine, calls};

const PTX: &str = "
.version 9.1
.target sm_90
.address_size 64
.visible .entry nothing() { ret; }";

/// The code, with a comment that no other run had: what is kept on disk of another run is not found.
fn ptx() -> String {
    static OF_THIS_RUN: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);
    format!("{PTX}\n// {:?} {}\n", *OF_THIS_RUN, std::process::id())
}

fn refused() -> CodeError {
    let gpu = DeviceRuntime::try_get(0).unwrap();
    match gpu.kernel(ptx().as_str(), "nothing").unwrap_err().kind() {
        ErrorKind::Code(error) => error.clone(),
        other => panic!("expected an error of the code, got {other}"),
    }
}

on_machine! {
    fn ptx_newer_than_the_driver_is_told_with_both_versions() on
        Machine::fake().with("FAKE_CUDA_VERSION", "12060").plan("cuModuleLoadDataEx=222") => {
        let error = refused();
        assert!(matches!(error, CodeError::PtxTooNew { ptx: Some(_), .. }), "{error:?}");
        let text = error.to_string();
        for word in ["version 9.1", "CUDA 12.6", "update the driver"] {
            assert!(text.contains(word), "{word} is not in {text}");
        }
        assert!(DeviceRuntime::try_get(0).unwrap().upload(&[1_u32]).is_ok(), "the device is none the worse");
    }

    fn code_for_another_architecture_is_told_with_both() on Machine::fake().plan("cuModuleLoadDataEx=209") => {
        let error = refused();
        let CodeError::Architecture { compiled_for, .. } = &error else { panic!("{error:?}") };
        assert_eq!(compiled_for.as_deref(), Some("sm_90"));
        assert!(error.to_string().contains("compile it for that one"), "{error}");
    }

    // Machine code that the driver's linker made and its loader refuses is followed by the PTX itself.
    fn a_refusal_is_not_remembered() on Machine::fake().plan("cuModuleLoadDataEx=222@1,cuModuleLoadDataEx=222@2") => {
        refused();
        assert!(DeviceRuntime::try_get(0).unwrap().kernel(ptx().as_str(), "nothing").is_ok());
        assert_eq!(calls("cuModuleLoadDataEx").len(), 3);
    }
}
