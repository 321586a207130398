//! Views and casts: one block under several names, in order byte by byte and no more than that.

use std::sync::Arc;

use kiln::{
    DeviceRuntime, GpuRef, RuntimeConfig, Stream,
    buffer::{Element, LastWrite},
};
use kiln_driver::call::CallKind;
use kiln_driver::layer::{CommandKind, Counting, Layered};
use kiln_driver::{Access, Command, Pattern};
use kiln_sim::{Machine, MachineConfig};

const SEEDS: u64 = 20;

struct Scene {
    driver: Arc<Layered<Counting>>,
    gpu: DeviceRuntime,
    streams: [Stream; 3],
}

impl Scene {
    /// Runs a program for some seeds; the device must find nothing.
    fn run(program: impl Fn(&Self)) {
        for seed in 0..SEEDS {
            let machine = Machine::new(MachineConfig::seeded(seed));
            {
                let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
                let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
                let streams = [(); 3].map(|()| gpu.stream().unwrap());
                program(&Self { driver, gpu, streams });
            }
            let report = machine.finish();
            assert!(report.is_clean(), "{report}");
        }
    }

    /// Zeros that no thread has to wait for.
    fn zeros(&self, len: usize) -> GpuRef<u32> {
        let buffer = self.gpu.zeros(len).unwrap();
        self.gpu.synchronize().unwrap();
        buffer
    }

    /// Writes a byte all over a handle, on a stream; how many waits that took.
    fn write<T: Element>(&self, stream: usize, to: &GpuRef<T>, byte: u8) -> u64 {
        self.waits(|| {
            let stream = &self.streams[stream];
            let used = self.gpu.prepare_block_use(stream, &[to.used_as(Access::Write)]).unwrap();
            let (to, count) = (to.place().unwrap(), to.bytes());
            self.gpu
                .driver()
                .submit(used.stream(), &Command::Fill { to, pattern: Pattern::U8(byte), count })
                .unwrap();
            used.finish().unwrap();
        })
    }

    /// Reads a handle on a stream; how many waits that took.
    fn read<T: Element>(&self, stream: usize, from: &GpuRef<T>) -> u64 {
        self.waits(|| {
            let uses = [from.used_as(Access::Read)];
            self.gpu.prepare_block_use(&self.streams[stream], &uses).unwrap().finish().unwrap();
        })
    }

    fn waits(&self, work: impl FnOnce()) -> u64 {
        let before = self.driver.layer().counts();
        work();
        self.driver.layer().counts().since(&before).submitted(CommandKind::Wait)
    }
}

#[test]
fn views_that_share_no_byte_wait_for_nothing_of_each_other() {
    Scene::run(|scene| {
        let whole = scene.zeros(12);
        let [low, middle, high] = [0..4, 4..8, 8..12].map(|range| whole.view(range).unwrap());
        for _ in 0..3 {
            for (stream, view) in [&low, &middle, &high].into_iter().enumerate() {
                assert_eq!(scene.write(stream, view, 1), 0);
            }
        }
        // One element of the neighbour's is one wait, and the whole is one for each of the others.
        assert_eq!(scene.write(0, &whole.view(3..5).unwrap(), 2), 1);
        assert_eq!(scene.read(1, &whole), 2);
        let seen = whole.download().unwrap();
        assert_eq!(seen[..3], [0x0101_0101; 3]);
        assert_eq!(seen[3..5], [0x0202_0202; 2]);
        assert_eq!(seen[5..], [0x0101_0101; 7]);
    });
}

