//! How close functions come to the exact value, and what they answer at the edges.

use kiln_ir::{Interpreter, Literal, MathFunction, Op, Program, StatementKind, Type};

/// A program that applies a function to every element.
fn program(function: MathFunction, ty: Type) -> Program {
    let text = format!(
        "kernel f(in x: {ty}[], out y: {ty}[like x]) block(256) over(x) {{ y[global.x] = {function}(x[global.x]); }}"
    );
    Program::parse(&text).unwrap()
}

fn apply(function: MathFunction, arguments: &[f32]) -> Vec<f32> {
    let program = program(function, Type::F32);
    let x: Vec<u8> = arguments.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut buffers = [x.clone(), vec![0; x.len()]];
    let grid = [arguments.len().div_ceil(256) as u32, 1, 1];
    Interpreter::new(grid).run(&program, &[], &mut buffers).unwrap();
    buffers[1].chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// The value a function should have.
fn exact(function: MathFunction, x: f64) -> f64 {
    match function {
        MathFunction::Exp => x.exp(),
        MathFunction::Exp2 => x.exp2(),
        MathFunction::Log => x.ln(),
        MathFunction::Log2 => x.log2(),
        MathFunction::Sin => x.sin(),
        MathFunction::Cos => x.cos(),
        // The host's own function is further off here than the first terms of the series.
        MathFunction::Tanh if x.abs() < 1e-4 => x - x * x * x / 3.0,
        MathFunction::Tanh => x.tanh(),
        MathFunction::Rsqrt => 1.0 / x.sqrt(),
    }
}

/// How far a result is from the exact value, in units of its last place.
fn error_ulps(result: f32, exact: f64) -> f64 {
    if exact.is_nan() || exact as f32 == result {
        return if exact.is_nan() == result.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let near = (exact as f32).abs().clamp(f32::MIN_POSITIVE, f32::MAX);
    let unit = f64::from(f32::from_bits(near.to_bits() & 0x7f80_0000)) * 2f64.powi(-23);
    (f64::from(result) - exact).abs() / unit
}

/// Singles of every size, those near whole numbers and turns, and the edges.
fn arguments() -> Vec<f32> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut list: Vec<f32> =
        (0..20_000).map(|_| f32::from_bits(next() as u32 ^ (next() as u32) << 16)).collect();
    list.extend((0..20_000).map(|_| (next() as f32 / (1u64 << 31) as f32 - 0.5) * 200.0));
    list.extend((0..20_000).map(|_| 1.0 + (next() as f32 / (1u64 << 31) as f32 - 0.5)));
    list.extend((-2000..2000).map(|n| n as f32 * std::f32::consts::FRAC_PI_2));
    list.extend([0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN]);
    list.extend([
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        -f32::from_bits(1),
        88.72283,
        88.72284,
        -103.97,
        -87.4,
    ]);
    list
}

#[test]
fn results_lie_within_two_units_in_the_last_place() {
    let arguments = arguments();
    for function in MathFunction::ALL {
        let results = apply(*function, &arguments);
        let errors = arguments
            .iter()
            .zip(&results)
            .map(|(x, y)| (*x, *y, error_ulps(*y, exact(*function, f64::from(*x)))));
        let (x, y, worst) = errors.max_by(|a, b| a.2.total_cmp(&b.2)).unwrap();
        println!("{function}: at most {worst:.3} units, at {x:e}");
        assert!(worst <= 2.0, "{function}({x:e}) = {y:e}, {worst} units off");
    }
}

/// The same for doubles, whose exact value is only known to the precision of the host's own functions.
#[test]
fn doubles_lie_within_two_units_in_the_last_place() {
    let mut arguments: Vec<f64> = arguments().into_iter().map(f64::from).collect();
    arguments.extend((0..20_000).map(|n| (f64::from(n) - 10_000.0) * 0.07501));
    arguments.extend((0..20_000).map(|n| 1.0 + (f64::from(n) - 10_000.0) * 1.1e-7));
    // Doubles of every size.
    arguments
        .extend((1..20_000u64).map(|n| f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !(1 << 63))));
    arguments.extend([f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1), 709.78, 709.79, -745.2, -708.5, 1e-30]);
    let x: Vec<u8> = arguments.iter().flat_map(|x| x.to_le_bytes()).collect();
    for function in MathFunction::ALL.iter().copied().filter(|function| function.accepts(Type::F64)) {
        let mut buffers = [x.clone(), vec![0; x.len()]];
        let grid = [arguments.len().div_ceil(256) as u32, 1, 1];
        Interpreter::new(grid).run(&program(function, Type::F64), &[], &mut buffers).unwrap();
        let results = buffers[1].chunks(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()));
        for (x, y) in arguments.iter().zip(results) {
            let exact = exact(function, *x);
            // Neighbours have neighbouring bits, except around zero; the host is off by one itself.
            let apart = if exact.is_nan() && y.is_nan() { 0 } else { exact.to_bits().abs_diff(y.to_bits()) };
            assert!(apart <= 3 || exact == y, "{function}({x:e}) = {y:e}, {apart} units from {exact:e}");
        }
    }
}

