//! Workers that break the protocol, each in one way. The client detects each violation, reports it, and continues with a correct worker.
//!
//! Such a worker needs the private parts of the protocol, so these are unit tests. It runs as a helper test of this binary and reads from a file
//! which violation to commit; it removes the file, so the next worker is correct.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kiln_driver::{Driver, DriverExt, Error, EventRequest, MemoryRequest, StreamRequest};

use crate::protocol::environment::is_worker;
use crate::protocol::memory_file::MemoryFile;
use crate::protocol::ring::{RingReader, RingWriter, word};
use crate::protocol::segment::{COMMANDS, NOTICES, SEGMENT_BYTES, Segment};
use crate::protocol::socket::Socket;
use crate::protocol::wire::{Put, Request, Welcome, Writer};
use crate::worker::opened_device::open_simulated;
use crate::{
    DeviceSpec, IsolatedDevice, IsolationConfig, LossCause, TakeoverError, WorkerEntry, WorkerStartError,
};

/// Names the file that says which violation to commit.
const VIOLATION_FILE: &str = "KILN_TEST_VIOLATION";

/// Violations before the worker has a device.
const DURING_START: [&str; 4] = ["silence", "garbage", "version", "device"];
/// Violations while the worker is in use.
const IN_USE: [&str; 12] = [
    "another number",
    "too long",
    "neither",
    "cut off",
    "left over",
    "unknown error",
    "no descriptor",
    "ring",
    "progress",
    "fault length",
    "fault that is none",
    "notice",
];

/// The worker process: breaks the protocol if the file exists, and is correct otherwise.
#[test]
#[ignore = "helper process"]
fn worker() {
    let violation = std::env::var_os(VIOLATION_FILE).map(PathBuf::from).and_then(|file| {
        let violation = std::fs::read_to_string(&file).ok()?;
        std::fs::remove_file(file).ok()?;
        Some(violation)
    });
    match (is_worker(), violation) {
        (true, Some(violation)) => {
            commit(&violation);
            // It stays until it is killed.
            std::thread::sleep(Duration::from_secs(60));
        }
        _ => crate::worker_entry(),
    }
}

fn commit(violation: &str) {
    let socket = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).unwrap();
    let socket = Socket::from_descriptor(socket);
    let hello = socket.receive(Duration::from_secs(10)).unwrap();
    let file = MemoryFile::adopt(hello.descriptor.unwrap(), SEGMENT_BYTES).unwrap();
    let segment = Segment::map(&file).unwrap();
    let info = open_simulated(&1u64.to_le_bytes()).unwrap().driver().info().clone();
    let welcome = Writer::of(&Welcome::Ready(Box::new(info)));
    match violation {
        "silence" => return,
        "garbage" => return socket.send(&[7; 100], None).unwrap(),
        "version" => {
            let mut welcome = welcome;
            welcome[8] += 1;
            return socket.send(&welcome, None).unwrap();
        }
        "device" => return socket.send(&welcome[..welcome.len() - 1], None).unwrap(),
        _ => socket.send(&welcome, None).unwrap(),
    }
    if violation == "closed socket" {
        drop(socket);
        return rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null").unwrap()).unwrap();
    }
    let mut ring = RingReader::new(segment.bytes(), COMMANDS);
    let mut message = Vec::new();
    loop {
        if !ring.pop(&mut message).unwrap() {
            std::thread::sleep(Duration::from_micros(100));
            continue;
        }
        match Request::take(&message).unwrap() {
            Request::Ask { number, .. } => answer(violation, &segment, number),
            Request::CreateStream { cell, .. } => {
                commit_on_stream(violation, &segment, cell);
                if violation == "ring" {
                    // Taking out the next message would correct the count.
                    return;
                }
            }
            _ => {}
        }
    }
}

fn answer(violation: &str, segment: &Segment, number: u64) {
    let mut correct = vec![1];
    correct.extend([0; 16]);
    match violation {
        "another number" => segment.reply(number + 1, &correct),
        "too long" => {
            segment.reply(number, &correct);
            // The length is stored beside the number.
            word(&segment.bytes(), 10 * 64).store(1 << 40, Ordering::Release);
            segment.replied().store(number, Ordering::Release);
        }
        "neither" => segment.reply(number, &[9; 17]),
        "cut off" => segment.reply(number, &correct[..5]),
        "left over" => segment.reply(number, &[1; 100]),
        "unknown error" => segment.reply(number, &[0, 1, 0, 0, 0, b'x', 77]),
        "none of many" => segment.reply(number, &answers(0, &[])),
        "more than were asked" => segment.reply(number, &answers(2, &[1])),
        "refused and went on" => {
            let mut refused = vec![0];
            let mut writer = Writer::new();
            crate::protocol::wire::put_error(&Error::out_of_memory("reserve", 1, None), &mut writer);
            false.put(&mut writer);
            refused.extend(writer.bytes());
            segment.reply(number, &answers(2, &refused));
        }
        "other addresses" => segment.reply(number, &answers(1, &correct)),
        "no descriptor" => {
            correct[0] = 2;
            segment.reply(number, &correct);
        }
        _ => segment.reply(number, &correct),
    }
    segment.wake_client();
}

