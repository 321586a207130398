//! One program through every mode.

use kiln_driver::*;
use kiln_sim::*;

fn library() -> KernelLibrary {
    KernelLibrary::new("demo").kernel(
        HostKernel::new("axpy")
            .value::<f32>()
            .pointer(Access::Read)
            .pointer(Access::ReadWrite)
            .value::<u32>()
            .body(|launch| {
                let (a, x, y) = (launch.value::<f32>(0)?, launch.address(1)?, launch.address(2)?);
                let mut port = launch.port();
                for at in 0..u64::from(launch.value::<u32>(3)?).min(launch.threads()) {
                    let sum = a * port.load::<f32>(x + 4 * at)? + port.load::<f32>(y + 4 * at)?;
                    port.store(y + 4 * at, sum)?;
                }
                Ok(())
            }),
    )
}

fn axpy(machine: &Machine) -> Result<Vec<f32>> {
    let device = machine.device(0)?;
    let module = device.load(&Image::HostKernels("demo"))?;
    let function = device.function(module, "axpy")?;
    let streams = [
        device.create_stream(StreamRequest::New { priority: 0 })?,
        device.create_stream(StreamRequest::New { priority: -1 })?,
    ];
    let n = 100u32;
    let bytes = u64::from(n) * 4;
    let x = device.allocate(MemoryRequest::Direct { bytes })?;
    let y = device.allocate(MemoryRequest::Pool { bytes, stream: streams[1] })?;
    let host = device.allocate_host(bytes)?;
    let data: Vec<u8> = (0..n).flat_map(|at| (at as f32).to_le_bytes()).collect();
    assert!(host.write(0, &data));
    device.upload(streams[0], &host, x.id.into(), bytes)?;
    let event = device.create_event(EventRequest::Timed)?;
    device.order(streams[0], event, streams[1])?;
    device.submit(
        streams[1],
        &Command::Fill { to: y.id.into(), pattern: Pattern::U32(1f32.to_bits()), count: 100 },
    )?;
    let mut arguments = 2f32.to_le_bytes().to_vec();
    arguments.extend([0; 4]);
    arguments.extend(x.address.0.to_le_bytes());
    arguments.extend(y.address.0.to_le_bytes());
    arguments.extend(n.to_le_bytes());
    let launch = Launch {
        function: function.id,
        grid: 1.into(),
        block: 128.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &arguments,
        // SAFETY: the kernel indexes both blocks below their length.
        vouched: unsafe { Vouched::new() },
    };
    device.submit(streams[1], &Command::Launch(launch))?;
    device.download(streams[1], y.id.into(), &host, bytes)?;
    device.free(y.id, Some(streams[1]))?;
    device.synchronize(streams[1])?;
    let mut back = vec![0; bytes as usize];
    assert!(host.read(0, &mut back));
    device.free(x.id, None)?;
    for stream in streams {
        device.destroy(stream.into())?;
    }
    device.destroy(event.into())?;
    device.destroy(module.into())?;
    device.destroy(host.id().into())?;
    Ok(back.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap_or_default())).collect())
}

#[test]
fn axpy_everywhere() {
    for seed in 0..100 {
        let machine = Machine::new(MachineConfig::seeded(seed).library(library()));
        let back = axpy(&machine).unwrap();
        assert!(back.iter().enumerate().all(|(at, value)| *value == 2.0 * at as f32 + 1.0));
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
    let machine = Machine::new(MachineConfig::threaded().library(library()));
    let back = axpy(&machine).unwrap();
    assert!(back.iter().enumerate().all(|(at, value)| *value == 2.0 * at as f32 + 1.0));
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
    let seen = explore(MachineConfig::seeded(0).library(library()), 10_000, |machine| {
        axpy(machine).unwrap().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
    });
    assert_eq!(seen.verdict, Verdict::Complete);
    assert_eq!(seen.outcomes.len(), 1);
    assert_eq!(seen.runs_with_findings, 0);
    println!("{} runs", seen.runs);
}
