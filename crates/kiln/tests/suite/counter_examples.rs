//! Programs that other runtimes get wrong. Each is run for many seeds of the simulated device, and where a single rule is what makes it
//! right, once more without that rule, which must be found out. The fourth of them, a reader between another's check and publication,
//! needs two threads and stands in `order_threads.rs`.

use kiln::order::Mutation;
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, Stream, buffer::LastWrite};
use kiln_sim::{Machine, MachineConfig};

use crate::order::kernels::{Kernels, library};

const LEN: usize = 64;
const SEEDS: u64 = 60;

struct Scene {
    gpu: DeviceRuntime,
    kernels: Kernels,
}

impl Scene {
    /// `to = a ^ rotl(b, 1)` on a stream.
    fn join(&self, stream: &Stream, to: &GpuRef<u32>, a: &GpuRef<u32>, b: &GpuRef<u32>) {
        let mut launch = self.gpu.launch(&self.kernels.join);
        launch.grid(1).block(1);
        launch.on(stream).write(to).read(a).read(b).value(LEN as u32);
        // SAFETY: the kernel touches `LEN` elements, which all three have.
        unsafe { launch.submit() }.unwrap();
    }

    fn buffer(&self, value: u32) -> GpuRef<u32> {
        self.gpu.upload(&[value; LEN]).unwrap()
    }
}

/// Runs a program for every seed; what the first seed that shows something shows.
fn first_finding(mutation: Option<Mutation>, program: impl Fn(&Scene) -> bool) -> Option<String> {
    (0..SEEDS).find_map(|seed| {
        let machine = Machine::new(MachineConfig::seeded(seed).library(library()));
        let right = {
            let config = RuntimeConfig { mutation, ..RuntimeConfig::default() };
            let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
            program(&Scene { kernels: Kernels::load(&gpu), gpu })
        };
        let report = machine.finish();
        (!right || !report.is_clean()).then(|| format!("seed {seed}: right: {right}, {report}"))
    })
}

#[test]
fn two_readers_on_different_streams_then_a_writer() {
    let program = |scene: &Scene| {
        let (source, first, second) = (scene.buffer(1), scene.buffer(0), scene.buffer(0));
        let [a, b, c] = [(); 3].map(|()| scene.gpu.stream().unwrap());
        scene.join(&a, &first, &source, &source);
        scene.join(&b, &second, &source, &source);
        source.upload_on(&c, &[9; LEN]).unwrap();
        let expected = [1 ^ 2; LEN];
        first.download().unwrap() == expected && second.download().unwrap() == expected
    };
    assert_eq!(first_finding(None, program), None);
    let rule = Mutation::ReaderPerStream;
    assert!(first_finding(Some(rule), program).is_some(), "the second reader may erase the first, unnoticed");
}

#[test]
fn the_last_stream_is_dropped_while_its_work_runs() {
    let program = |scene: &Scene| {
        let (source, result) = (scene.buffer(3), scene.buffer(0));
        let stream = scene.gpu.stream().unwrap();
        let scratch = scene.gpu.allocate_on::<u32>(&stream, LEN).unwrap();
        scene.join(&stream, &scratch, &source, &source);
        scene.join(&stream, &result, &scratch, &source);
        // The stream goes, and its block with it; then the memory they used is wanted again.
        drop((stream, scratch));
        let reused = scene.buffer(77);
        let expected = [(3 ^ 6) ^ 6; LEN];
        result.download().unwrap() == expected && reused.download().unwrap() == [77; LEN]
    };
    assert_eq!(first_finding(None, program), None);
    let rule = Mutation::UseBeforeFree;
    let other_stream = |scene: &Scene| {
        let (source, stream) = (scene.buffer(3), scene.gpu.stream().unwrap());
        let scratch = scene.buffer(0);
        scene.join(&stream, &scratch, &source, &source);
        drop((stream, scratch));
        scene.buffer(77).download().unwrap() == [77; LEN]
    };
    assert_eq!(first_finding(None, other_stream), None);
    assert!(
        first_finding(Some(rule), other_stream).is_some(),
        "a block may be freed under its work, unnoticed"
    );
}

#[test]
fn everything_is_dropped_while_work_runs() {
    let program = |scene: &Scene| {
        let (source, result) = (scene.buffer(3), scene.buffer(0));
        let stream = scene.gpu.stream().unwrap();
        (0..8).for_each(|_| scene.join(&stream, &result, &source, &source));
        true
    };
    assert_eq!(first_finding(None, program), None);
}

#[test]
fn a_non_owner_writes_before_the_owners_next_use() {
    let program = |scene: &Scene| {
        let (owner, other) = (scene.gpu.stream().unwrap(), scene.gpu.stream().unwrap());
        let owned = scene.gpu.allocate_on::<u32>(&owner, LEN).unwrap();
        let (source, result) = (scene.buffer(5), scene.buffer(0));
        owned.upload_on(&owner, &[1; LEN]).unwrap();
        scene.join(&other, &owned, &source, &source);
        // The owner's next use names no stream: it runs at home and must come after the other's write.
        assert_eq!(owned.last_write_stream(), LastWrite::Stream(other.key()));
        let mut launch = scene.gpu.launch(&scene.kernels.join);
        launch.grid(1).block(1);
        launch.on(&owner).write(&result).read(&owned).read(&owned).value(LEN as u32);
        // SAFETY: the kernel touches `LEN` elements, which all three have.
        unsafe { launch.submit() }.unwrap();
        let seen = owned.download().unwrap();
        let joined = 5_u32 ^ 10;
        seen == [joined; LEN] && result.download().unwrap() == [joined ^ (joined << 1); LEN]
    };
    assert_eq!(first_finding(None, program), None);
    let rule = Mutation::ReadAfterWrite;
    assert!(first_finding(Some(rule), program).is_some(), "the owner may read too early, unnoticed");
}