/// The answer to a batch: the same answer `count` times.
fn answers(count: u32, each: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(1);
    writer.u32(count);
    (0..count).for_each(|_| writer.slice(each));
    writer.into_bytes()
}

fn commit_on_stream(violation: &str, segment: &Segment, cell: u32) {
    match violation {
        "ring" => word(&segment.bytes(), COMMANDS.read).store(1 << 50, Ordering::Release),
        "progress" => segment.stream(cell).store(1000, Ordering::Release),
        "fault length" => word(&segment.bytes(), 11 * 64).store(1 << 40, Ordering::Release),
        "fault that is none" => {
            let mut writer = Writer::new();
            crate::protocol::wire::put_error(&Error::out_of_memory("wait", 1, None), &mut writer);
            false.put(&mut writer);
            segment.report_fault(writer.bytes());
        }
        "notice" => {
            let mut notices = RingWriter::new(segment.bytes(), NOTICES);
            assert!(notices.push(&[3; 20]).unwrap());
        }
        _ => {}
    }
    segment.wake_client();
}

fn config(violation: &str) -> IsolationConfig {
    let name = violation.replace(' ', "-");
    let file = std::env::temp_dir().join(format!("kiln-isolate-violation-{}-{name}", std::process::id()));
    std::fs::write(&file, violation).unwrap();
    let mut config = IsolationConfig::new(DeviceSpec::simulated(1))
        .entry(WorkerEntry::Test("protocol_violation_tests::worker".into()));
    config.start_limit = Duration::from_secs(2);
    config.variable(VIOLATION_FILE, file)
}

#[test]
fn violations_during_the_start_are_detected() {
    for violation in DURING_START {
        let error = IsolatedDevice::open(config(violation)).unwrap_err();
        let expected = match violation {
            "silence" => matches!(error, WorkerStartError::TimedOut { .. }),
            _ => matches!(error, WorkerStartError::Violation(_)),
        };
        assert!(expected, "{violation}: {error}");
    }
}

/// Calls until one says that the device is lost.
fn provoke(device: &IsolatedDevice) -> Error {
    let calls = || {
        let stream = device.create_stream(StreamRequest::New { priority: 0 })?;
        // Time for the worker to write to the cell of the stream.
        std::thread::sleep(Duration::from_millis(50));
        // More than the ring holds.
        for _ in 0..25_000 {
            let event = device.create_event(EventRequest::Plain)?;
            device.destroy(event.into())?;
        }
        device.progress(stream)?;
        device.memory_info()?;
        device.allocate(MemoryRequest::Direct { bytes: 64 })?;
        Ok::<(), Error>(())
    };
    calls().unwrap_err()
}

#[test]
fn a_worker_that_breaks_the_protocol_in_a_takeover_is_replaced() {
    for violation in ["none of many", "more than were asked", "refused and went on", "other addresses"] {
        let config = config(violation);
        let Some((_, file)) = config.variables.iter().find(|(name, _)| name == VIOLATION_FILE).cloned()
        else {
            panic!("the configuration names the file")
        };
        // The first worker is correct.
        std::fs::remove_file(&file).unwrap();
        let device: Arc<IsolatedDevice> = IsolatedDevice::open(config).unwrap();
        let granule = device.info().limits.page_granularity_bytes;
        let request = kiln_driver::ReserveRequest { bytes: granule, at: None };
        let range = device.reserve(request).unwrap();
        std::fs::write(&file, violation).unwrap();
        device.kill_worker();
        let error = device.take_over().unwrap_err();
        assert!(
            matches!(error, TakeoverError::Rebuild { .. }) && error.is_retryable(),
            "{violation}: {error}"
        );
        assert!(matches!(device.cause(), Some(LossCause::Killed)), "{violation}: the first cause is kept");
        assert_eq!(device.take_over().unwrap().generation, 2, "{violation}");
        device.destroy(range.id.into()).unwrap();
    }
}

#[test]
fn violations_of_a_worker_in_use_are_detected_and_it_is_replaced() {
    for violation in IN_USE {
        let device: Arc<IsolatedDevice> = IsolatedDevice::open(config(violation)).unwrap();
        let error = provoke(&device);
        assert!(error.is_sticky(), "{violation}: {error}");
        assert!(matches!(device.cause(), Some(LossCause::Violation(_))), "{violation}: {:?}", device.cause());
        let takeover = device.take_over().unwrap();
        assert_eq!(takeover.generation, 2);
        let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let memory = device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
        device.fill(stream, memory.id.into(), 1, 64).unwrap();
        device.synchronize(stream).unwrap();
    }
}

#[test]
fn a_worker_that_closes_its_socket_and_keeps_running_is_replaced() {
    let device = IsolatedDevice::open(config("closed socket")).unwrap();
    // Time for the worker to close its socket.
    std::thread::sleep(Duration::from_millis(50));
    let error = device.allocate_host(64).unwrap_err();
    assert!(error.is_sticky(), "{error}");
    assert!(matches!(device.cause(), Some(LossCause::Violation(_))), "{:?}", device.cause());
    assert_eq!(device.take_over().unwrap().generation, 2);
    device.allocate_host(64).unwrap();
}
