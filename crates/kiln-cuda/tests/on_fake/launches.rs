//! Launches: what reaches the driver, and what is refused on the way.

use kiln_driver::{Command, Dim3, Driver, DriverExt, LaunchCommand, Refusal, Result, Submission};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, launch, set_arguments};

fn submit(bench: &Bench, launch: LaunchCommand<'_>) -> Result<Submission> {
    bench.device.submit(bench.stream, &Command::Launch(launch))
}

on_machine! {
    fn a_kernel_gets_its_packed_arguments() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(16);
        bench.device.fill(bench.stream, memory.id.into(), 0, 16).unwrap();
        let arguments = set_arguments(memory, 0x0101_0101, 3);
        let shape = LaunchCommand { grid: Dim3::new(2, 3, 4), block: Dim3::new(5, 6, 7), ..launch(&bench.function("set"), &arguments) };
        submit(&bench, shape).unwrap();
        assert_eq!(bench.read(memory.id, 16), [[1u8; 12].as_slice(), &[0; 4]].concat());
        assert_eq!(calls("cuLaunchKernel"), ["set 2x3x4 5x6x7 0"]);
    }

    fn wide_parameters_are_given_one_by_one() on Machine::fake() => {
        let bench = Bench::new();
        let function = bench.function("first_of");
        let spans = function.attributes.parameters.clone().unwrap();
        // As on an H200: the offset is 64 bytes aligned where the parameters begin, which is not at such a multiple.
        assert_eq!(spans.iter().map(|span| (span.offset, span.bytes)).collect::<Vec<_>>(), [(0, 8), (48, 128)]);
        let memory = bench.memory(4);
        let mut arguments = vec![0; 176];
        arguments[..8].copy_from_slice(&memory.address.0.to_ne_bytes());
        arguments[48..52].copy_from_slice(&[1, 2, 3, 4]);
        submit(&bench, launch(&function, &arguments)).unwrap();
        assert_eq!(bench.read(memory.id, 4), [1, 2, 3, 4]);
        arguments[48..52].copy_from_slice(&[5, 6, 7, 8]);
        let shaped = LaunchCommand { cooperative: true, ..launch(&function, &arguments) };
        submit(&bench, shaped).unwrap();
        assert_eq!(bench.read(memory.id, 4), [5, 6, 7, 8]);
    }

    fn arguments_of_another_size_are_refused() on Machine::fake() => {
        let bench = Bench::new();
        let (set, nothing) = (bench.function("set"), bench.function("nothing"));
        for bytes in [0, 15, 17, 5000, 40_000] {
            let arguments = vec![0; bytes];
            assert!(submit(&bench, launch(&set, &arguments)).unwrap_err().is_refused(), "{bytes}");
        }
        assert!(submit(&bench, launch(&nothing, &[0])).unwrap_err().is_refused());
        assert!(submit(&bench, launch(&nothing, &[])).is_ok());
    }

    fn shapes_outside_of_the_limits_are_refused() on Machine::fake() => {
        let bench = Bench::new();
        let nothing = bench.function("nothing");
        let plain = launch(&nothing, &[]);
        for (grid, block) in [
            ((0, 1, 1), (1, 1, 1)),
            ((1, 1, 1), (1, 0, 1)),
            ((1, 65_536, 1), (1, 1, 1)),
            ((1, 1, 1), (1, 1, 65)),
            ((1, 1, 1), (513, 1, 1)),
            ((1, 1, 1), (32, 32, 1)),
            ((u32::MAX, 1, 1), (1, 1, 1)),
        ] {
            let error = submit(&bench, LaunchCommand { grid: grid.into(), block: block.into(), ..plain }).unwrap_err();
            assert!(matches!(error.refusal(), Some(Refusal::Invalid { .. })), "{error}");
        }
        assert_eq!(bench.device.progress(bench.stream).unwrap().submitted, Submission(0));
    }

    fn shared_memory_is_opted_into_once() on Machine::fake() => {
        let bench = Bench::new();
        let nothing = bench.function("nothing");
        let with = |bytes| submit(&bench, LaunchCommand { dynamic_shared_bytes: bytes, ..launch(&nothing, &[]) });
        for bytes in [0, 49_152, 60_000, 50_000, 60_000, 70_000, 99_000] {
            with(bytes).unwrap();
        }
        assert_eq!(calls("cuFuncSetAttribute"), ["8 60000", "8 70000", "8 99000"]);
        assert!(with(99_001).unwrap_err().is_refused());
        assert_eq!(calls("cuFuncSetAttribute").len(), 3);
    }

    fn a_cooperative_launch_that_cannot_fit_is_refused() on Machine::fake() => {
        let bench = Bench::new();
        let nothing = bench.function("nothing");
        let cooperative = LaunchCommand { cooperative: true, block: 512.into(), ..launch(&nothing, &[]) };
        submit(&bench, LaunchCommand { grid: 16.into(), ..cooperative }).unwrap();
        let error = submit(&bench, LaunchCommand { grid: 17.into(), ..cooperative }).unwrap_err();
        assert_eq!(error.refusal(), Some(&Refusal::CooperativeResidencyExceeded { blocks: 17, limit: 16 }));
        assert_eq!(calls("cuLaunchKernelEx"), ["nothing cooperative 1 cluster 0"]);
    }

    fn the_drivers_own_word_on_residency_counts() on Machine::fake().plan("cuLaunchKernelEx=720") => {
        let bench = Bench::new();
        let nothing = bench.function("nothing");
        let error = submit(&bench, LaunchCommand { cooperative: true, ..launch(&nothing, &[]) }).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::CooperativeResidencyExceeded { .. })), "{error}");
    }

    fn clusters_divide_the_grid() on Machine::fake() => {
        let bench = Bench::new();
        let nothing = bench.function("nothing");
        let clustered = |grid: u32, cluster: Dim3| {
            submit(&bench, LaunchCommand { grid: grid.into(), cluster: Some(cluster), ..launch(&nothing, &[]) })
        };
        clustered(8, 4.into()).unwrap();
        assert_eq!(calls("cuLaunchKernelEx"), ["nothing cooperative 0 cluster 4"]);
        for (grid, cluster) in [(8, 3.into()), (9, 9.into()), (8, 0.into()), (8, (1, 2).into())] {
            assert!(clustered(grid, cluster).unwrap_err().is_refused());
        }
        let both = LaunchCommand { grid: 32.into(), cluster: Some(4.into()), cooperative: true, ..launch(&nothing, &[]) };
        let error = submit(&bench, both).unwrap_err();
        assert_eq!(error.refusal(), Some(&Refusal::CooperativeResidencyExceeded { blocks: 32, limit: 16 }));
    }

    fn too_few_resources_are_a_refusal_in_words() on Machine::fake().plan("cuLaunchKernel=701@1") => {
        let bench = Bench::new();
        let error = bench.run("nothing").unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Invalid { .. })), "{error}");
        assert_eq!(bench.run("nothing").unwrap(), Submission(1));
    }

    fn numbers_say_the_order_of_the_driver_whatever_threads_do() on Machine::fake() => {
        let bench = Bench::new();
        let nothing = bench.function("nothing");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut last = Submission(0);
                    for _ in 0..50 {
                        let next = submit(&bench, launch(&nothing, &[])).unwrap();
                        assert!(next > last);
                        last = next;
                    }
                });
            }
        });
        assert_eq!(bench.device.progress(bench.stream).unwrap().submitted, Submission(200));
        assert_eq!(calls("cuLaunchKernel").len(), 200);
    }
}
