//! What runtimes are built with: set before one is open, and not behind its back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::probe::Prober;
use kiln::{Result, RuntimeConfig, error::ErrorKind, memory::MemoryConfig};
use kiln_driver::DeviceKind;

use super::scripted::{Scripted, fault, prober};

fn config(stack: &str) -> RuntimeConfig {
    let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
    RuntimeConfig { memory, ..RuntimeConfig::default() }
}

fn stack_of(prober: &Prober) -> String {
    prober.auto().unwrap().memory().to_string()
}

#[test]
fn a_configuration_is_refused_while_a_runtime_is_open_and_nothing_changes() {
    let prober = prober(&Scripted::cuda([Default::default(), Default::default()]));
    prober.set_runtime_config(config("stats(direct)")).unwrap();
    prober.set_runtime_config(config("stats(heap)")).unwrap();
    assert_eq!(stack_of(&prober), "stats(heap)");
    let error = prober.set_runtime_config(config("direct")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ConfigInUse { open: Some((DeviceKind::Cuda, 0)) }), "{error}");
    assert!(error.to_string().starts_with("CUDA device 0 uses the configuration"), "{error}");
    assert_eq!(prober.runtime(1).unwrap().memory().to_string(), "stats(heap)");
}

#[test]
fn once_every_runtime_is_over_the_next_one_gets_another_configuration() {
    let prober = prober(&Scripted::one_device());
    assert_ne!(stack_of(&prober), "stats(direct)");
    prober.auto().unwrap().shutdown(Duration::from_secs(10)).unwrap();
    prober.set_runtime_config(config("stats(direct)")).unwrap();
    assert_eq!(stack_of(&prober), "stats(direct)");
}

#[test]
fn a_failed_opening_leaves_the_configuration_free() {
    let cuda = Scripted::one_device();
    cuda.will_fail_to_open(fault());
    let prober = prober(&cuda);
    assert!(prober.auto().is_err());
    prober.set_runtime_config(config("stats(direct)")).unwrap();
    assert_eq!(stack_of(&prober), "stats(direct)");
}

#[test]
fn a_configuration_is_refused_while_a_runtime_is_being_opened() {
    let cuda = Scripted::one_device();
    let prober = Arc::new(prober(&cuda));
    let answer = Arc::<Mutex<Option<Result<()>>>>::default();
    let (inside, told) = (prober.clone(), answer.clone());
    *cuda.during_open.lock().unwrap() = Some(Arc::new(move || {
        *told.lock().unwrap() = Some(inside.set_runtime_config(config("stats(direct)")));
    }));
    assert_ne!(stack_of(&prober), "stats(direct)");
    let error = answer.lock().unwrap().take().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ConfigInUse { open: None }), "{error}");
}
