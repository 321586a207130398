//! Programs on a simulated device: every route gives what the interpreter gives.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::sync::Arc;

use kiln::program::{Backend, Bindings, Converge, DispatchConfig, Pipeline, ProgramError};
use kiln::{DeviceRuntime, Error, ErrorKind, RuntimeConfig};
use kiln_driver::layer::{CommandKind, Counting, Layered};
use kiln_ir::{Interpretation, Literal, PlanError, Program};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

struct Rig {
    machine: Machine,
    driver: Arc<Layered<Counting>>,
    backend: Backend,
}

fn rig() -> Rig {
    let machine = Machine::new(MachineConfig::seeded(5).engine(Arc::new(PtxEngine::default())));
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    Rig { machine, driver, backend: Backend::over(gpu) }
}

impl Rig {
    fn finish(self) {
        drop((self.backend, self.driver));
        let report = self.machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> ProgramError {
    match result.expect_err("this is to be refused").kind() {
        ErrorKind::Program(error) => error.clone(),
        other => panic!("expected a refusal of the program, got {other}"),
    }
}

/// `y = a * x + y` and `z = 3 i`, for all but the last element of z.
fn blend() -> Program {
    Program::build("blend", |k| {
        let a = k.scalar::<f32>("a");
        let (x, y) = (k.input::<f32>("x"), k.in_out::<f32>("y"));
        let z = k.output::<u32>("z").like(y);
        k.block([32, 1, 1]);
        k.over(y);
        let i = k.global_x();
        y.store(i, a * x.load(i) + y.load(i));
        k.if_((i + 1_u64).lt(z.length()), || z.store(i, i.to::<u32>() * 3_u32));
    })
    .unwrap()
}

const LEN: usize = 100;

fn x() -> Vec<f32> {
    (0..LEN).map(|at| at as f32 / 7.0).collect()
}

fn y() -> Vec<f32> {
    (0..LEN).map(|at| 1.0 - at as f32).collect()
}

fn bytes<T: kiln::Element>(elements: &[T]) -> Vec<u8> {
    elements.iter().flat_map(bytemuck_bytes).collect()
}

fn bytemuck_bytes<T: kiln::Element>(element: &T) -> Vec<u8> {
    bytemuck::bytes_of(element).to_vec()
}

/// What the program means.
fn meaning() -> (Vec<u8>, Vec<u8>) {
    let mut buffers = vec![bytes(&x()), bytes(&y()), vec![0; 4 * LEN]];
    Interpretation::new([4, 1, 1]).run(&blend(), &[Literal::from(2.5_f32)], &mut buffers).unwrap();
    (buffers[1].clone(), buffers[2].clone())
}

#[derive(Clone, Copy, Debug)]
enum Route {
    Returned,
    Into,
    Resident,
    Mixed,
    Sequence,
    Graph,
}

fn run(backend: &Backend, pipeline: &Pipeline, route: Route) -> (Vec<u8>, Vec<u8>) {
    let gpu = backend.runtime();
    let (x, mut y, mut z) = (x(), y(), Vec::<u32>::new());
    let (on_device, zeros) = (|data: &[f32]| gpu.upload(data).unwrap(), || gpu.zeros::<u32>(LEN).unwrap());
    let given = Bindings::new().scalar("a", 2.5_f32);
    match route {
        Route::Returned => {
            let mut done = pipeline.dispatch(given.input("x", &x).input("y", &y)).unwrap();
            (y, z) = (done.outputs.take("y").unwrap(), done.outputs.take("z").unwrap());
            assert_eq!(done.outputs.names().count(), 0);
        }
        Route::Into => {
            drop(pipeline.dispatch(given.input("x", &x).in_out("y", &mut y).output("z", &mut z)).unwrap())
        }
        Route::Resident => {
            let (dx, dy, dz) = (on_device(&x), on_device(&y), zeros());
            pipeline.dispatch(given.resident("x", &dx).resident("y", &dy).resident("z", &dz)).unwrap();
            (y, z) = (dy.download().unwrap(), dz.download().unwrap());
        }
        Route::Mixed => {
            let dy = on_device(&y);
            pipeline.dispatch(given.input("x", &x).resident("y", &dy).output("z", &mut z)).unwrap();
            y = dy.download().unwrap();
        }
        Route::Sequence => {
            let (dx, dy) = (gpu.allocate::<f32>(LEN).unwrap(), gpu.allocate::<f32>(LEN).unwrap());
            let mut results = Vec::new();
            let mut sequence = backend.sequence();
            sequence.upload(&dx, &x).unwrap().upload(&dy, &y).unwrap();
            sequence.step(pipeline, given.resident("x", &dx).resident("y", &dy).output("z", &mut z)).unwrap();
            sequence.read(&dy, &mut results).unwrap();
            sequence.run().unwrap();
            y = results;
        }
        Route::Graph => {
            let (dx, dy, dz) = (on_device(&x), on_device(&y), zeros());
            let mut sequence = backend.sequence();
            sequence.step(pipeline, given.resident("x", &dx).resident("y", &dy).resident("z", &dz)).unwrap();
            sequence.build().unwrap().replay().unwrap();
            (y, z) = (dy.download().unwrap(), dz.download().unwrap());
        }
    }
    (bytes(&y), bytes(&z))
}

#[test]
fn every_route_gives_what_the_interpreter_gives() {
    let rig = rig();
    let pipeline = rig.backend.compile(&blend()).unwrap();
    let expected = meaning();
    for route in [Route::Returned, Route::Into, Route::Resident, Route::Mixed, Route::Sequence, Route::Graph]
    {
        assert_eq!(run(&rig.backend, &pipeline, route), expected, "{route:?}");
    }
    drop(pipeline);
    rig.finish();
}

#[test]
fn a_program_is_compiled_once_while_somebody_has_it() {
    let rig = rig();
    let (first, second) = (rig.backend.compile(&blend()).unwrap(), rig.backend.compile(&blend()).unwrap());
    assert!(Arc::ptr_eq(&first, &second));
    let other = first.with_block([64, 1, 1]).unwrap();
    assert!(!Arc::ptr_eq(&first, &other));
    drop((first, second, other));
    rig.finish();
}

#[test]
fn another_grid_and_another_block_give_the_same() {
    let rig = rig();
    let pipeline = rig.backend.compile(&blend()).unwrap();
    for (grid, block) in
        [(None, Some([64, 1, 1])), (Some(7.into()), None), (Some(2.into()), Some([128, 1, 1]))]
    {
        let config = DispatchConfig { grid, block, ..DispatchConfig::default() };
        let (x, mut y, mut z) = (x(), y(), Vec::<u32>::new());
        let given =
            Bindings::new().scalar("a", 2.5_f32).input("x", &x).in_out("y", &mut y).output("z", &mut z);
        pipeline.dispatch_with(given, &config).unwrap();
        assert_eq!((bytes(&y), bytes(&z)), meaning(), "{config:?}");
    }
    drop(pipeline);
    rig.finish();
}

/// Counts every element down to zero, one a step, and says whether it changed one.
fn countdown() -> Program {
    Program::build("countdown", |k| {
        let (x, changed) = (k.in_out::<u32>("x"), k.in_out::<u32>("changed").count(1));
        k.over(x);
        let i = k.global_x();
        let left = x.load(i);
        k.if_(left.gt(0_u32), || {
            x.store(i, left - 1_u32);
            changed.atomic_max(0_u32, 1_u32);
        });
    })
    .unwrap()
}

#[test]
fn steps_are_repeated_a_number_of_times_or_until_a_flag_says_stop() {
    let rig = rig();
    let pipeline = rig.backend.compile(&countdown()).unwrap();
    let start: Vec<u32> = (0..20).collect();
    let (mut x, flag) = (start.clone(), [0_u32]);
    let config = DispatchConfig { steps: 5, ..DispatchConfig::default() };
    let given = Bindings::new().in_out("x", &mut x).input("changed", &flag);
    let before = rig.driver.layer().counts();
    assert_eq!(pipeline.dispatch_with(given, &config).unwrap().steps, 5);
    assert_eq!(rig.driver.layer().counts().since(&before).submitted(CommandKind::Launch), 5);
    assert_eq!(x, start.iter().map(|value| value.saturating_sub(5)).collect::<Vec<_>>());

    let until = |limit| {
        let converge = Some(Converge { flag: "changed".into(), limit });
        DispatchConfig { converge, ..DispatchConfig::default() }
    };
    let mut x = start.clone();
    let given = Bindings::new().in_out("x", &mut x).input("changed", &flag);
    let done = pipeline.dispatch_with(given, &until(1000)).unwrap();
    assert!((20..40).contains(&done.steps), "{}", done.steps);
    assert_eq!(x, [0; 20]);

    let mut x = start.clone();
    let given = Bindings::new().in_out("x", &mut x).input("changed", &flag);
    let (program, steps) = ("countdown".to_owned(), 6);
    assert_eq!(
        refusal(pipeline.dispatch_with(given, &until(6))),
        ProgramError::NotConverged { program, steps }
    );
    assert_eq!(x, start, "what did not converge does not come back");
    drop(pipeline);
    rig.finish();
}

#[test]
fn a_trap_is_an_error_and_leaves_host_vectors_alone() {
    let rig = rig();
    let program = Program::build("guard", |k| {
        let x = k.in_out::<u32>("x");
        k.over(x);
        let i = k.global_x();
        k.if_(x.load(i).eq(7_u32), || k.trap(42_u32));
        x.store(i, 1_u32);
    })
    .unwrap();
    let pipeline = rig.backend.compile(&program).unwrap();
    let mut good = vec![5_u32; 8];
    pipeline.dispatch(Bindings::new().in_out("x", &mut good)).unwrap();
    assert_eq!(good, [1; 8]);
    let mut bad: Vec<u32> = (0..300).collect();
    let config = DispatchConfig { label: Some("audit".into()), ..DispatchConfig::default() };
    let error = pipeline.dispatch_with(Bindings::new().in_out("x", &mut bad), &config).unwrap_err();
    assert_eq!(error.label(), Some("audit"));
    let trap = ProgramError::Trap { program: "guard".into(), code: 42, thread: 7, block: 0 };
    assert_eq!(refusal::<()>(Err(error)), trap);
    assert_eq!(bad, (0..300).collect::<Vec<u32>>());
    drop(pipeline);
    rig.finish();
}

#[test]
fn a_profile_says_how_long_the_device_took() {
    let rig = rig();
    let pipeline = rig.backend.compile(&countdown()).unwrap();
    let config = DispatchConfig { profile: true, ..DispatchConfig::default() };
    let mut x = vec![3_u32; 10];
    let done =
        pipeline.dispatch_with(Bindings::new().in_out("x", &mut x).input("changed", &[0_u32]), &config);
    let timing = done.unwrap().timing.unwrap();
    assert!(timing.device > std::time::Duration::ZERO && timing.wall >= timing.device);
    drop(pipeline);
    rig.finish();
}

#[test]
fn what_does_not_fit_is_refused_by_name_before_anything_is_queued() {
    let rig = rig();
    let pipeline = rig.backend.compile(&blend()).unwrap();
    let (x, y) = (x(), y());
    let given = || Bindings::new().scalar("a", 2.5_f32).input("x", &x);
    let before = rig.driver.layer().counts();
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
        ProgramError::Plan(PlanError::ScalarType { .. })
    ));
    assert!(matches!(refused(given().input("y", &[1_u32; LEN])), ProgramError::Element { .. }));
    assert!(matches!(refused(given().input("y", &y).input("z", &[1_u32; LEN])), ProgramError::Role { .. }));
    let mut z = Vec::<u32>::new();
    let short = refused(given().input("y", &y).output_of("z", 3, &mut z));
    assert!(matches!(short, ProgramError::Plan(PlanError::Length { found: 3, expected: 100, .. })));
    let config = DispatchConfig { grid: Some(0.into()), ..DispatchConfig::default() };
    let grid = refusal(pipeline.dispatch_with(given().input("y", &y), &config));
    assert!(matches!(grid, ProgramError::Plan(PlanError::Shape { .. })));
    let config = DispatchConfig { dynamic_shared_elements: Some(4), ..DispatchConfig::default() };
    let shared = refusal(pipeline.dispatch_with(given().input("y", &y), &config));
    assert!(matches!(shared, ProgramError::Shared { .. }));
    assert_eq!(rig.driver.layer().counts().since(&before).total(), 0, "nothing reached the device");
    drop(pipeline);
    rig.finish();
}

