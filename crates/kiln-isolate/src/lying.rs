//! Workers that lie, each in one way. The client finds each of them out, says so, and goes on with an honest one.
//!
//! The liar speaks the protocol with this crate's own words, so it is told here and not in a test from outside. It runs
//! as a test of this binary, once: the next worker finds the note gone and is honest.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kiln_driver::{Driver, DriverExt, Error, EventRequest, MemoryRequest, StreamRequest};

use crate::area::{AREA_BYTES, Area, COMMANDS, NOTICES};
use crate::launcher::WORKER_VARIABLE;
use crate::ring::{RingReader, RingWriter, word};
use crate::shared_file::SharedFile;
use crate::socket::Socket;
use crate::wire::{Put, Request, Welcome, Writer};
use crate::{Backend, Cause, Config, Entry, IsolatedDevice, StartError, TakeoverError};

const NOTE: &str = "KILN_TEST_LIE";

/// Lies told before there is a device.
const FIRST: [&str; 4] = ["silence", "garbage", "version", "device"];
/// Lies told later, and the call that finds them out.
const LATER: [&str; 12] = [
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

/// The worker process: a liar if the note is there, honest otherwise.
#[test]
#[ignore = "helper process"]
fn worker() {
    let lie = std::env::var_os(NOTE).map(PathBuf::from).and_then(|note| {
        let lie = std::fs::read_to_string(&note).ok()?;
        std::fs::remove_file(note).ok()?;
        Some(lie)
    });
    match (std::env::var_os(WORKER_VARIABLE), lie) {
        (Some(_), Some(lie)) => {
            tell(&lie);
            // Found out or not, it stays until it is ended.
            std::thread::sleep(Duration::from_secs(60));
        }
        _ => crate::worker_entry(),
    }
}

fn tell(lie: &str) {
    let socket = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).unwrap();
    let socket = Socket::from_descriptor(socket);
    let hello = socket.receive(Duration::from_secs(10)).unwrap();
    let file = SharedFile::adopt(hello.descriptor.unwrap(), AREA_BYTES).unwrap();
    let area = Area::map(&file).unwrap();
    let honest = (crate::backend::built_in().into_iter()).find(|(name, _)| *name == "sim").unwrap().1;
    let info = honest(&1u64.to_le_bytes()).unwrap().driver.info().clone();
    let welcome = Writer::of(&Welcome::Ready(Box::new(info)));
    match lie {
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
    if lie == "hang up" {
        drop(socket);
        return rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null").unwrap()).unwrap();
    }
    let mut ring = RingReader::new(area.bytes(), COMMANDS);
    let mut message = Vec::new();
    loop {
        if !ring.pop(&mut message).unwrap() {
            std::thread::sleep(Duration::from_micros(100));
            continue;
        }
        match Request::take(&message).unwrap() {
            Request::Ask { number, .. } => answer(lie, &area, number),
            Request::CreateStream { cell, .. } => {
                lie_about_streams(lie, &area, cell);
                if lie == "ring" {
                    // The next message taken out would put the count right.
                    return;
                }
            }
            _ => {}
        }
    }
}

fn answer(lie: &str, area: &Area, number: u64) {
    let mut honest = vec![1];
    honest.extend([0; 16]);
    match lie {
        "another number" => area.reply(number + 1, &honest),
        "too long" => {
            area.reply(number, &honest);
            // The length lies beside the number.
            word(&area.bytes(), 10 * 64).store(1 << 40, Ordering::Release);
            area.replied().store(number, Ordering::Release);
        }
        "neither" => area.reply(number, &[9; 17]),
        "cut off" => area.reply(number, &honest[..5]),
        "left over" => area.reply(number, &[1; 100]),
        "unknown error" => area.reply(number, &[0, 1, 0, 0, 0, b'x', 77]),
        "none of many" => area.reply(number, &answers(0, &[])),
        "more than were asked" => area.reply(number, &answers(2, &[1])),
        "refused and went on" => {
            let mut refused = vec![0];
            let mut writer = Writer::new();
            crate::wire::put_error(&Error::out_of_memory("reserve", 1, None), &mut writer);
            false.put(&mut writer);
            refused.extend(writer.bytes());
            area.reply(number, &answers(2, &refused));
        }
        "other addresses" => area.reply(number, &answers(1, &honest)),
        "no descriptor" => {
            honest[0] = 2;
            area.reply(number, &honest);
        }
        _ => area.reply(number, &honest),
    }
    area.wake_client();
}

/// An answer to several questions: the same one, so often.
fn answers(count: u32, each: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(1);
    writer.u32(count);
    (0..count).for_each(|_| writer.slice(each));
    writer.into_bytes()
}

fn lie_about_streams(lie: &str, area: &Area, cell: u32) {
    match lie {
        "ring" => word(&area.bytes(), COMMANDS.read).store(1 << 50, Ordering::Release),
        "progress" => area.stream(cell).store(1000, Ordering::Release),
        "fault length" => word(&area.bytes(), 11 * 64).store(1 << 40, Ordering::Release),
        "fault that is none" => {
            let mut writer = Writer::new();
            crate::wire::put_error(&Error::out_of_memory("wait", 1, None), &mut writer);
            false.put(&mut writer);
            area.report_fault(writer.bytes());
        }
        "notice" => {
            let mut notices = RingWriter::new(area.bytes(), NOTICES);
            assert!(notices.push(&[3; 20]).unwrap());
        }
        _ => {}
    }
    area.wake_client();
}

fn config(lie: &str) -> Config {
    let name = lie.replace(' ', "-");
    let note = std::env::temp_dir().join(format!("kiln-isolate-lie-{}-{name}", std::process::id()));
    std::fs::write(&note, lie).unwrap();
    let mut config = Config::new(Backend::simulated(1)).entry(Entry::Test("lying::worker".into()));
    config.start_limit = Duration::from_secs(2);
    config.variable(NOTE, note)
}

#[test]
fn lies_before_there_is_a_device_are_found_out() {
    for lie in FIRST {
        let error = IsolatedDevice::open(config(lie)).unwrap_err();
        let expected = match lie {
            "silence" => matches!(error, StartError::TimedOut { .. }),
            _ => matches!(error, StartError::Violation(_)),
        };
        assert!(expected, "{lie}: {error}");
    }
}

/// Calls until one says that the device is lost.
fn provoke(device: &IsolatedDevice) -> Error {
    let calls = || {
        let stream = device.create_stream(StreamRequest::New { priority: 0 })?;
        // Give the liar time to lie about the stream.
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
fn a_worker_that_lies_while_it_takes_over_is_replaced() {
    for lie in ["none of many", "more than were asked", "refused and went on", "other addresses"] {
        let config = config(lie);
        let Some((_, note)) = config.variables.iter().find(|(name, _)| name == NOTE).cloned() else {
            panic!("a liar has a note")
        };
        // The first is honest.
        std::fs::remove_file(&note).unwrap();
        let device: Arc<IsolatedDevice> = IsolatedDevice::open(config).unwrap();
        let granule = device.info().limits.page_granularity_bytes;
        let request = kiln_driver::ReserveRequest { bytes: granule, at: None };
        let range = device.reserve(request).unwrap();
        std::fs::write(&note, lie).unwrap();
        device.kill_worker();
        let error = device.take_over().unwrap_err();
        assert!(matches!(error, TakeoverError::Rebuild { .. }) && error.is_retryable(), "{lie}: {error}");
        assert!(matches!(device.cause(), Some(Cause::Killed)), "{lie}: the first cause counts");
        assert_eq!(device.take_over().unwrap().generation, 2, "{lie}");
        device.destroy(range.id.into()).unwrap();
    }
}

#[test]
fn lies_of_a_worker_at_work_are_found_out_and_it_is_replaced() {
    for lie in LATER {
        let device: Arc<IsolatedDevice> = IsolatedDevice::open(config(lie)).unwrap();
        let error = provoke(&device);
        assert!(error.is_sticky(), "{lie}: {error}");
        assert!(matches!(device.cause(), Some(Cause::Violation(_))), "{lie}: {:?}", device.cause());
        let takeover = device.take_over().unwrap();
        assert_eq!(takeover.generation, 2);
        let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let memory = device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
        device.fill(stream, memory.id.into(), 1, 64).unwrap();
        device.synchronize(stream).unwrap();
    }
}

#[test]
fn a_worker_that_closes_its_socket_and_goes_on_is_replaced() {
    let device = IsolatedDevice::open(config("hang up")).unwrap();
    // Give the liar time to hang up.
    std::thread::sleep(Duration::from_millis(50));
    let error = device.allocate_host(64).unwrap_err();
    assert!(error.is_sticky(), "{error}");
    assert!(matches!(device.cause(), Some(Cause::Violation(_))), "{:?}", device.cause());
    assert_eq!(device.take_over().unwrap().generation, 2);
    device.allocate_host(64).unwrap();
}
