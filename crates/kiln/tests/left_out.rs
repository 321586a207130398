//! What was left out when kiln was built is an error that says how to get it. Run with
//! `cargo test -p kiln --no-default-features --test left_out`; with the default features there is nothing to show.

#![cfg(not(any(feature = "sim", feature = "isolate")))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::sync::Arc;

use kiln::driver::{Capability, DeviceKind, Driver, PciId, Uuid, Version};
use kiln::error::ErrorKind;
use kiln::probe::{self, DeviceSummary, Listing, Platform, ProbeError, Prober, ProberConfig};
use kiln::recovery::{Isolation, Process};
use kiln::{DeviceRuntime, Policy, RuntimeConfig};

fn left_out(error: &kiln::Error) -> &'static str {
    match error.kind() {
        ErrorKind::Probe(ProbeError::NotBuilt { next, .. }) => next,
        other => panic!("{other}"),
    }
}

#[test]
fn simulated_devices_name_their_feature() {
    let alone = DeviceRuntime::simulated(1).unwrap_err();
    assert_eq!(
        alone.to_string(),
        "simulated devices are not part of this build; enable the feature `sim` of kiln"
    );
    let chosen = probe::prober().resolve(Policy::Simulate).unwrap_err();
    assert!(left_out(&chosen).contains("`sim`") && !chosen.is_absence() && !chosen.is_retryable());
}

#[test]
fn worker_processes_name_their_feature() {
    let platform = |kind| Box::new(OneDevice(kind));
    let prober = Prober::new(ProberConfig {
        cuda: platform(DeviceKind::Cuda),
        simulator: platform(DeviceKind::Simulated),
        policy_override: None,
    });
    let isolation = Isolation::Process(Process::default());
    prober.set_runtime_config(RuntimeConfig { isolation, ..RuntimeConfig::default() }).unwrap();
    let error = prober.runtime(0).unwrap_err();
    assert!(left_out(&error).contains("`isolate`"), "{error}");
}

/// A platform with one device, which is not opened in this process.
struct OneDevice(DeviceKind);

impl Platform for OneDevice {
    fn kind(&self) -> DeviceKind {
        self.0
    }

    fn list(&self) -> probe::Result<Listing> {
        Ok(Listing::Devices(vec![Ok(DeviceSummary {
            ordinal: 0,
            kind: self.0,
            name: "one".into(),
            uuid: Uuid([0; 16]),
            pci: PciId { domain: 0, bus: 0, device: 0 },
            capability: Capability { major: 9, minor: 0 },
            driver_version: Version { major: 13, minor: 0 },
            total_memory_bytes: 1 << 30,
            mig: false,
            multiprocessors: 1,
            max_threads_per_multiprocessor: 2048,
            shared_bytes_per_block: 1 << 15,
            shared_bytes_per_block_optin: 1 << 16,
        })]))
    }

    fn open(&self, _: u32) -> probe::Result<Arc<dyn Driver>> {
        panic!("it is to be opened in a worker")
    }
}