#[test]
fn a_resident_view_that_begins_between_two_elements_is_refused() {
    let rig = rig();
    let pipeline = rig.backend.compile(&countdown()).unwrap();
    let bytes = rig.backend.runtime().zeros::<[u8; 4]>(4).unwrap().cast::<u8>().unwrap();
    let odd = bytes.view(1..9).unwrap().cast::<[u8; 4]>().unwrap();
    let error =
        pipeline.dispatch(Bindings::new().resident("x", &odd).input("changed", &[0_u32])).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Misuse(kiln::Misuse::Cast { element_bytes: 4, .. })),
        "{error}"
    );
    drop((bytes, odd, pipeline));
    rig.finish();
}

#[test]
fn no_elements_run_nothing_and_give_nothing() {
    let rig = rig();
    let pipeline = rig.backend.compile(&blend()).unwrap();
    let (mut y, mut z) = (Vec::<f32>::new(), vec![1_u32]);
    let given =
        Bindings::new().scalar("a", 2.5_f32).input::<f32>("x", &[]).in_out("y", &mut y).output("z", &mut z);
    pipeline.dispatch(given).unwrap();
    assert!(y.is_empty() && z.is_empty());
    drop(pipeline);
    rig.finish();
}

#[test]
fn a_program_that_does_not_check_is_refused_where_that_is_not_said() {
    let rig = rig();
    let program = Program::build("bare", |k| {
        let x = k.in_out::<u32>("x").unchecked();
        k.block([4, 1, 1]);
        k.over(x);
        let i = k.global_x();
        x.store(i, x.load(i) + 1_u32);
    })
    .unwrap();
    let pipeline = rig.backend.compile(&program).unwrap();
    let mut x = vec![1_u32; 8];
    let refused = refusal(pipeline.dispatch(Bindings::new().in_out("x", &mut x)));
    assert_eq!(refused, ProgramError::Unchecked { program: "bare".into(), buffer: "x".into() });
    // SAFETY: eight elements are two whole blocks of four, so every thread has one.
    unsafe { pipeline.dispatch_unchecked(Bindings::new().in_out("x", &mut x), &DispatchConfig::default()) }
        .unwrap();
    assert_eq!(x, [2; 8]);
    drop(pipeline);
    rig.finish();
}
