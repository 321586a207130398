//! Plans of launches: lengths, grids, limits, each refusal with the name of what is wrong.

use kiln_ir::{BindingPlan, DeviceLimits, LaunchPlan, LaunchRequest, PlanError, Program};

fn program() -> Program {
    Program::parse(
        "kernel p(in x: f32[], inout y: u16[like x], out z: u64[4], persistent w: u8[like z], a: f32) block(64) over(x) {
            shared s: u32[];
            y[global.x] = 1; z[0] = 2; w[0] = 3;
        }",
    )
    .unwrap()
}

fn bind(given: &[(&str, u64)]) -> Result<BindingPlan, PlanError> {
    BindingPlan::new(&program(), given)
}

fn launch(request: LaunchRequest, limits: DeviceLimits) -> Result<LaunchPlan, PlanError> {
    let program = program();
    LaunchPlan::new(&program, &bind(&[("x", 4000), ("y", 2000)]).unwrap(), &request, &limits)
}

#[test]
fn lengths_follow_from_what_is_given_and_declared() {
    let plan = bind(&[("x", 40), ("y", 20)]).unwrap();
    let lengths: Vec<u64> = plan.bindings.iter().map(|binding| binding.length).collect();
    assert_eq!(lengths, [10, 10, 4, 4]);
    let given: Vec<bool> = plan.bindings.iter().map(|binding| binding.given).collect();
    assert_eq!(given, [true, true, false, false]);
    let [x, y, z, w] = &plan.bindings[..] else { panic!("{plan:?}") };
    assert_eq!(
        [x, y, z, w].map(|b| (b.is_read(), b.is_written())),
        [(true, false), (true, true), (false, true), (true, true)]
    );
    assert_eq!((z.bytes(), &*w.name), (32, "w"));
}

#[test]
fn a_wrong_buffer_is_refused_by_name() {
    let text = |given: &[(&str, u64)]| bind(given).unwrap_err().to_string();
    assert_eq!(text(&[("q", 4)]), "kernel `p` has no buffer `q`");
    assert_eq!(text(&[("x", 42), ("y", 20)]), "kernel `p`: 42 bytes for `x` are no whole elements of f32");
    assert_eq!(
        text(&[("y", 20)]),
        "kernel `p`: `x` was not given; give its elements, or its length if the kernel only writes it"
    );
    assert!(text(&[("x", 40)]).contains("`y` was not given"));
    assert_eq!(
        text(&[("x", 40), ("y", 22)]),
        "kernel `p`: `y` has 11 elements, but must have 10 (it is like `x`)"
    );
    let found = text(&[("x", 40), ("y", 20), ("z", 24)]);
    assert_eq!(found, "kernel `p`: `z` has 3 elements, but must have 4 (it is declared so)");
    assert_eq!(text(&[("x", 4), ("x", 4)]), "kernel `p`: `x` was given twice");
}

#[test]
fn lengths_beyond_32_bits_stay_what_they_are() {
    let program = Program::parse("kernel big(out x: u8[]) block(1024) over(x) { x[global.x] = 1; }").unwrap();
    let plan = BindingPlan::new(&program, &[("x", 1 << 40)]).unwrap();
    assert_eq!(plan.bindings[0].length, 1 << 40);
    let request = LaunchRequest::default();
    let plan = LaunchPlan::new(&program, &plan, &request, &DeviceLimits::default()).unwrap();
    assert_eq!(plan.grid, [1 << 30, 1, 1]);
    let plan = BindingPlan::new(&program, &[("x", 1 << 44)]).unwrap();
    let error = LaunchPlan::new(&program, &plan, &request, &DeviceLimits::default()).unwrap_err();
    assert!(error.is_limit(), "{error}");
}

#[test]
fn the_grid_covers_a_buffer_or_is_what_was_asked_for() {
    let plan = launch(LaunchRequest::default(), DeviceLimits::default()).unwrap();
    assert_eq!(
        (plan.grid, plan.block, plan.cooperative, plan.is_empty),
        ([16, 1, 1], [64, 1, 1], false, false)
    );
    let request = LaunchRequest { grid: Some([3, 2, 1]), dynamic_shared_bytes: 100 };
    let plan = launch(request, DeviceLimits::default()).unwrap();
    assert_eq!((plan.grid, plan.dynamic_shared_bytes), ([3, 2, 1], 100));
    let program = program();
    let empty = bind(&[("x", 0), ("y", 0)]).unwrap();
    let plan =
        LaunchPlan::new(&program, &empty, &LaunchRequest::default(), &DeviceLimits::default()).unwrap();
    assert!(plan.is_empty);
}

#[test]
fn a_launch_the_device_cannot_have_is_refused() {
    let text = |request, limits| launch(request, limits).unwrap_err().to_string();
    let request = LaunchRequest { grid: Some([1, 70000, 1]), ..LaunchRequest::default() };
    let found = text(request, DeviceLimits::default());
    assert_eq!(found, "kernel `p`: the number of blocks along y is 70000, but the device has at most 65535");
    let request = LaunchRequest { grid: Some([1, 0, 1]), ..LaunchRequest::default() };
    assert!(text(request, DeviceLimits::default()).contains("no blocks"));
    let request = LaunchRequest { dynamic_shared_bytes: 50000, ..LaunchRequest::default() };
    assert!(text(request, DeviceLimits::default()).contains("shared memory is 50000"));
    let small = DeviceLimits { threads_per_block: 32, ..DeviceLimits::default() };
    assert!(text(LaunchRequest::default(), small).contains("threads of a block is 64"));
}

#[test]
fn blocks_that_wait_for_each_other_must_fit() {
    let program =
        Program::parse("kernel meet(inout x: u32[]) block(32) { barrier grid; x[0] = 1; }").unwrap();
    let bindings = BindingPlan::new(&program, &[("x", 4)]).unwrap();
    let limits = DeviceLimits { resident_blocks: Some(8), ..DeviceLimits::default() };
    let plan = |blocks| {
        let request = LaunchRequest { grid: Some([blocks, 1, 1]), ..LaunchRequest::default() };
        LaunchPlan::new(&program, &bindings, &request, &limits)
    };
    assert!(plan(8).unwrap().cooperative);
    let expected = PlanError::CooperativeResidencyExceeded { kernel: "meet".into(), blocks: 9, limit: 8 };
    assert_eq!(plan(9), Err(expected));
    let none = LaunchPlan::new(&program, &bindings, &LaunchRequest::default(), &limits).unwrap_err();
    assert!(matches!(none, PlanError::NoGrid { .. }));
    let dynamic = LaunchRequest { grid: Some([1, 1, 1]), dynamic_shared_bytes: 4 };
    assert!(
        LaunchPlan::new(&program, &bindings, &dynamic, &limits).unwrap_err().to_string().contains("has none")
    );
}

#[test]
fn another_size_of_blocks_is_another_program() {
    let program =
        Program::parse("kernel b(out x: u32[]) block(64) over(x) { x[global.x] = block_dim.x; }").unwrap();
    let other = program.with_block([32, 1, 1]).unwrap();
    assert_eq!((other.block, program.block), ([32, 1, 1], [64, 1, 1]));
    assert!(program.with_block([2048, 1, 1]).is_err());
    assert!(program.is_checked());
}
