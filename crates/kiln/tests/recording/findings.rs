//! Findings of the checks of a simulated device: what loses no device is in the recording, with the lines of the kernel and of the program.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::checking::Findings;
use kiln::trace::{RecordingReader, TraceEvent, TraceStamp, export_perfetto};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use crate::Recorded;

/// `all(y)` lets every block write its number to the first element; `far(y)` writes where no memory is, which loses the device.
const MISTAKES: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry all(.param .u64 y) {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [y];
    mov.u32 %r1, %ctaid.x;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry far(.param .u64 y) {
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [y];
    st.global.u32 [%rd1+1099511627776], 1;
    ret;
}
";

/// A finding of a recording.
#[derive(Clone, PartialEq, Debug)]
struct Found {
    rule: String,
    kernel: String,
    line: Option<String>,
    message: String,
    stamp: Option<TraceStamp>,
    submitted: Option<String>,
    time_ns: u64,
}

/// A submission: its name, its line and when it ended.
type Work = (TraceStamp, String, Option<String>, Option<u64>);

#[derive(Default)]
struct Content {
    found: Vec<Found>,
    more: u64,
    faults: Vec<String>,
    works: Vec<Work>,
}

fn content(file: &Recorded) -> Content {
    let mut content = Content::default();
    file.each(|event| match event {
        TraceEvent::Finding(finding) if finding.more > 0 => content.more += finding.more,
        TraceEvent::Finding(finding) => content.found.push(Found {
            rule: finding.rule.to_owned(),
            kernel: finding.kernel.to_owned(),
            line: finding.line.map(|line| line.to_string()),
            message: finding.message.to_owned(),
            stamp: finding.stamp,
            submitted: finding.submitted.map(|line| line.to_string()),
            time_ns: finding.time_ns,
        }),
        TraceEvent::Fault(fault) => content.faults.push(fault.message.to_owned()),
        TraceEvent::Submission(work) => content.works.push((
            work.stamp,
            work.name.to_owned(),
            work.line.map(|line| line.to_string()),
            work.device.map(|span| span.end_ns),
        )),
        _ => {}
    });
    content
}

/// How many findings a file has that is still written, and may end in the middle of a block.
fn found_so_far(file: &Recorded) -> usize {
    let (mut reader, mut found) = (file.reader(), 0);
    while let Ok(Some(event)) = reader.next_event() {
        found += usize::from(matches!(event, TraceEvent::Finding(_)));
    }
    found
}

fn with_findings(findings: Findings) -> DeviceRuntime {
    let machine = Machine::new(MachineConfig::seeded(7).engine(Arc::new(PtxEngine::default())));
    let config = RuntimeConfig { findings, ..RuntimeConfig::default() };
    DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap()
}

/// Launches a kernel of [`MISTAKES`]; the line of the launch.
fn launch(gpu: &DeviceRuntime, name: &str, y: &GpuRef<u32>) -> String {
    let kernel = gpu.kernel(MISTAKES, name).unwrap();
    let line = line!() + 2;
    // SAFETY: the simulator checks every access; the mistakes are what this is about.
    unsafe { gpu.launch(&kernel).grid(4).block(1).write(y).submit().unwrap() };
    format!("{}:{line}", file!())
}

#[test]
fn a_race_is_recorded_with_the_lines_of_kernel_and_launch_whatever_is_done_with_findings() {
    for setting in [Findings::Fail, Findings::Report] {
        let file = Recorded::new();
        let gpu = with_findings(setting);
        let y = gpu.zeros::<u32>(1).unwrap();
        gpu.trace(&file).unwrap();
        let line = launch(&gpu, "all", &y);
        let read = y.download();
        assert_eq!(read.is_err(), setting == Findings::Fail);
        let told = gpu.findings().findings;
        drop((y, gpu));
        let Content { found, more, faults, works } = content(&file);
        let [race] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((more, &faults[..]), (0, &[][..]), "a finding is no fault");
        assert_eq!((&*race.rule, &*race.kernel), ("race", "all"));
        assert!(race.line.as_deref().unwrap().starts_with("ptx:"), "{race:?}");
        let [told] = &told[..] else { panic!("{told:#?}") };
        assert_eq!(race.message, kiln_trace::text_in_one_line(&told.text));
        assert!(
            race.message.contains("nothing to order them; all at "),
            "lines have a mark between them: {race:?}"
        );
        assert!(race.message.contains("Repeat with") && race.message.contains("seed"), "{race:?}");
        // The work it was found in: what ran under this number, from that line, until then.
        let (stamp, name, submitted, end) = works.iter().find(|work| Some(work.0) == race.stamp).unwrap();
        assert_eq!((Some(*stamp), &**name), (race.stamp, "all"));
        assert_eq!((submitted, submitted.as_deref()), (&race.submitted, Some(&*line)));
        assert_eq!(Some(race.time_ns), *end, "the end of the kernel");
        let explained = file.explained();
        assert_eq!(explained.finding_count, 1);
        let said = format!(
            "\nFindings of the checks:\n  race at {}, in `all` ({line}, stream 0, submission {}): ",
            race.line.as_ref().unwrap(),
            stamp.number
        );
        assert!(explained.to_string().contains(&said), "{said}: {explained}");
        let mut trace = Vec::new();
        export_perfetto(&mut RecordingReader::new(std::fs::File::open(&file).unwrap()).unwrap(), &mut trace)
            .unwrap();
        let has = |text: &str| trace.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(has("findings") && has(&race.message));
    }
}

#[test]
fn what_no_call_told_is_recorded_at_the_end_and_after_a_flush() {
    let file = Recorded::new();
    let gpu = with_findings(Findings::Report);
    let y = gpu.zeros::<u32>(1).unwrap();
    gpu.trace(&file).unwrap();
    launch(&gpu, "all", &y);
    // Nothing waits for it but the end of the runtime.
    drop((y, gpu));
    assert_eq!(content(&file).found.len(), 1);
    let gpu = with_findings(Findings::Report);
    let y = gpu.zeros::<u32>(1).unwrap();
    gpu.trace(&file).unwrap();
    launch(&gpu, "all", &y);
    gpu.synchronize().unwrap();
    gpu.flush_trace().unwrap();
    assert_eq!(content(&file).found.len(), 1, "as a program that is killed leaves it");
}

#[test]
fn a_mistake_without_a_kernel_is_recorded_and_ignored_ones_are_not() {
    for (setting, count) in [(Findings::Fail, 1), (Findings::Ignore, 0)] {
        let file = Recorded::new();
        let gpu = with_findings(setting);
        gpu.trace(&file).unwrap();
        let _ = gpu.allocate::<u32>(4).unwrap().download();
        drop(gpu);
        let Content { found, .. } = content(&file);
        assert_eq!(found.len(), count, "{found:#?}");
        if let [unwritten] = &found[..] {
            assert_eq!((&*unwritten.rule, &*unwritten.kernel), ("read of bytes that were never written", ""));
            assert_eq!(unwritten.line, None);
            assert!(unwritten.submitted.as_deref().unwrap().contains("findings.rs:"), "{unwritten:?}");
        }
    }
}

#[test]
fn what_loses_the_device_is_a_fault_and_not_told_twice() {
    let file = Recorded::new();
    let gpu = with_findings(Findings::Fail);
    let y = gpu.zeros::<u32>(1).unwrap();
    gpu.trace(&file).unwrap();
    launch(&gpu, "far", &y);
    assert!(y.download().unwrap_err().is_lost());
    drop((y, gpu));
    let Content { found, faults, .. } = content(&file);
    assert_eq!((found.len(), faults.len()), (0, 1), "{found:#?} {faults:#?}");
}

#[test]
fn of_very_many_findings_the_rest_is_counted() {
    let file = Recorded::new();
    let gpu = with_findings(Findings::Report);
    gpu.trace(&file).unwrap();
    let unwritten: Vec<_> = (0..300).map(|_| gpu.allocate::<u32>(4).unwrap()).collect();
    for buffer in &unwritten {
        buffer.download().unwrap();
    }
    drop((unwritten, gpu));
    let Content { found, more, .. } = content(&file);
    assert_eq!((found.len(), more), (256, 44));
    let explained = file.explained();
    assert_eq!((explained.findings.len(), explained.findings[0].times), (1, 300), "{explained}");
    assert_eq!(explained.finding_count, 300);
}

#[test]
fn repeats_of_one_finding_leave_room_for_another() {
    let file = Recorded::new();
    let gpu = with_findings(Findings::Report);
    gpu.trace(&file).unwrap();
    let unwritten: Vec<_> = (0..300).map(|_| gpu.allocate::<u32>(4).unwrap()).collect();
    for buffer in &unwritten {
        buffer.download().unwrap();
    }
    let y = gpu.zeros::<u32>(1).unwrap();
    launch(&gpu, "all", &y);
    gpu.synchronize().unwrap();
    drop((unwritten, y, gpu));
    let Content { found, .. } = content(&file);
    assert_eq!(found.iter().filter(|finding| finding.rule == "race").count(), 1, "{}", found.len());
    assert_eq!(file.explained().findings.len(), 2);
}

#[test]
fn a_finding_is_recorded_as_soon_as_its_work_was_waited_for_with_the_line_of_the_launch() {
    for waits in [true, false] {
        let file = Recorded::new();
        let gpu = with_findings(Findings::Report);
        let y = gpu.zeros::<u32>(1).unwrap();
        gpu.trace(&file).unwrap();
        let kernel = gpu.kernel(MISTAKES, "all").unwrap();
        let line = line!() + 3;
        for _ in 0..2 {
            // SAFETY: the simulator checks every access; the mistake is what this is about.
            let ticket = unsafe { gpu.launch(&kernel).grid(4).block(1).write(&y).submit().unwrap() };
            if waits { ticket.wait().unwrap() } else { gpu.synchronize().unwrap() }
        }
        // The thread that writes does so a little later, without any call of the program, which may be killed then.
        let before = Instant::now();
        while found_so_far(&file) < 2 && before.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(found_so_far(&file), 2, "{waits}");
        drop((y, gpu));
        let Content { found, .. } = content(&file);
        let line = format!("{}:{line}", file!());
        assert_eq!(found.len(), 2, "{waits}: {found:#?}");
        for race in &found {
            assert_eq!(race.submitted.as_deref(), Some(&*line), "{waits}: {race:#?}");
        }
    }
}