/// Angles with their sine and cosine as computed with 1400 bits: small ones, whole quarter turns as near as doubles come, and
/// the largest there are. The bits of each.
const ANGLES: [(u64, u64, u64); 23] = [
    (0x3ff0_0000_0000_0000, 0x3fea_ed54_8f09_0cee, 0x3fe1_4a28_0fb5_068c),
    (0xc000_0000_0000_0000, 0xbfed_18f6_ead1_b446, 0xbfda_a226_5753_7205),
    (0x3fe9_21fb_5444_2d18, 0x3fe6_a09e_667f_3bcc, 0x3fe6_a09e_667f_3bcd),
    (0x3ff9_21fb_5444_2d18, 0x3ff0_0000_0000_0000, 0x3c91_a626_3314_5c07),
    (0x4009_21fb_5444_2d18, 0x3ca1_a626_3314_5c07, 0xbff0_0000_0000_0000),
    (0xc019_21fb_5444_2d18, 0x3cb1_a626_3314_5c07, 0x3ff0_0000_0000_0000),
    (0x3e11_2e0b_e826_d695, 0x3e11_2e0b_e826_d695, 0x3ff0_0000_0000_0000),
    (0x40f8_6a00_0000_0000, 0x3fa2_4daa_9c52_7e96, 0xbfef_fac3_841b_3da7),
    (0xc19d_6f34_5400_0000, 0xbfef_af05_21c8_dc5c, 0x3fc1_f407_7c91_589f),
    (0x41d0_0000_0000_0000, 0xbfe3_c123_5372_8caf, 0x3fe9_2cb4_6a92_0144),
    (0x41d0_0000_0040_0000, 0x3fd5_054c_2710_443f, 0x3fee_3986_12c9_6801),
    (0xc202_a05f_2000_0000, 0x3fdf_334c_7896_a4e3, 0x3feb_f098_901c_931a),
    (0x4341_c379_37e0_8000, 0x3fe8_f334_432e_bba5, 0xbfe4_0991_e398_dbfc),
    (0x4480_f0cf_064d_d592, 0xbfeb_453a_b76b_f397, 0x3fe0_be2c_ef01_c8f4),
    (0x7506_ac5b_262c_a1ff, 0x3ff0_0000_0000_0000, 0xbc21_4ae7_2e6b_a22f),
    (0x4972_e5f0_f521_a58d, 0xbfea_65ed_9411_2ee1, 0xbfe2_1641_972d_8a8c),
    (0xd4b2_49ad_2594_c37d, 0x3fd8_5c5e_5b92_9359, 0x3fed_9757_4968_41f5),
    (0x6974_e718_d7d7_625a, 0xbfe4_9b64_4938_c64c, 0x3fe8_7b4d_f51f_679e),
    (0x7fe0_0000_0000_0000, 0x3fe2_0524_8cbd_b760, 0xbfea_719f_26c2_32bf),
    (0x7fef_ffff_ffff_ffff, 0x3f74_52fc_98b3_4e97, 0xbfef_ffe6_2ecf_ab75),
    (0x4076_3000_0000_0000, 0xbeff_9bd0_307d_1de3, 0xbfef_ffff_ffc1_8e4c),
    (0x4026_0000_0000_0000, 0xbfef_ffeb_762e_93eb, 0x3f72_20ae_41ee_2fdf),
    (0x4125_aae0_0000_0000, 0x3fae_d960_0d54_faae, 0x3fef_f11d_dd95_840c),
];

