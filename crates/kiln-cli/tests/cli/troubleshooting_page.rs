//! The messages in the book's page on troubleshooting are what a program is told.

use std::path::Path;

use kiln::buffer::Stale;
use kiln::code::Source;
use kiln::probe::ProbeError;

use kiln::{DeviceRuntime, RuntimeConfig};

/// Writes through its first parameter.
const PTX: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry one(.param .u64 a, .param .u64 b) {
        .reg .b64 %d<2>;
        ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b];
        st.global.u32 [%d0], 1; st.global.u32 [%d1], 1;
        ret;
    }";

/// Errors of the page that can be made without a GPU.
fn errors() -> Vec<String> {
    let config = RuntimeConfig { max_streams: 1, ..RuntimeConfig::default() };
    let machine = kiln::sim::Machine::new(
        kiln::sim::MachineConfig::seeded(1).engine(std::sync::Arc::new(kiln::sim::PtxEngine::default())),
    );
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let kernel = gpu.source(Source::Ptx(PTX)).kernel("one").unwrap();
    let (a, b) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap());
    let mut told = Vec::new();
    // SAFETY: none of these launches is accepted.
    unsafe {
        told.push(gpu.launch(&kernel).threads(1).read_write(&a).submit().unwrap_err().to_string());
        told.push(gpu.launch(&kernel).threads(1).read(&a).read_write(&b).submit().unwrap_err().to_string());
        told.push(gpu.launch(&kernel).read_write(&a).read_write(&b).submit().unwrap_err().to_string());
        let (first, second) = (a.view(0..3).unwrap(), a.view(2..4).unwrap());
        told.push(
            gpu.launch(&kernel).threads(1).write(&first).write(&second).submit().unwrap_err().to_string(),
        );
    }
    let leased: Result<Vec<_>, _> = (0..9).map(|_| gpu.stream()).collect();
    told.push(leased.map(|_| ()).unwrap_err().to_string());
    told.push(lost_device());
    assert!(gpu.shutdown(std::time::Duration::from_secs(60)).unwrap());
    told.push(gpu.zeros::<u32>(4).unwrap_err().to_string());
    told.extend([Stale::Rebuilding.to_string(), Stale::Lost.to_string(), ProbeError::Forked.to_string()]);
    told
}

/// What an upload to a device is told whose first kernel failed.
fn lost_device() -> String {
    let fault = kiln::sim::PlannedFault::Sticky { launch: 1, code: kiln_driver::Code::LAUNCH_FAILED };
    let config = kiln::sim::MachineConfig::seeded(1).faults(kiln::sim::FaultPlan::none().on(0, fault));
    let machine =
        kiln::sim::Machine::new(config.engine(std::sync::Arc::new(kiln::sim::PtxEngine::default())));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    let kernel = gpu.source(Source::Ptx(PTX)).kernel("one").unwrap();
    let (a, b) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap());
    let mut launch = gpu.launch(&kernel);
    launch.threads(1).read_write(&a).read_write(&b);
    // SAFETY: the kernel writes one element of each buffer.
    assert!(unsafe { launch.submit() }.unwrap().wait().is_err());
    gpu.upload(&[1_u32]).unwrap_err().to_string()
}

/// Whether a message has the words of a row, which has `…` and single capital letters for what differs.
fn is_told(row: &str, message: &str) -> bool {
    let mut rest = message;
    let words = row.split('…').flat_map(|part| {
        let mut parts = vec![String::new()];
        for word in part.split(' ') {
            match word.len() == 1 && word.chars().all(|c| c.is_ascii_uppercase()) {
                true => parts.push(String::new()),
                false => {
                    let last = parts.last_mut().unwrap();
                    last.push_str(if last.is_empty() { "" } else { " " });
                    last.push_str(word);
                }
            }
        }
        parts
    });
    for words in words {
        let words = words.trim();
        match rest.find(words) {
            Some(at) => rest = &rest[at + words.len()..],
            None => return false,
        }
    }
    true
}

#[test]
fn the_messages_are_those_of_the_library() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/troubleshooting.md");
    let page = std::fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split_once('`'))
        .map(|(message, _)| message)
        .collect();
    for message in errors() {
        assert!(rows.iter().any(|row| is_told(row, &message)), "no row has the message: {message}");
    }
}
