//! Listing, choosing, measuring.

use kiln::error::ErrorKind;
use kiln::probe::{Listing, Policy, ProbeError, Selection, best_by};
use kiln_driver::{Code, DeviceKind};
use kiln_sim::DeviceConfig;

use super::scripted::{Scripted, fault, prober};

#[test]
fn a_device_is_listed_with_everything_known_of_it() {
    let cuda = Scripted::cuda([DeviceConfig::default(), DeviceConfig::small()]);
    let availability = prober(&cuda).availability().unwrap();
    let devices = availability.devices().unwrap();
    assert_eq!((devices.kind(), devices.len()), (DeviceKind::Cuda, 2));
    let (large, small) = (devices.device(0).unwrap(), devices.device(1).unwrap());
    let configured = DeviceConfig::small();
    assert_eq!(small.name, configured.name);
    assert_eq!(small.capability, configured.capability);
    assert_eq!(small.driver_version, configured.driver_version);
    assert_eq!(small.total_memory_bytes, configured.memory_bytes);
    assert_eq!(small.shared_bytes_per_block_optin, configured.limits.shared_bytes_per_block_optin);
    assert!(small.uuid != large.uuid && small.pci != large.pci && !small.mig);
    assert!(large.score() > small.score());
}

#[test]
fn devices_are_chosen_by_ordinal_identity_and_score() {
    let cuda = Scripted::cuda([DeviceConfig::small(), DeviceConfig::default(), DeviceConfig::default()]);
    let prober = prober(&cuda);
    let availability = prober.availability().unwrap();
    let devices = availability.devices().unwrap();
    let uuid = devices.device(2).unwrap().uuid;
    assert_eq!(Selection::Best.choose(devices).unwrap().ordinal, 1);
    assert_eq!(Selection::Uuid(uuid).choose(devices).unwrap().ordinal, 2);
    assert_eq!(Selection::Ordinal(0).choose(devices).unwrap().ordinal, 0);
    assert_eq!(best_by(devices, |device| std::cmp::Reverse(device.score())).unwrap().ordinal, 0);

    let by_text: Selection = uuid.to_string().parse().unwrap();
    let runtime = prober.resolve_on(Policy::Auto, &by_text).unwrap().unwrap();
    assert_eq!((runtime.ordinal(), cuda.opened()), (2, vec![2]));
    let unknown: Selection = "GPU-00000000-0000-0000-0000-000000000000".parse().unwrap();
    let error = prober.resolve_on(Policy::Auto, &unknown).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Probe(ProbeError::UnknownDevice { .. })));
}

#[test]
fn text_that_names_no_device_is_refused() {
    for text in ["", "x", "-1", "4294967296", "GPU-1234", "GPU-zz112233-4455-6677-8899-aabbccddeeff"] {
        let error = text.parse::<Selection>().unwrap_err();
        assert!(matches!(error, ProbeError::UnknownSelection { .. }), "{text}");
    }
}

#[test]
fn a_device_that_did_not_answer_the_list_may_answer_when_it_is_asked_for() {
    let cuda = Scripted::cuda([DeviceConfig::default(), DeviceConfig::default()]);
    let mut entries = cuda.entries();
    entries[0] = Err(fault());
    cuda.will_list(Ok(Listing::Devices(entries)));
    let prober = prober(&cuda);
    let availability = prober.availability().unwrap();
    let error = kiln::Error::from(availability.devices().unwrap().device(0).unwrap_err());
    assert_eq!(error.code(), Some(Code::NOT_INITIALIZED));
    assert!(prober.runtime(0).is_ok());
}

#[test]
fn a_device_that_cannot_be_opened_spoils_no_other() {
    let cuda = Scripted::cuda([DeviceConfig::broken(Code::ECC_UNCORRECTABLE), DeviceConfig::default()]);
    let prober = prober(&cuda);
    assert!(prober.runtime(0).is_err());
    assert!(prober.runtime(1).is_ok());
}

#[test]
fn the_memory_budget_is_live() {
    let cuda = Scripted::cuda([DeviceConfig::with_memory(1 << 30)]);
    let prober = prober(&cuda);
    let before = prober.memory_budget_for(0).unwrap();
    assert_eq!(before.total_bytes, 1 << 30);
    assert!(before.usable_bytes < before.total_bytes && before.free_bytes <= before.total_bytes);
    let runtime = prober.runtime(0).unwrap();
    let buffer = runtime.allocate::<u8>(256 << 20).unwrap();
    let during = prober.memory_budget_for(0).unwrap();
    assert!(before.usable_bytes - during.usable_bytes >= 200 << 20, "{before:?} {during:?}");
    drop(buffer);
    runtime.synchronize().unwrap();
    runtime.reap_pending().unwrap();
    let after = prober.memory_budget_for(0).unwrap();
    assert!(after.usable_bytes - during.usable_bytes >= 200 << 20, "{during:?} {after:?}");
    assert!(matches!(
        prober.memory_budget_for(1).unwrap_err().kind(),
        ErrorKind::Probe(ProbeError::UnknownDevice { .. })
    ));
}
