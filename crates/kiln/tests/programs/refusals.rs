//! What does not fit is refused by name, before anything is queued.

use kiln::program::{Bindings, DispatchConfig, Program, ProgramError};
use kiln::{
    DeviceRuntime, Error,
    error::{ErrorKind, Misuse},
};
use kiln_driver::Dim3;
use kiln_driver::layer::CommandKind;
use kiln_ir::PlanError;
use kiln_sim::{DeviceConfig, MachineConfig};

use crate::rig::{Rig, refusal};

const BLEND: &str = "
    kernel blend(in x: f32[], inout y: f32[], out z: u32[like y], a: f32) block(32) over(y) {
        y[global.x] = a * x[global.x] + y[global.x];
        z[global.x] = 1;
    }";
const LEN: usize = 100;

#[test]
fn what_does_not_fit_is_refused_by_name_before_anything_is_queued() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(BLEND).unwrap()).unwrap();
    let (x, y) = (vec![1.0_f32; LEN], vec![2.0_f32; LEN]);
    let given = || Bindings::new().scalar("a", 2.5_f32).input("x", &x);
    let before = rig.counts();
    let refused = |bindings: Bindings<'_>| refusal(pipeline.dispatch(bindings));
    let (buffer, kernel) = ("buffer", || "blend".to_owned());
    let plan = |error| ProgramError::Plan(error);
    assert_eq!(refused(given()), plan(PlanError::Missing { kernel: kernel(), buffer: "y".into() }));
    let unknown = refused(given().input("y", &y).input("w", &y));
    assert_eq!(unknown, ProgramError::Unknown { what: buffer, name: "w".into(), known: "x, y, z".into() });
    let twice = refused(given().input("y", &y).input("y", &y));
    assert_eq!(twice, ProgramError::Twice { what: buffer, name: "y".into() });
    let missing = refused(Bindings::new().input("x", &x).input("y", &y));
    assert_eq!(missing, plan(PlanError::MissingScalar { kernel: kernel(), scalar: "a".into() }));
    assert!(matches!(
        refused(Bindings::new().scalar("a", 1_u32).input("x", &x).input("y", &y)),
        ProgramError::Plan(PlanError::ScalarType { scalar, .. }) if scalar == "a"
    ));
    assert!(
        matches!(refused(given().input("y", &[1_u32; LEN])), ProgramError::Element { name, .. } if name == "y")
    );
    assert!(matches!(
        refused(given().input("y", &y).input("z", &[1_u32; LEN])),
        ProgramError::Role { name, .. } if name == "z"
    ));
    let mut z = Vec::<u32>::new();
    let short = refused(given().input("y", &y).output_of("z", 3, &mut z));
    assert!(
        matches!(short, ProgramError::Plan(PlanError::Length { buffer, found: 3, expected: 100, .. }) if buffer == "z")
    );
    let huge = refused(given().input("y", &y).length("z", usize::MAX));
    assert!(matches!(huge, ProgramError::TooLarge { name, .. } if name == "z"));
    assert_eq!(rig.counts().since(&before).total(), 0, "nothing reached the device");
    drop(pipeline);
    rig.finish();
}

#[test]
fn a_grid_or_a_block_over_the_limits_is_refused() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(BLEND).unwrap()).unwrap();
    let (x, y) = (vec![1.0_f32; LEN], vec![2.0_f32; LEN]);
    let before = rig.counts();
    let refused = |config: DispatchConfig| {
        let given = Bindings::new().scalar("a", 2.5_f32).input("x", &x).input("y", &y);
        refusal(pipeline.dispatch_with(given, &config))
    };
    let of = |grid: Dim3| DispatchConfig { grid: Some(grid), ..DispatchConfig::default() };
    assert!(matches!(refused(of(0.into())), ProgramError::Plan(PlanError::Shape { .. })));
    for (grid, found, limit) in [
        (Dim3::new(1 << 31, 1, 1), 1_u64 << 31, (1_u64 << 31) - 1),
        (Dim3::new(1, 65_536, 1), 65_536, 65_535),
        (Dim3::new(1, 1, u32::MAX), u64::from(u32::MAX), 65_535),
    ] {
        match refused(of(grid)) {
            ProgramError::Plan(error @ PlanError::Limit { .. }) => {
                let text = error.to_string();
                assert!(text.contains(&found.to_string()) && text.contains(&limit.to_string()), "{text}");
            }
            other => panic!("{other}"),
        }
    }
    let block = |block| DispatchConfig { block: Some(block), ..DispatchConfig::default() };
    for block in [block([2048, 1, 1]), block([0, 1, 1]), block([64, 64, 1]), block([u32::MAX; 3])] {
        assert!(matches!(refused(block), ProgramError::Shape { what: "block", .. }));
    }
    let shared = DispatchConfig { dynamic_shared_elements: Some(4), ..DispatchConfig::default() };
    assert!(matches!(refused(shared), ProgramError::Shared { .. }));
    assert_eq!(rig.counts().since(&before).total(), 0, "nothing reached the device");
    drop(pipeline);
    rig.finish();
}

#[test]
fn shared_memory_over_the_limits_is_refused() {
    let rig = Rig::simulated();
    let program = Program::build("tile", |k| {
        let (tile, x) = (k.dynamic_shared::<u32>("tile"), k.in_out::<u32>("x"));
        k.block([1, 1, 1]);
        k.over(x);
        tile.store(0, x.load(0));
        x.store(0, tile.load(0));
    });
    let pipeline = rig.backend.compile(&program.unwrap()).unwrap();
    let mut x = vec![1_u32];
    for elements in [1 << 20, u64::MAX / 2, u64::MAX] {
        let config = DispatchConfig { dynamic_shared_elements: Some(elements), ..DispatchConfig::default() };
        let refused = refusal(pipeline.dispatch_with(Bindings::new().in_out("x", &mut x), &config));
        assert!(
            matches!(refused, ProgramError::Shared { .. } | ProgramError::Plan(PlanError::Limit { .. })),
            "{refused}"
        );
    }
    drop(pipeline);
    rig.finish();
}