#[test]
fn angles_of_doubles_lie_within_one_unit_in_the_last_place() {
    let x: Vec<u8> = ANGLES.iter().flat_map(|angle| angle.0.to_le_bytes()).collect();
    for function in [MathFunction::Sin, MathFunction::Cos] {
        let mut buffers = [x.clone(), vec![0; x.len()]];
        Interpreter::new([1, 1, 1]).run(&program(function, Type::F64), &[], &mut buffers).unwrap();
        for (bytes, (x, sine, cosine)) in buffers[1].chunks(8).zip(ANGLES) {
            let found = u64::from_le_bytes(bytes.try_into().unwrap());
            let exact = if function == MathFunction::Sin { sine } else { cosine };
            let (x, y) = (f64::from_bits(x), f64::from_bits(found));
            assert!(found.abs_diff(exact) <= 1, "{function}({x:e}) = {y:e}, not {:e}", f64::from_bits(exact));
        }
    }
}

#[test]
fn edges_are_what_the_documentation_says() {
    let of = |function: MathFunction, x: f32| apply(function, &[x])[0];
    assert_eq!(of(MathFunction::Exp, 1000.0), f32::INFINITY);
    assert_eq!(of(MathFunction::Exp, -1000.0), 0.0);
    assert_eq!(of(MathFunction::Log, 0.0), f32::NEG_INFINITY);
    assert!(of(MathFunction::Log, -1.0).is_nan() && of(MathFunction::Log2, -1.0).is_nan());
    assert_eq!(of(MathFunction::Log2, 0.0), f32::NEG_INFINITY);
    assert!(
        of(MathFunction::Sin, f32::INFINITY).is_nan() && of(MathFunction::Cos, f32::NEG_INFINITY).is_nan()
    );
    assert_eq!(of(MathFunction::Sin, -0.0).to_bits(), (-0.0f32).to_bits());
    let angles = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, f64::from_bits(1)];
    let mut buffers = [angles.map(f64::to_le_bytes).concat(), vec![0; 40]];
    Interpreter::new([1, 1, 1]).run(&program(MathFunction::Sin, Type::F64), &[], &mut buffers).unwrap();
    let sines: Vec<f64> =
        buffers[1].chunks(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert!(sines[..3].iter().all(|sine| sine.is_nan()), "{sines:?}");
    assert_eq!([sines[3].to_bits(), sines[4].to_bits()], [(-0.0f64).to_bits(), 1]);
    assert_eq!(
        (of(MathFunction::Rsqrt, 0.0), of(MathFunction::Rsqrt, -0.0)),
        (f32::INFINITY, f32::NEG_INFINITY)
    );
    assert!(of(MathFunction::Rsqrt, -1.0).is_nan());
    for function in MathFunction::ALL {
        assert!(of(*function, f32::NAN).is_nan(), "{function} of NaN");
    }
}

#[test]
fn halves_are_computed_in_single_precision_and_rounded() {
    for ty in [Type::F16, Type::Bf16] {
        let program = program(MathFunction::Exp, ty);
        let one = Literal::float(ty, 1.0).bits() as u16;
        let mut buffers = [one.to_le_bytes().to_vec(), vec![0; 2]];
        Interpreter::new([1, 1, 1]).run(&program, &[], &mut buffers).unwrap();
        let expected = Literal::float(ty, f64::from(1f32.exp())).bits() as u16;
        assert_eq!(buffers[1], expected.to_le_bytes());
    }
}

#[test]
fn an_expanded_program_is_a_program_without_functions() {
    for function in MathFunction::ALL {
        let expanded = program(*function, Type::F32).expanded().into_draft();
        let is_function =
            |kind: &StatementKind| matches!(kind, StatementKind::Let { op: Op::Function { .. }, .. });
        assert!(!expanded.body.iter().any(|statement| is_function(&statement.kind)));
        Program::new(expanded).unwrap();
    }
}