#[test]
fn a_cast_is_in_order_with_what_it_was_cast_from() {
    Scene::run(|scene| {
        let words = scene.zeros(8);
        let before = scene.driver.layer().counts();
        let bytes = words.cast::<u8>().unwrap();
        let pairs = words.view(4..).unwrap().cast::<[u32; 2]>().unwrap();
        assert_eq!(scene.driver.layer().counts().since(&before).total(), 0, "nothing is copied");
        assert_eq!((bytes.len(), pairs.len(), pairs.block_id()), (32, 2, words.block_id()));
        assert_eq!(scene.write(0, &words, 1), 0);
        // Bytes 16 to 32 under another type, on another stream: after the write above.
        assert_eq!(scene.write(1, &pairs, 2), 1);
        // A byte of the first half has nothing to do with that.
        assert_eq!(scene.read(0, &bytes.view(3..4).unwrap()), 0);
        // The last byte of the second half has.
        assert_eq!(scene.read(2, &bytes.view(31..).unwrap()), 1);
        assert_eq!(bytes.download().unwrap(), [[1_u8; 16], [2; 16]].concat());
        let floats = words.cast::<f32>().unwrap().download().unwrap();
        assert_eq!(floats.map_bits(), words.download().unwrap());
        // There and back again is the same handle.
        let again = bytes.cast::<u32>().unwrap();
        assert_eq!((again.len(), again.access()), (words.len(), words.access()));
    });
}

trait MapBits {
    fn map_bits(&self) -> Vec<u32>;
}

impl MapBits for Vec<f32> {
    fn map_bits(&self) -> Vec<u32> {
        self.iter().map(|each| each.to_bits()).collect()
    }
}

#[test]
fn readers_of_one_range_hold_back_its_writer_and_no_other() {
    Scene::run(|scene| {
        let whole = scene.zeros(8);
        let (low, high) = (whole.view(..4).unwrap(), whole.view(4..).unwrap());
        assert_eq!((scene.read(0, &low), scene.read(1, &low)), (0, 0));
        assert_eq!(scene.write(2, &high, 1), 0, "no thread reads these bytes");
        assert_eq!(scene.write(2, &low, 2), 2, "both readers are waited for");
        let expected = [[0x0202_0202; 4], [0x0101_0101; 4]].concat();
        assert_eq!(whole.download().unwrap(), expected);
    });
}

#[test]
fn a_view_keeps_its_block_and_the_last_of_them_frees_it_without_waiting() {
    Scene::run(|scene| {
        let whole = scene.zeros(1024);
        let held = scene.gpu.bytes_outstanding();
        let (low, bytes) = (whole.view(..4).unwrap(), whole.view(4..).unwrap().cast::<u8>().unwrap());
        scene.write(0, &low, 7);
        scene.write(1, &bytes, 8);
        drop((whole, bytes));
        assert_eq!(scene.gpu.bytes_outstanding(), held, "a view of sixteen bytes holds all of them");
        assert_eq!(low.download().unwrap(), [0x0707_0707; 4]);
        let before = scene.driver.layer().counts();
        drop(low);
        assert_eq!(scene.driver.layer().counts().since(&before).of(CallKind::Wait), 0);
        scene.gpu.synchronize().unwrap();
        scene.gpu.reap_pending().unwrap();
        assert_eq!(scene.gpu.bytes_outstanding(), 0);
    });
}

#[test]
fn every_kind_of_element_can_be_filled_copied_and_seen_in_part() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(gpu: &DeviceRuntime, value: T, other: T) {
        let buffer = gpu.upload(&[value; 9]).unwrap();
        let copy = gpu.allocate::<T>(9).unwrap();
        copy.copy_from(&buffer).unwrap();
        copy.view(3..5).unwrap().fill(other).unwrap();
        let mut expected = [value; 9];
        expected[3..5].fill(other);
        assert_eq!(copy.download().unwrap(), expected);
        let mut into = [other; 2];
        copy.view(4..6).unwrap().download_into(&mut into).unwrap();
        assert_eq!(into, [other, value]);
        assert_eq!(buffer.download().unwrap(), [value; 9], "the copy is another block");
    }
    Scene::run(|Scene { gpu, .. }| {
        check(gpu, 1_u8, 2);
        check(gpu, -1_i16, 2);
        check(gpu, 1_u64 << 40 | 3, 5);
        check(gpu, 1.5_f64, -2.5);
        check(gpu, half::f16::from_f32(1.5), half::f16::from_f32(-2.0));
        check(gpu, half::bf16::from_f32(1.5), half::bf16::from_f32(-2.0));
        check(gpu, num_complex::Complex::new(1.0_f32, -1.0), num_complex::Complex::new(0.5, 2.0));
        check(gpu, num_complex::Complex::new(1.0_f64, -1.0), num_complex::Complex::new(0.5, 2.0));
        check(gpu, [1.0_f32, 2.0], [3.0, 4.0]);
        check(gpu, [1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]);
        check(gpu, [half::f16::from_f32(1.0); 4], [half::f16::from_f32(2.0); 4]);
        check(gpu, [1_u64, 2], [3, 4]);
    });
}

