//! Ranges and marks for a tool that listens to NVTX. A library stands in for the tool, and writes down what it is told.

use kiln::trace::TraceEvent;
use kiln::{DeviceRuntime, nvtx};

use crate::Recorded;
use crate::machine::{Machine, calls, log};

const TOOL: &str = include_str!("../../../kiln-cuda/tests/on_fake/nvtx/tool.c");
const VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// What the tool was told of ranges and marks, in order.
fn told() -> Vec<String> {
    let words = ["push", "pop", "mark", "wrong-domain"];
    let lines = log().into_iter().filter_map(|line| Some(line.split_once(' ')?.1.to_owned()));
    lines.filter(|line| words.iter().any(|word| line.starts_with(word))).collect()
}

on_machine! {
    fn a_tool_is_told_of_ranges_and_marks_of_the_program() on Machine::fake().with_library(VARIABLE, TOOL) => {
        assert_eq!(*nvtx::attachment(), nvtx::Attachment::Attached);
        let outer = nvtx::range("step");
        {
            let _inner = nvtx::numbered_range("layer", 7);
            nvtx::mark("half\0way");
        }
        drop(outer);
        assert_eq!(told(), ["push step -1", "push layer 7", "mark half 0", "pop - 0", "pop - 0"]);
        assert_eq!(calls("domain"), ["kiln 0"], "once");
    }

    fn a_tool_is_told_of_named_submissions_with_their_numbers() on Machine::fake().with_library(VARIABLE, TOOL) => {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let stream = gpu.stream().unwrap();
        let buffer = gpu.allocate_on::<u32>(&stream, 8).unwrap();
        let begun = told().len();
        let ticket = buffer.fill_on(&stream, 7).unwrap();
        let number = ticket.stamp().number;
        assert_eq!(told()[begun..], [format!("push fill {number}"), "pop - 0".to_owned()]);
        // Recorded as well.
        let file = Recorded::new();
        gpu.trace(&file).unwrap();
        let begun = told().len();
        buffer.fill_on(&stream, 8).unwrap();
        assert_eq!(told()[begun..], [format!("push fill {}", number + 1), "pop - 0".to_owned()]);
        drop((buffer, stream, gpu));
        let mut fills = 0;
        file.each(|event| fills += u32::from(matches!(event, TraceEvent::Submission(work) if work.name == "fill")));
        assert_eq!(fills, 1);
    }

    fn a_tool_that_refuses_or_is_no_tool_is_told_of_and_costs_nothing()
    on Machine::fake().with_library(VARIABLE, TOOL).with("FAKE_NVTX_REFUSES", "1") => {
        let nvtx::Attachment::Failed(why) = nvtx::attachment() else { panic!("it refuses") };
        assert!(why.contains("refused to start") && why.contains(VARIABLE), "{why}");
        let gpu = DeviceRuntime::simulated(1).unwrap();
        drop((nvtx::range("step"), gpu.upload(&[1_u32]).unwrap()));
        assert_eq!(told(), [""; 0]);
    }

    fn a_file_that_is_no_tool_is_named() on Machine::fake().with(VARIABLE, "/nonexistent/tool.so") => {
        let nvtx::Attachment::Failed(why) = nvtx::attachment() else { panic!("it is not there") };
        assert!(why.contains("/nonexistent/tool.so cannot be loaded"), "{why}");
        nvtx::mark("nothing");
    }
}

#[test]
fn without_a_tool_nothing_is_told() {
    // Tests of this file that have one run in other processes.
    if std::env::var_os(VARIABLE).is_none() {
        assert_eq!(*nvtx::attachment(), nvtx::Attachment::NoTool);
        assert!(!nvtx::is_attached());
        assert_eq!(crate::counted_allocations::allocations(|| drop(nvtx::range("step"))), 0);
    }
}
