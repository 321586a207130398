//! Handles whose parameters the compiler knows. What does not compile is in the documentation of [`Typed`].

use kiln::program::{
    Backend, Bindings, DispatchConfig, Kept, Parameters, Program, ProgramError, ProgramValue, Read,
    ReadWrite, Typed, Write,
};

use crate::rig::{Rig, refusal};

const BLEND: &str = "
    kernel blend(in x: f32[], inout y: f32[like x], out z: u32[], a: f32, n: u32) block(32) over(y) {
        y[global.x] = a * x[global.x] + y[global.x];
        z[global.x] = n;
    }";

/// Buffers and scalars mixed, each in their own order.
type Blend = (ProgramValue<f32>, Read<f32>, ReadWrite<f32>, ProgramValue<u32>, Write<u32>);

fn blend(backend: &Backend) -> Typed<Blend> {
    backend.compile_typed(&Program::parse(BLEND).unwrap()).unwrap()
}

#[test]
fn a_typed_dispatch_gives_what_a_dispatch_by_name_gives() {
    let rig = Rig::simulated();
    let blend = blend(&rig.backend);
    let x = [1.0_f32, 2.0, 3.0];
    let (mut named, mut named_z) = (vec![1.0_f32, 1.0, 1.0], Vec::new());
    let given = Bindings::new().scalar("a", 2.0_f32).scalar("n", 6_u32).input("x", &x);
    blend.pipeline().dispatch(given.in_out("y", &mut named).output_of("z", 2, &mut named_z)).unwrap();
    assert_eq!((&named[..], &named_z[..]), (&[3.0, 5.0, 7.0][..], &[6, 6][..]));

    let (mut y, mut z) = (vec![1.0; 3], Vec::new());
    blend.dispatch((2.0, &x, &mut y, 6, (2, &mut z))).unwrap();
    assert_eq!((&y, &z), (&named, &named_z));

    let (x, y, z) = (x.to_vec(), rig.gpu().upload(&[1.0_f32; 3]).unwrap(), rig.gpu().zeros(2).unwrap());
    blend.clone().dispatch_with((2.0, &x, &y, 6, &z), &DispatchConfig::default()).unwrap();
    assert_eq!((y.download().unwrap(), z.download().unwrap()), (named, named_z));

    let mut sequence = rig.backend.sequence();
    sequence.step(blend.pipeline(), blend.bind((1.0, &x[..], &y, 7, &z))).unwrap();
    sequence.run().unwrap();
    assert_eq!((y.download().unwrap(), z.download().unwrap()), (vec![4.0, 7.0, 10.0], vec![7, 7]));
    drop((blend, y, z));
    rig.finish();
}

#[test]
fn lengths_are_still_checked_at_each_dispatch() {
    let rig = Rig::simulated();
    let blend = blend(&rig.backend);
    let (mut y, mut z) = (vec![1.0; 4], Vec::new());
    let refused = refusal(blend.dispatch((2.0, &[1.0; 3], &mut y, 6, (2, &mut z))));
    assert!(matches!(refused, ProgramError::Plan(_)), "{refused}");
    drop(blend);
    rig.finish();
}

fn wrong<P: Parameters>(rig: &Rig) -> ProgramError {
    refusal(rig.backend.compile_typed::<P>(&Program::parse(BLEND).unwrap()))
}

#[test]
fn a_program_with_other_parameters_is_refused_when_the_handle_is_made() {
    let rig = Rig::simulated();
    let program = || "blend".to_owned();
    let few = wrong::<(ProgramValue<f32>, ProgramValue<u32>, Read<f32>, ReadWrite<f32>)>(&rig);
    assert_eq!(
        few,
        ProgramError::ParameterCount { program: program(), what: "buffers", declared: 3, named: 2 }
    );
    let few = wrong::<(ProgramValue<f32>, Read<f32>, ReadWrite<f32>, Write<u32>)>(&rig);
    assert_eq!(
        few,
        ProgramError::ParameterCount { program: program(), what: "scalars", declared: 2, named: 1 }
    );
    for (error, name, said) in [
        (
            wrong::<(ProgramValue<f32>, ProgramValue<u32>, Read<f64>, ReadWrite<f32>, Write<u32>)>(&rig),
            "`x`",
            "Read<f64>",
        ),
        (
            wrong::<(ProgramValue<f32>, ProgramValue<u32>, Read<f32>, Read<f32>, Write<u32>)>(&rig),
            "`y`",
            "Read<f32>",
        ),
        (
            wrong::<(ProgramValue<f32>, ProgramValue<u32>, Read<f32>, ReadWrite<f32>, Write<i32>)>(&rig),
            "`z`",
            "Write<i32>",
        ),
        (
            wrong::<(ProgramValue<f32>, ProgramValue<u32>, Read<f32>, ReadWrite<f32>, Kept<u32>)>(&rig),
            "`z`",
            "Kept<u32>",
        ),
        (
            wrong::<(ProgramValue<u32>, ProgramValue<u32>, Read<f32>, ReadWrite<f32>, Write<u32>)>(&rig),
            "`a`",
            "Value<u32>",
        ),
        (
            wrong::<(ProgramValue<f32>, ProgramValue<bool>, Read<f32>, ReadWrite<f32>, Write<u32>)>(&rig),
            "`n`",
            "Value<bool>",
        ),
    ] {
        let text = error.to_string();
        assert!(matches!(error, ProgramError::ParameterType { .. }), "{text}");
        assert!(text.contains(name) && text.contains(said), "{text}");
    }
    rig.finish();
}

#[test]
fn what_a_program_keeps_is_given_as_a_resident_buffer() {
    let rig = Rig::simulated();
    let text = "kernel tally(persistent state: u32[1], by: u32) block(1) { atomic_add(state[0], by); }";
    let tally: Typed<(Kept<u32>, ProgramValue<u32>)> =
        rig.backend.compile_typed(&Program::parse(text).unwrap()).unwrap();
    let state = rig.gpu().zeros(1).unwrap();
    let config = DispatchConfig { grid: Some(2.into()), ..DispatchConfig::default() };
    for _ in 0..3 {
        tally.dispatch_with((&state, 7), &config).unwrap();
    }
    assert_eq!(state.download().unwrap(), [42]);
    drop((tally, state));
    rig.finish();
}

#[test]
fn half_precision_of_a_library_fits_by_its_size() {
    let rig = Rig::simulated();
    let text = "kernel twice(in x: f16[], out y: f16[like x]) block(32) over(x) { y[global.x] = x[global.x] * 2.0; }";
    let twice: Typed<(Read<half::f16>, Write<half::f16>)> =
        rig.backend.compile_typed(&Program::parse(text).unwrap()).unwrap();
    let mut y = Vec::new();
    twice.dispatch((&[half::f16::from_f32(1.5)], &mut y)).unwrap();
    assert_eq!(y, [half::f16::from_f32(3.0)]);
    drop(twice);
    rig.finish();
}
