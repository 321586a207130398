//! Handles to device memory: what they hold, what they refuse, and what is left when they are gone.

use kiln::{
    DeviceRuntime, GpuRef, RuntimeConfig,
    buffer::{LastWrite, Stale},
    error::{ErrorKind, Misuse},
    launch::Mismatch,
    recovery::DeviceSpec,
};
use kiln_driver::Access;
use kiln_sim::{Machine, MachineConfig};

use crate::order::kernels::{Kernels, library};

fn machine() -> Machine {
    Machine::new(MachineConfig::seeded(7).library(library()))
}

fn runtime(machine: &Machine) -> DeviceRuntime {
    DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap()
}

fn misuse(error: kiln::Error) -> Misuse {
    match error.kind() {
        ErrorKind::Misuse(misuse) => misuse.clone(),
        other => panic!("expected a misuse, got {other}"),
    }
}

fn mismatch(error: kiln::Error) -> Mismatch {
    match error.kind() {
        ErrorKind::Mismatch(mismatch) => mismatch.clone(),
        other => panic!("expected a mismatch, got {other}"),
    }
}

#[test]
fn data_goes_up_and_comes_back_for_many_types() {
    let machine = machine();
    {
        let gpu = runtime(&machine);
        let round_trip = |data: &[f64]| gpu.upload(data).unwrap().download().unwrap() == data;
        assert!(round_trip(&[1.5, -2.0, f64::MAX]));
        let halves = [half::f16::from_f32(0.5), half::f16::NAN];
        assert_eq!(
            gpu.upload(&halves).unwrap().download().unwrap().map_bits(),
            halves.map(half::f16::to_bits).to_vec()
        );
        let vectors = [[1.0_f32, 2.0, 3.0, 4.0]; 5];
        assert_eq!(gpu.upload(&vectors).unwrap().download().unwrap(), vectors);
        let complex = [num_complex::Complex::new(1.0_f32, -1.0)];
        assert_eq!(gpu.upload(&complex).unwrap().download().unwrap(), complex);
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

trait MapBits {
    fn map_bits(&self) -> Vec<u16>;
}

impl MapBits for Vec<half::f16> {
    fn map_bits(&self) -> Vec<u16> {
        self.iter().map(|each| each.to_bits()).collect()
    }
}

#[test]
fn a_buffer_of_no_elements_is_an_ordinary_value() {
    let machine = machine();
    {
        let gpu = runtime(&machine);
        let empty = gpu.upload::<f32>(&[]).unwrap();
        assert!(empty.is_empty() && empty.download().unwrap().is_empty());
        empty.fill(1.0).unwrap().wait().unwrap();
        let other = gpu.zeros::<f32>(0).unwrap();
        other.copy_from(&empty).unwrap().wait().unwrap();
        assert_eq!(
            gpu.upload(&[1.0_f32, 2.0]).unwrap().view(1..1).unwrap().download().unwrap(),
            [0.0_f32; 0]
        );
        let kernels = Kernels::load(&gpu);
        let (to, from) = (gpu.zeros::<u32>(0).unwrap(), gpu.zeros::<u32>(0).unwrap());
        let mut launch = gpu.launch(&kernels.mix);
        launch.grid(1).block(1);
        launch.read_write(&to).read(&from).value(0_u32).value(1_u32);
        // SAFETY: the kernel touches no element when it is told of none.
        unsafe { launch.submit() }.unwrap().wait().unwrap();
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn views_and_casts_are_the_same_memory() {
    let machine = machine();
    {
        let gpu = runtime(&machine);
        let words = gpu.upload(&[1_u32, 2, 3, 4]).unwrap();
        words.view(2..).unwrap().fill(9).unwrap();
        assert_eq!(words.download().unwrap(), [1, 2, 9, 9]);
        let bytes = words.cast::<u8>().unwrap();
        assert_eq!((bytes.len(), bytes.block_id()), (16, words.block_id()));
        bytes.view(0..=3).unwrap().fill(0xff).unwrap();
        assert_eq!(words.download().unwrap(), [u32::MAX, 2, 9, 9]);
        assert_eq!(words.view(1..3).unwrap().cast::<[u32; 2]>().unwrap().download().unwrap(), [[2, 9]]);
        assert!(matches!(misuse(words.cast::<[u8; 5]>().unwrap_err()), Misuse::Cast { bytes: 16, .. }));
        assert!(matches!(misuse(words.view(1..2).unwrap().cast::<u64>().unwrap_err()), Misuse::Cast { .. }));
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn what_cannot_be_right_is_refused_and_nothing_is_queued() {
    let (machine, other_machine) = (machine(), machine());
    {
        let (gpu, other) = (runtime(&machine), runtime(&other_machine));
        let buffer = gpu.upload(&[1_u32; 8]).unwrap();
        let foreign = other.upload(&[2_u32; 8]).unwrap();
        gpu.synchronize().unwrap();
        let before = gpu.main_stream().ticket().unwrap().stamp();
        assert_eq!(
            misuse(buffer.view(3..9).unwrap_err()),
            Misuse::ViewOutOfRange { start: 3, end: 9, len: 8 }
        );
        #[expect(clippy::reversed_empty_ranges, reason = "a range the wrong way round is what is tested")]
        let reversed = 5..4;
        assert!(matches!(misuse(buffer.view(reversed).unwrap_err()), Misuse::ViewOutOfRange { .. }));
        assert_eq!(misuse(buffer.upload(&[0; 7]).unwrap_err()), Misuse::Length { buffer: 8, given: 7 });
        assert_eq!(
            misuse(buffer.download_into(&mut [0; 9]).unwrap_err()),
            Misuse::Length { buffer: 8, given: 9 }
        );
        assert!(matches!(misuse(buffer.copy_from(&foreign).unwrap_err()), Misuse::ForeignBlock { .. }));
        assert!(matches!(
            misuse(buffer.upload_on(other.main_stream(), &[0; 8]).unwrap_err()),
            Misuse::ForeignStream { .. }
        ));
        assert!(matches!(misuse(gpu.allocate::<u64>(usize::MAX).unwrap_err()), Misuse::TooLarge { .. }));
        assert!(matches!(misuse(gpu.allocate::<u8>(1 << 63).unwrap_err()), Misuse::TooLarge { .. }));
        let large = gpu.allocate::<u8>(1 << 36).unwrap_err();
        assert!(large.is_oom(), "{large}");
        let half = buffer.view(..4).unwrap();
        assert!(matches!(
            misuse(buffer.view(2..6).unwrap().copy_from(&half).unwrap_err()),
            Misuse::CopyOverlap
        ));
        assert_eq!(gpu.main_stream().ticket().unwrap().stamp(), before, "nothing was stamped");
        assert_eq!(buffer.download().unwrap(), [1; 8]);
    }
    assert!(machine.finish().is_clean() && other_machine.finish().is_clean());
}

#[test]
fn a_launch_that_does_not_fit_names_the_parameter_and_both_sides() {
    let (machine, other_machine) = (machine(), machine());
    {
        let (gpu, other) = (runtime(&machine), runtime(&other_machine));
        let kernels = Kernels::load(&gpu);
        let (to, from) = (gpu.upload(&[1_u32; 8]).unwrap(), gpu.upload(&[2_u32; 8]).unwrap());
        gpu.synchronize().unwrap();
        let stamp = || gpu.main_stream().ticket().unwrap().stamp();
        let before = stamp();
        macro_rules! refused {
            ($($call:tt)*) => {{
                let mut launch = gpu.launch(&kernels.mix);
                launch.grid(1).block(1);
                launch$($call)*;
                // SAFETY: the launch is refused before it is queued.
                let error = unsafe { launch.submit() }.unwrap_err();
                assert_eq!(stamp(), before, "nothing was stamped: {error}");
                error
            }};
        }
        let error = refused!(.read_write(&to).read(&from).value(8_u32));
        let expected =
            "kernel `mix` takes 4 arguments, and 3 were given; give one for each parameter, in their order";
        assert_eq!(error.to_string(), expected);
        let error = refused!(.read_write(&to).read(&from).value(8_u32).value(1_u32).value(2_u32));
        assert!(matches!(mismatch(error), Mismatch::Count { wanted: 4, given: 5, .. }));
        let error = refused!(.read(&to).read(&from).value(8_u32).value(1_u32));
        assert!(
            error
                .to_string()
                .contains("parameter 0: it was declared as read, and the kernel reads and writes"),
            "{error}"
        );
        let error = refused!(.value(1_u64).read(&from).value(8_u32).value(1_u32));
        assert!(
            error
                .to_string()
                .contains("parameter 0: it is a pointer, and a whole number of 8 bytes was given"),
            "{error}"
        );
        let error = refused!(.read_write(&to).read(&from).read(&from).value(1_u32));
        assert!(
            error.to_string().contains("parameter 2: it is a value, and a buffer to read was given"),
            "{error}"
        );
        let error = refused!(.read_write(&to).read(&from).value(8_u64).value(1_u32));
        assert!(error.to_string().contains("parameter 2: it has 4 bytes, and 8 were given"), "{error}");
        let error = refused!(.grid(0).read_write(&to).read(&from).value(8_u32).value(1_u32));
        assert!(matches!(mismatch(error), Mismatch::Shape { what: "grid", .. }));
        let error = refused!(.block((1024, 1024)).read_write(&to).read(&from).value(8_u32).value(1_u32));
        assert!(matches!(mismatch(error), Mismatch::Shape { what: "block", .. }));
        let error = refused!(.shared(u32::MAX).read_write(&to).read(&from).value(8_u32).value(1_u32));
        assert!(matches!(mismatch(error), Mismatch::Shared { .. }));
        let error =
            refused!(.cooperative().grid(1_000_000).read_write(&to).read(&from).value(8_u32).value(1_u32));
        assert!(matches!(mismatch(error), Mismatch::CooperativeResidencyExceeded { blocks: 1_000_000, .. }));
        let foreign = other.upload(&[0_u32; 8]).unwrap();
        let error = refused!(.read_write(&to).read(&foreign).value(8_u32).value(1_u32));
        assert!(matches!(misuse(error), Misuse::ForeignBlock { .. }));
        let error = refused!(.on(other.main_stream()).read_write(&to).read(&from).value(8_u32).value(1_u32));
        assert!(matches!(misuse(error), Misuse::ForeignStream { .. }));
    }
    assert!(machine.finish().is_clean() && other_machine.finish().is_clean());
}

#[test]
fn two_writes_of_the_same_bytes_in_one_launch_are_refused() {
    let machine = machine();
    {
        let gpu = runtime(&machine);
        let buffer = gpu.upload(&[1_u32; 8]).unwrap();
        let (low, high) = (buffer.view(0..5).unwrap(), buffer.view(4..8).unwrap());
        let uses = |second: &GpuRef<u32>| {
            let stream = gpu.main_stream();
            gpu.prepare_block_use(stream, &[low.used_as(Access::Write), second.used_as(Access::Write)])
                .map(|used| used.finish())
        };
        assert!(matches!(misuse(uses(&high).err().unwrap()), Misuse::Overlap { first: 0, second: 1 }));
        uses(&buffer.view(5..8).unwrap()).unwrap().unwrap();
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_buffer_of_no_elements_goes_wherever_another_does() {
    let machine = machine();
    {
        let gpu = runtime(&machine);
        let (stream, full) = (gpu.stream().unwrap(), gpu.upload(&[1_u32; 4]).unwrap());
        let handles =
            [gpu.allocate_on::<u32>(&stream, 0).unwrap(), full.view(2..2).unwrap(), full.view(4..).unwrap()];
        for empty in &handles {
            assert_eq!((empty.len(), empty.bytes(), empty.access().unwrap().bytes), (0, 0, 0));
            assert!(empty.cast::<[u8; 3]>().unwrap().is_empty() && empty.view(..).unwrap().is_empty());
            assert!(empty.view(..1).is_err() && empty.upload(&[1]).is_err() && empty.place().is_none());
            empty.upload_on(&stream, &[]).unwrap().wait().unwrap();
            empty.download_into_on(&stream, &mut []).unwrap();
            empty.fill_bytes(1).unwrap().wait().unwrap();
            let (first, raw) =
                (gpu.prepare_first_use(&stream, empty, Access::Write).unwrap(), Access::ReadWrite);
            gpu.finish_first_use(first).unwrap().wait().unwrap();
            drop(gpu.raw_device_ptr(&stream, empty, raw).unwrap());
            gpu.record_block_use(&stream, &[empty.used_as(raw), empty.used_as(raw)]).unwrap();
            let mut recorder = gpu.recorder(&stream);
            recorder.write(empty).write(&handles[0]).write(&full).read(&full);
            recorder.preflight().unwrap().commit().unwrap().wait().unwrap();
            empty.record_write(gpu.main_stream()).unwrap().wait().unwrap();
            assert_eq!(
                full.last_write_stream(),
                LastWrite::Stream(stream.key()),
                "no byte of it is in any of these"
            );
        }
        assert_eq!((full.download().unwrap(), gpu.unfinished_uses()), (vec![1; 4], 0));
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_handle_outlives_its_runtime_and_says_so() {
    let machine = machine();
    let (buffer, stream, ticket) = {
        let gpu = runtime(&machine);
        let buffer = gpu.upload(&[1_u32, 2]).unwrap();
        assert_eq!((buffer.device_id(), buffer.access().unwrap().bytes), (Some(0), 8));
        let stream = gpu.stream().unwrap();
        (buffer, stream, ())
    };
    let () = ticket;
    assert_eq!((buffer.len(), buffer.device_id(), buffer.access()), (2, None, Err(Stale::DeviceDropped)));
    assert!(matches!(buffer.download().unwrap_err().kind(), ErrorKind::Stale(Stale::DeviceDropped)));
    assert!(matches!(misuse(stream.synchronize().unwrap_err()), Misuse::RuntimeGone));
    drop(buffer);
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_ticket_holds_nothing_and_outlives_its_runtime() {
    let machine = Machine::new(MachineConfig::seeded(31));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    let other = DeviceRuntime::simulated(32).unwrap();
    let buffer = gpu.zeros::<u32>(1 << 16).unwrap();
    let ticket = buffer.fill(7).unwrap();
    drop((buffer, gpu));
    // The runtime waited for its work when it went.
    assert!(ticket.is_done().unwrap() && ticket.wait_within(std::time::Duration::ZERO).unwrap());
    ticket.wait().unwrap();
    assert!(kiln::Ticket::wait_all(&[ticket.clone(), ticket.clone()], None).unwrap());
    assert!(
        matches!(other.main_stream().wait_for(&ticket), Err(error) if error.to_string().contains("another runtime"))
    );
    assert!(ticket.handed_event().is_err());
    let (told, heard) = std::sync::mpsc::channel();
    ticket.on_done(move |outcome| told.send(outcome.is_ok()).unwrap());
    assert!(heard.recv().unwrap());
    assert!(machine.finish().is_clean());
}

#[test]
fn more_streams_than_the_order_can_tell_apart_are_refused_before_anything_is_opened() {
    let most = RuntimeConfig::MOST_STREAMS;
    for asked in [most + 1, 1 << 20, usize::MAX] {
        let config = || RuntimeConfig { max_streams: asked, ..RuntimeConfig::default() };
        let (machine, refused) = (machine(), Misuse::TooManyStreams { asked, most });
        let error = DeviceRuntime::from_driver(machine.device(0).unwrap(), config()).unwrap_err();
        assert!(error.to_string().contains("set it to 63 or less"), "{error}");
        assert_eq!(misuse(error), refused);
        assert!(machine.finish().is_clean());
        assert_eq!(misuse(DeviceRuntime::open(&DeviceSpec::simulated(1), config()).unwrap_err()), refused);
    }
    let config = RuntimeConfig { max_streams: most, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine().device(0).unwrap(), config).unwrap();
    let leased: Vec<_> = (0..most).map(|_| gpu.stream().unwrap()).collect();
    assert!(matches!(gpu.stream().unwrap_err().kind(), ErrorKind::StreamsExhausted { limit: 63 }));
    drop(leased);
    assert!(gpu.stream().is_ok());
}

#[test]
fn streams_are_leased_up_to_a_limit_and_come_back() {
    let machine = machine();
    {
        let config = RuntimeConfig { max_streams: 2, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let (first, second) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        assert_ne!(first.id(), second.id());
        let error = gpu.stream().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::StreamsExhausted { limit: 2 }) && error.is_retryable());
        let id = second.id();
        let clone = second.clone();
        drop(second);
        assert!(gpu.stream().is_err(), "a clone still holds it");
        drop(clone);
        assert_eq!(gpu.stream().unwrap().id(), id);
        let urgent = gpu.streams().lease_with_priority(gpu.info().limits.priorities.highest).unwrap();
        assert_eq!(urgent.priority(), gpu.info().limits.priorities.highest);
        assert_ne!(urgent.id(), id, "an idle stream of another priority does not serve");
        assert!(gpu.streams().lease_with_priority(1_000).is_err());
        assert_eq!(gpu.streams().leased(), 2);
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_use_that_is_prepared_and_dropped_is_reported() {
    let machine = machine();
    {
        let gpu = runtime(&machine);
        let buffer = gpu.upload(&[1_u32; 4]).unwrap();
        drop(gpu.prepare_block_use(gpu.main_stream(), &[buffer.used_as(Access::Read)]).unwrap());
        assert_eq!(gpu.unfinished_uses(), 1);
        let mut recorder = gpu.recorder(gpu.main_stream());
        recorder.read(&buffer).write(&buffer).read(&buffer);
        assert_eq!(recorder.len(), 1, "the same bytes merge to the stronger access");
        recorder.preflight().unwrap().commit().unwrap();
        drop(gpu.raw_device_ptr(gpu.main_stream(), &buffer, Access::Read).unwrap());
        assert_eq!(gpu.unfinished_uses(), 1);
        let stream = gpu.stream().unwrap();
        buffer.record_write(&stream).unwrap();
        assert_eq!(buffer.last_write_stream(), LastWrite::Stream(stream.key()));
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}
