//! Every kernel of the table through the runtime: on the simulated device, and on a GPU where there is one.
//!
//! The body is the same for both. A case is run on the device under test, compiled there from CUDA C where NVRTC and the headers are
//! found, and on a simulated device from the PTX that is kept with the table. Both must agree with the oracle and with each other:
//! integers and IEEE operations bit for bit, approximations within what the case states. Where `OUT` names a folder the results are
//! written there as a table.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise"
)]

mod alone;
mod beside;
mod hopper;
mod instructions;
mod kept_code;
mod machine_code;
mod matrix;
mod row;
mod stage;

use kiln::code_cache::CachePlace;
use kiln::probe::TestGate;
use kiln_kernels::{Case, Ending, cases};

use row::Row;
use stage::{CodeFolder, Form, Kind, Stage};

/// Inputs are made from each of these.
const SEEDS: [u64; 2] = [1, 77];

/// Runs the table on a kind of device; the wrong ones are listed together.
fn judge_all(kind: Kind) {
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    // A GPU's context is opened once; a simulated device is each case's own.
    let code = CodeFolder::new(kind.name());
    let shared = (kind == Kind::Cuda).then(|| Stage::open(kind, 0, &code.0));
    for case in cases() {
        // What prints does so on the output of its process, and what faults takes its process along.
        let judged = if case.ending != Ending::Done || case.prints() {
            alone::judge(case, kind)
        } else {
            match &shared {
                Some(stage) => judge(case, stage),
                None => judge(case, &Stage::open(kind, 5, &code.0)),
            }
        };
        match judged {
            Ok(row) => rows.push(row),
            Err(text) => wrong.push(format!("{}: {text}", case.name)),
        }
    }
    row::write(kind, &rows, &wrong);
    assert!(wrong.is_empty(), "{} of {} kernels:\n{}", wrong.len(), cases().len(), wrong.join("\n"));
}

/// What is wrong with a case on a device, if anything.
fn judge(case: &Case, stage: &Stage) -> Result<Row, String> {
    let mut row = Row::new(case);
    for seed in SEEDS {
        let arguments = case.arguments(seed);
        let (actual, form) = stage.run(case, &arguments).map_err(|error| stage.explain(&error))?;
        let twin = Stage::open(Kind::Simulated, seed, &CachePlace::Off);
        let simulated =
            twin.run_ptx(case, &arguments).map_err(|error| format!("simulated: {}", twin.explain(&error)))?;
        case.expected(&arguments)
            .compare(&simulated)
            .map_err(|text| format!("simulated, seed {seed}: {text}"))?;
        case.expected(&arguments).compare(&actual).map_err(|text| format!("seed {seed}: {text}"))?;
        simulated.compare(&actual).map_err(|text| format!("against the simulator, seed {seed}: {text}"))?;
        row.add(form, &simulated, &actual);
        twin.assert_clean();
    }
    stage.assert_clean();
    Ok(row)
}

#[test]
fn every_kernel_agrees_with_its_oracle_and_another_order_on_the_simulated_device() {
    judge_all(Kind::Simulated);
}

#[test]
fn every_kernel_agrees_with_its_oracle_and_the_simulator_on_a_gpu() {
    match kiln::probe::gpu_for_test("every_kernel_agrees_with_its_oracle_and_the_simulator_on_a_gpu").unwrap()
    {
        TestGate::Skipped(absence) => println!("skipped: {absence}"),
        TestGate::Ready(gpu) if gpu.info().kind == kiln_driver::DeviceKind::Simulated => {
            println!("skipped: the policy asks for a simulated device");
        }
        TestGate::Ready(_) => judge_all(Kind::Cuda),
    }
}

/// Another test of this binary starts it for one case.
#[test]
#[ignore = "helper process"]
fn one_case_alone() {
    alone::run();
}

#[test]
fn cuda_c_is_what_runs_where_its_compiler_is_there() {
    let case = cases().iter().find(|case| case.name == "saxpy").unwrap();
    let (_, form) = Stage::open(Kind::Simulated, 1, &CachePlace::Off).run(case, &case.arguments(1)).unwrap();
    let there = kiln::libraries::find(kiln::libraries::Library::Nvrtc).is_ok();
    assert_eq!(form, if there { Form::CudaC } else { Form::Ptx });
}
