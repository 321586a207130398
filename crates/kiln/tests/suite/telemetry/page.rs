//! The page for Prometheus, read by another parser.

use kiln::telemetry::{Count, prometheus};
use kiln_sim::{DeviceConfig, MachineConfig};

use super::parser::parse;
use super::rig::Rig;

const ODD_NAME: &str = "odd \"name\" \\ in\ntwo lines, with a } and a =";

#[test]
fn a_page_can_be_read_and_says_what_the_snapshot_says() {
    let rig = Rig::new(
        MachineConfig::seeded(1).device(DeviceConfig { name: ODD_NAME.into(), ..DeviceConfig::default() }),
    );
    let other = Rig::new(MachineConfig::seeded(2));
    let (a, b) = (rig.gpu.upload(&[1_u32; 8]).unwrap(), rig.gpu.upload(&[2_u32; 8]).unwrap());
    rig.mix(rig.gpu.main_stream(), &a, &b);
    a.download().unwrap();
    let (seen, others) = (rig.gpu.telemetry().snapshot(), other.gpu.telemetry().snapshot());
    let page = parse(&prometheus(&[seen.clone(), others])).unwrap();

    let sample = |metric: &str, label: Option<(&str, &str)>| {
        let metric = page.get(metric).unwrap_or_else(|| panic!("no {metric}"));
        let here = |labels: &std::collections::BTreeMap<String, String>| {
            labels.get("name").map(String::as_str) == Some(ODD_NAME)
                && label.is_none_or(|(name, value)| labels.get(name).map(String::as_str) == Some(value))
        };
        let found: Vec<f64> =
            metric.samples.iter().filter(|(labels, _)| here(labels)).map(|(_, value)| *value).collect();
        assert_eq!(found.len(), 1, "{metric:?}");
        found[0]
    };
    assert_eq!(sample("kiln_launches_total", None), 1.0);
    assert_eq!(sample("kiln_copies_total", Some(("direction", "to_device"))), 2.0);
    assert_eq!(sample("kiln_copied_bytes_total", Some(("direction", "to_host"))), 32.0);
    assert_eq!(sample("kiln_memory_live_bytes", None), 64.0);
    assert_eq!(sample("kiln_events_recorded_total", None), seen.count(Count::Signals) as f64);

    for (name, metric) in &page {
        let counter = name.ends_with("_total");
        assert_eq!(metric.kind, if counter { "counter" } else { "gauge" }, "{name}");
        assert!(name.starts_with("kiln_") && metric.help.ends_with('.'), "{name}: {}", metric.help);
        assert!(metric.samples.len().is_multiple_of(2), "{name} has samples of both devices");
    }
    drop((a, b));
    rig.finish();
    other.finish();
}
