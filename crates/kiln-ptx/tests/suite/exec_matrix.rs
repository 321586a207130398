//! Tensor cores give, bit for bit, what an H200 gave.

use kiln_kernels::{
    MatrixProbe, TensorProbe, matrix_probes, recorded_matrices, recorded_tensors, tensor_probes,
};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

/// The results of one probe here.
fn run(probe: &MatrixProbe, seed: u64, options: &Options<'_>) -> Result<Vec<u8>, String> {
    let program = ExecProgram::new(PtxModule::parse(&probe.module()).unwrap());
    let mut memory = SimpleMemory::new();
    let bytes = probe.result_bytes() as u64;
    let (from, to) = (memory.allocate_with(&probe.inputs(seed)), memory.allocate(bytes));
    let arguments = [from.to_le_bytes(), to.to_le_bytes()].concat();
    let shape = LaunchShape::linear(MatrixProbe::WARPS as u32, MatrixProbe::LANES as u32);
    let outcome = program.entry("probe").unwrap().launch(&shape, &arguments, &[], &memory, options).unwrap();
    match outcome.findings.first() {
        Some(finding) => Err(finding.to_string()),
        None => Ok(memory.read(to, bytes).unwrap()),
    }
}

#[test]
fn every_matrix_instruction_gives_what_the_gpu_gave() {
    let probes = matrix_probes();
    let recorded = recorded_matrices().expect("the table of probes has changed: record it again");
    let mut wrong = Vec::new();
    for (probe, recorded) in probes.iter().zip(recorded) {
        match run(probe, 0, &Options::default()) {
            Err(text) => wrong.push(format!("{}: {text}", probe.text)),
            Ok(results) => {
                let size = probe.register_bytes();
                let differ = |(ours, theirs): &(&[u8], &[u8])| ours != theirs;
                let pairs = || results.chunks(size).zip(recorded.chunks(size));
                let found = pairs().filter(differ).count();
                if let Some(at) = pairs().position(|pair| differ(&pair)) {
                    let (warp, lane) = (at / probe.results / 32, at / probe.results % 32);
                    let (ours, theirs) = (&results[at * size..][..size], &recorded[at * size..][..size]);
                    let text = &probe.text;
                    wrong.push(format!(
                        "{text}: {found} differ: warp {warp} lane {lane}: {ours:x?}, recorded {theirs:x?}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} instructions:\n{}", wrong.len(), probes.len(), wrong.join("\n"));
}

/// `wmma` and `mma.sp` in every form, with odd operands.
#[test]
fn every_warp_and_sparse_product_gives_what_the_gpu_gave() {
    let recorded = recorded_tensors().expect("the table of probes has changed: record it again");
    let mut wrong = Vec::new();
    for (probe, recorded) in tensor_probes().iter().zip(recorded) {
        let program = ExecProgram::new(PtxModule::parse(&probe.module()).unwrap());
        let mut memory = SimpleMemory::new();
        let bytes = probe.result_bytes() as u64;
        let (from, to) = (memory.allocate_with(&probe.inputs(0)), memory.allocate(bytes));
        let arguments = [from.to_le_bytes(), to.to_le_bytes()].concat();
        let shape = LaunchShape::linear(TensorProbe::BLOCKS as u32, TensorProbe::LANES as u32);
        let entry = program.entry("probe").unwrap();
        let options = Options { checks: Checks::ALL, ..Options::default() };
        let outcome = entry.launch(&shape, &arguments, &[], &memory, &options).unwrap();
        let results = memory.read(to, bytes).unwrap();
        let size = probe.element_bytes();
        let differ = results.chunks(size).zip(recorded.chunks(size)).filter(|(a, b)| a != b).count();
        if let Some(finding) = outcome.findings.first() {
            wrong.push(format!("{}: {finding}", probe.text));
        } else if differ != 0 {
            wrong.push(format!("{}: {differ} elements differ", probe.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One block of 32 threads that run `body` after `%lane` and the address of 512 bytes of shared memory are known.
fn findings(threads: u32, body: &str) -> Vec<String> {
    let text = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.reg .b32 %r<8>, %lane, %at;\n.reg .pred %p;\n\
         .shared .align 16 .b8 cells[512];\nmov.u32 %lane, %tid.x;\nmov.u32 %at, cells;\nmad.lo.u32 %at, %lane, 16, %at;\n\
         st.shared.v4.b32 [%at], {{%lane, 0, 0, 0}};\n{body}\nret;\n}}\n"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let memory = SimpleMemory::new();
    let shape = LaunchShape::linear(1, threads);
    let options = Options::default();
    let outcome = program.entry("k").unwrap().launch(&shape, &[], &[], &memory, &options).unwrap();
    outcome.findings.iter().map(ToString::to_string).collect()
}

const SYNC: &str = "bar.warp.sync 0xffffffff;";
const LOAD: &str = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%at];";
const TRANSPOSE: &str = "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %lane;";

#[test]
fn a_matrix_load_after_a_barrier_is_clean() {
    assert_eq!(findings(32, &format!("{SYNC}{LOAD}")), Vec::<String>::new());
}

#[test]
fn a_matrix_load_out_of_bounds_or_off_its_alignment_is_found() {
    let past = findings(32, &format!("{SYNC}add.u32 %at, %at, 16; {LOAD}"));
    assert!(past.iter().any(|text| text.contains("out of bounds")), "{past:?}");
    let odd = findings(32, &format!("{SYNC}add.u32 %at, %at, 4; {LOAD}"));
    assert!(odd.iter().any(|text| text.contains("aligned")), "{odd:?}");
}

#[test]
fn rows_that_other_lanes_wrote_need_a_barrier() {
    let other = "xor.b32 %r4, %lane, 1; mov.u32 %at, cells; mad.lo.u32 %at, %r4, 16, %at;";
    let found = findings(32, &format!("{other}{LOAD}"));
    assert!(found.iter().any(|text| text.contains("race")), "{found:?}");
    assert_eq!(findings(32, &format!("{SYNC}{other}{LOAD}")), Vec::<String>::new());
}

#[test]
fn a_matrix_instruction_needs_the_whole_warp() {
    let part = findings(16, TRANSPOSE);
    assert!(part.iter().any(|text| text.contains("all 32 threads of the warp must")), "{part:?}");
    let left = findings(32, &format!("setp.lt.u32 %p, %lane, 4; @%p exit; {TRANSPOSE}"));
    assert!(left.iter().any(|text| text.contains("all 32 threads of the warp must")), "{left:?}");
    let apart = "setp.lt.u32 %p, %lane, 4; @%p bra other;";
    let places = findings(32, &format!("{apart}{TRANSPOSE} ret; other: {TRANSPOSE}"));
    assert!(places.iter().any(|text| text.contains("at different places")), "{places:?}");
}

#[test]
fn forms_that_do_not_exist_are_refused_by_name() {
    for form in [
        "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
    ] {
        let (f, r) = ("{%f0, %f1, %f2, %f3}", "{%r0, %r1, %r2, %r3}");
        let found = findings(32, &format!(".reg .f32 %f<4>; {form} {f}, {r}, {{%r4, %r5}}, {f};"));
        assert!(found.iter().any(|text| text.contains("mma")), "{form}: {found:?}");
    }
}