#[test]
fn elements_that_need_more_than_the_usual_alignment_get_it() {
    #[repr(C, align(4096))]
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Page([u32; 1024]);
    // SAFETY: words that fill the struct to the last byte, of which every pattern is a value, and zero is one.
    unsafe impl bytemuck::Zeroable for Page {}
    // SAFETY: as above.
    unsafe impl bytemuck::Pod for Page {}
    Scene::run(|scene| {
        let small = scene.gpu.upload(&[1_u8; 3]).unwrap();
        let page = scene.gpu.upload(&[Page([7; 1024])]).unwrap();
        let address = page.access().unwrap().address.0;
        assert!(address.is_multiple_of(4096), "{address:#x}");
        assert_eq!(
            (page.download().unwrap(), small.download().unwrap()),
            (vec![Page([7; 1024])], vec![1; 3])
        );
    });
}

#[test]
fn the_last_writer_is_who_wrote_and_not_who_made_room() {
    Scene::run(|scene| {
        let Scene { gpu, streams, .. } = scene;
        // So that the stream has a number that the memory could be taken to be written by.
        gpu.zeros::<u32>(1).unwrap();
        let buffer = gpu.allocate::<u32>(8).unwrap();
        assert_eq!(buffer.last_write_stream(), LastWrite::Never);
        let low = buffer.view(..4).unwrap();
        scene.write(1, &low, 1);
        assert_eq!(
            buffer.last_write_stream(),
            LastWrite::Stream(streams[1].key()),
            "the rest is as it was made"
        );
        scene.write(2, &buffer.view(4..).unwrap(), 2);
        assert_eq!(buffer.last_write_stream(), LastWrite::SeveralStreams);
        scene.write(0, &buffer, 3);
        assert_eq!(buffer.last_write_stream(), LastWrite::Stream(streams[0].key()));
    });
}

#[test]
fn another_stream_with_the_same_key_is_not_the_last_writer() {
    for seed in 0..4 {
        let machine = Machine::new(MachineConfig::seeded(seed));
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        let buffer = gpu.allocate::<u32>(8).unwrap();
        let writer = gpu.stream().unwrap();
        let key = writer.key();
        buffer.fill_on(&writer, 1).unwrap();
        assert_eq!(buffer.last_write_stream(), LastWrite::Stream(key));
        assert_eq!(gpu.streams().find(key).as_ref(), Some(&writer));
        drop(writer);
        assert_eq!((buffer.last_write_stream(), gpu.streams().find(key)), (LastWrite::StreamGone, None));

        let next = gpu.stream().unwrap();
        assert_eq!(next.key(), key, "the key is used again");
        assert_eq!(buffer.last_write_stream(), LastWrite::StreamGone, "and its new stream wrote nothing");
        assert_eq!(gpu.streams().find(key).as_ref(), Some(&next));
        buffer.view(..2).unwrap().fill_on(&next, 2).unwrap();
        assert_eq!(buffer.last_write_stream(), LastWrite::Stream(key));

        let main = gpu.main_stream();
        assert_eq!(gpu.streams().find(main.key()).as_ref(), Some(main));
        buffer.fill_on(main, 3).unwrap();
        assert_eq!(buffer.last_write_stream().stream(), Some(main.key()));
        drop(gpu);
        assert_eq!(buffer.last_write_stream(), LastWrite::StreamGone);
    }
}