#[test]
fn more_resident_blocks_than_fit_are_refused() {
    let mut device = DeviceConfig::default();
    device.limits.multiprocessors = 2;
    let rig = Rig::of(MachineConfig::seeded(1).device(device));
    let text =
        "kernel meet(inout x: u32[]) block(1024) over(x) { x[global.x] = 1; barrier grid; x[global.x] = 2; }";
    let pipeline = rig.backend.compile(&Program::parse(text).unwrap()).unwrap();
    let x = rig.gpu().zeros::<u32>(5 * 1024).unwrap();
    pipeline.dispatch(Bindings::new().resident("x", &x.view(..4 * 1024).unwrap())).unwrap();
    let before = rig.counts();
    let refused = refusal(pipeline.dispatch(Bindings::new().resident("x", &x)));
    let program = "meet".to_owned();
    assert_eq!(refused, ProgramError::CooperativeResidencyExceeded { program, blocks: 5, limit: 4 });
    let mut sequence = rig.backend.sequence();
    let refused = refusal(sequence.step(&pipeline, Bindings::new().resident("x", &x)));
    assert!(matches!(refused, ProgramError::CooperativeResidencyExceeded { .. }));
    assert_eq!(rig.launches_since(&before), 0);
    assert_eq!(x.view(4 * 1024..).unwrap().download().unwrap(), [0; 1024], "nothing has run");
    assert!(x.is_trusted());
    drop((sequence, x, pipeline));
    rig.finish();
}

#[test]
fn resident_buffers_that_share_bytes_one_of_them_writes_are_refused() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(BLEND).unwrap()).unwrap();
    let all = rig.gpu().zeros::<f32>(3 * LEN).unwrap();
    let part = |from: usize| all.view(from..from + LEN).unwrap();
    let run = |x: usize, y: usize| {
        let given = Bindings::new().scalar("a", 1.0_f32).resident("x", &part(x)).resident("y", &part(y));
        pipeline.dispatch(given)
    };
    run(0, LEN).unwrap();
    for (x, y) in [(0, 0), (0, LEN - 1), (2 * LEN - 1, LEN)] {
        let (program, first, second) = ("blend".into(), "x".into(), "y".into());
        assert_eq!(refusal(run(x, y)), ProgramError::Overlap { program, first, second });
    }
    drop((all, pipeline));
    rig.finish();
}

#[test]
fn a_resident_view_that_begins_between_two_elements_is_refused() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(BLEND).unwrap()).unwrap();
    let bytes = rig.gpu().zeros::<[u8; 4]>(4).unwrap().cast::<u8>().unwrap();
    let odd = bytes.view(1..9).unwrap().cast::<[u8; 4]>().unwrap();
    let given = Bindings::new().scalar("a", 1.0_f32).input("x", &[0.0_f32]).resident("y", &odd);
    let error = pipeline.dispatch(given).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Cast { element_bytes: 4, .. })), "{error}");
    drop((bytes, odd, pipeline));
    rig.finish();
}

#[test]
fn a_buffer_of_another_runtime_is_refused() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(BLEND).unwrap()).unwrap();
    let elsewhere = DeviceRuntime::simulated(2).unwrap().upload(&[1.0_f32; 4]);
    let stranger = elsewhere.unwrap();
    let given = Bindings::new().scalar("a", 1.0_f32).input("x", &[0.0_f32]).resident("y", &stranger);
    let before = rig.counts();
    let error: Error = pipeline.dispatch(given).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(_) | ErrorKind::Stale(_)), "{error}");
    assert_eq!(rig.counts().since(&before).submitted(CommandKind::Launch), 0);
    drop(pipeline);
    rig.finish();
}

#[test]
fn a_program_that_does_not_check_is_refused_where_that_is_not_said() {
    let rig = Rig::simulated();
    let text = "kernel bare(inout x: u32[] unchecked) block(4) over(x) { x[global.x] = x[global.x] + 1; }";
    let pipeline = rig.backend.compile(&Program::parse(text).unwrap()).unwrap();
    let mut x = vec![1_u32; 8];
    let expected = ProgramError::Unchecked { program: "bare".into(), buffer: "x".into() };
    assert_eq!(refusal(pipeline.dispatch(Bindings::new().in_out("x", &mut x))), expected);
    let mut sequence = rig.backend.sequence();
    let mut other = vec![1_u32; 8];
    let refused =
        sequence.repeat(2, |turn| turn.step(&pipeline, Bindings::new().in_out("x", &mut other)).map(drop));
    assert_eq!(refusal(refused), expected);
    drop(sequence);
    // SAFETY: eight elements are two whole blocks of four, so every thread has one.
    unsafe { pipeline.dispatch_unchecked(Bindings::new().in_out("x", &mut x), &DispatchConfig::default()) }
        .unwrap();
    assert_eq!(x, [2; 8]);
    drop(pipeline);
    rig.finish();
}

#[test]
fn no_elements_run_nothing_and_give_nothing() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(BLEND).unwrap()).unwrap();
    let (mut y, mut z) = (Vec::<f32>::new(), vec![1_u32]);
    let given =
        Bindings::new().scalar("a", 2.5_f32).input::<f32>("x", &[]).in_out("y", &mut y).output("z", &mut z);
    pipeline.dispatch(given).unwrap();
    assert!(y.is_empty() && z.is_empty());
    drop(pipeline);
    rig.finish();
}
