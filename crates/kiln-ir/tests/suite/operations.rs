//! Every operation on every type, on numbers at the edges, against the executor; and what the documentation says of
//! each edge, one sentence, one check.

use crate::rig::ptxas::{assemble, find_ptxas};
use crate::rig::{Launch, Left, interpret, simulate};
use kiln_ir::{
    BinaryOp, Buffer, BufferId, CompareOp, Draft, Extent, Literal, MathFunction, MemoryOperand, Op, Operand,
    Program, PtxTarget, Role, SourceLocation, Statement, StatementKind, ThreadOrder, Type, UnaryOp, Value,
    ValueId,
};

const TARGETS: [u32; 3] = [70, 80, 90];

/// Numbers at the edges of a type, and some between.
fn edges(ty: Type) -> Vec<Literal> {
    let width = ty.bits();
    if ty == Type::Bool {
        return vec![Literal::from(false), Literal::from(true)];
    }
    let mut list: Vec<Literal> =
        [0, 1, 2, 3, 7, 100, u64::MAX, u64::MAX - 1, 1 << (width - 1), (1 << (width - 1)) - 1]
            .into_iter()
            .chain([(1 << (width - 1)) + 1, 0x55aa_1234_fedc_9876, 1 << (width / 2), (1 << (width / 2)) - 1])
            .map(|bits| Literal::new(ty, bits))
            .collect();
    if ty.is_float() {
        let numbers =
            [0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, 0.1, 127.5, 255.9, -129.0, 65504.0, 65520.0, 1e9, -1e9];
        let large =
            [2147483647.0, 2147483648.0, 4294967295.5, 9.3e18, 1.9e19, -1e19, 1e38, 3.4e38, 1e-40, 1e300];
        let others =
            [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, 1.0 + 1.0 / 256.0, 1.0 + 1.0 / 2048.0];
        // Ties, and what lies right beside them, for every smaller format.
        let ties = [
            1.00390625,
            1.003906250001,
            1.0117188,
            2049.0,
            2049.0001,
            16777217.0,
            16777219.0,
            4.3e-41,
            2e-45,
        ];
        let all = numbers.into_iter().chain(large).chain(others).chain(ties);
        list.extend(all.map(|value| Literal::float(ty, value)));
    } else {
        // What a float of fewer digits cannot hold, and its ties.
        let ties = [257, 258, 259, 0x101_0001, 0x1_0000_0001, 0x8040_0000_0000_0000, 0x8080_0000_0000_0001];
        list.extend(ties.into_iter().map(|bits| Literal::new(ty, bits)));
    }
    list
}

/// A program that applies an operation to elements of buffers, thread by thread.
fn program(types: &[Type], result: Type, flush: bool, make: impl Fn(&[Operand]) -> Op) -> Program {
    let mut draft = Draft::new("apply");
    draft.block = [64, 1, 1];
    draft.flush = flush;
    let buffer = |name: String, element: Type, role: Role| Buffer {
        name,
        element,
        role,
        extent: Extent::Dynamic,
        unchecked: false,
    };
    let add = |draft: &mut Draft, op: Op, ty: Type| {
        draft.values.push(Value { name: None, ty });
        let value = ValueId(draft.values.len() as u32 - 1);
        draft
            .body
            .push(Statement { kind: StatementKind::Let { value, op }, location: SourceLocation::Unknown });
        Operand::from(value)
    };
    let index = add(&mut draft, Op::Builtin(kiln_ir::Builtin::Global(kiln_ir::Axis::X)), Type::U64);
    let mut operands = Vec::new();
    for (at, ty) in types.iter().enumerate() {
        draft.buffers.push(buffer(format!("x{at}"), *ty, Role::Input));
        let memory = MemoryOperand::Buffer(BufferId(at as u32));
        operands.push(add(&mut draft, Op::Load { memory, index }, *ty));
    }
    let value = add(&mut draft, make(&operands), result);
    draft.buffers.push(buffer("y".to_owned(), result, Role::Output));
    let memory = MemoryOperand::Buffer(BufferId(types.len() as u32));
    draft.body.push(Statement {
        kind: StatementKind::Store { memory, index, value },
        location: SourceLocation::Unknown,
    });
    Program::new(draft).unwrap()
}

fn bytes(literals: &[Literal]) -> Vec<u8> {
    let size = |literal: &Literal| literal.ty().bytes() as usize;
    literals.iter().flat_map(|literal| literal.bits().to_le_bytes()[..size(literal)].to_vec()).collect()
}

fn literals(ty: Type, bytes: &[u8]) -> Vec<Literal> {
    let literal = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Literal::new(ty, u64::from_le_bytes(word))
    };
    bytes.chunks(ty.bytes() as usize).map(literal).collect()
}

/// Runs an operation on all combinations of edges, on the interpreter and on the executor.
fn agree(types: &[Type], result: Type, make: impl Fn(&[Operand]) -> Op) {
    let mut rows: Vec<Vec<Literal>> = vec![Vec::new()];
    for ty in types {
        let edges = edges(*ty);
        rows = rows.iter().flat_map(|row| edges.iter().map(|edge| [&row[..], &[*edge]].concat())).collect();
    }
    // Three operands have too many combinations; a part of them that has every pair of neighbours will do.
    if types.len() > 2 {
        rows = rows.into_iter().step_by(13).collect();
    }
    let flushes: &[bool] =
        if types.contains(&Type::F32) || result == Type::F32 { &[false, true] } else { &[false] };
    for flush in flushes {
        let program = program(types, result, *flush, &make);
        let mut buffers: Vec<Vec<u8>> =
            (0..types.len()).map(|at| bytes(&rows.iter().map(|row| row[at]).collect::<Vec<_>>())).collect();
        buffers.push(vec![0; rows.len() * result.bytes() as usize]);
        let grid = [rows.len().div_ceil(64) as u32, 1, 1];
        let launch = Launch { grid, dynamic_shared_bytes: 0, scalars: Vec::new(), buffers };
        let results = |left: Left| match left {
            Left::Buffers(buffers) => literals(result, &buffers[types.len()]),
            Left::Trap { .. } => panic!("nothing traps here"),
        };
        let meaning = results(interpret(&program, &launch, ThreadOrder::Ascending).0);
        for number in TARGETS {
            let target = PtxTarget::new(number).unwrap();
            let found =
                results(simulate(&program, &launch, target, 0).unwrap_or_else(|what| panic!("{what}")));
            for ((row, expected), found) in rows.iter().zip(&meaning).zip(found) {
                let nans = result.is_float() && expected.as_float().is_nan() && found.as_float().is_nan();
                let operands: Vec<String> = row.iter().map(ToString::to_string).collect();
                assert!(
                    *expected == found || nans,
                    "sm_{number}, flush {flush}: {found} and not {expected} for {}\n{program}",
                    operands.join(", ")
                );
            }
        }
    }
}

/// Makes an operation of its operands.
type Make = Box<dyn Fn(&[Operand]) -> Op>;

/// An operation on operands of these types.
struct Case {
    types: Vec<Type>,
    result: Type,
    make: Make,
}

impl Case {
    fn new(types: &[Type], result: Type, make: impl Fn(&[Operand]) -> Op + 'static) -> Self {
        Self { types: types.to_vec(), result, make: Box::new(make) }
    }
}

fn unary_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ty in Type::ALL.iter().copied() {
        for op in UnaryOp::ALL.iter().copied().filter(|op| op.accepts(ty)) {
            cases.push(Case::new(&[ty], op.result(ty), move |a| Op::Unary { op, ty, a: a[0] }));
        }
        for function in MathFunction::ALL.iter().copied().filter(|function| function.accepts(ty)) {
            cases.push(Case::new(&[ty], ty, move |a| Op::Function { function, ty, a: a[0] }));
        }
    }
    cases
}

fn binary_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ty in Type::ALL.iter().copied() {
        for op in BinaryOp::ALL.iter().copied().filter(|op| op.accepts(ty)) {
            cases.push(Case::new(&[ty, op.second(ty)], ty, move |a| Op::Binary { op, ty, a: a[0], b: a[1] }));
        }
    }
    cases
}

fn choice_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ty in Type::ALL.iter().copied() {
        for op in CompareOp::ALL.iter().copied().filter(|op| op.accepts(ty)) {
            cases.push(Case::new(&[ty, ty], Type::Bool, move |a| Op::Compare { op, ty, a: a[0], b: a[1] }));
        }
        let zero = Literal::zero(ty).into();
        cases.push(Case::new(&[Type::Bool, ty], ty, move |a| Op::Select {
            ty,
            condition: a[0],
            a: a[1],
            b: zero,
        }));
    }
    cases
}

fn conversion_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for from in Type::ALL.iter().copied() {
        for to in Type::ALL.iter().copied() {
            cases.push(Case::new(&[from], to, move |a| Op::Convert { from, to, a: a[0] }));
            if from.bytes() == to.bytes() && from != Type::Bool && to != Type::Bool && !from.is_float() {
                cases.push(Case::new(&[from], to, move |a| Op::Bitcast { from, to, a: a[0] }));
            }
        }
    }
    cases
}

fn fused_cases() -> Vec<Case> {
    let types = [Type::F16, Type::Bf16, Type::F32, Type::F64];
    let case = |ty: Type| Case::new(&[ty; 3], ty, move |a| Op::Fma { ty, a: a[0], b: a[1], c: a[2] });
    types.into_iter().map(case).collect()
}

fn all_agree(cases: Vec<Case>) {
    for case in cases {
        agree(&case.types, case.result, &case.make);
    }
}

#[test]
fn unary_operations_agree() {
    all_agree(unary_cases());
}

#[test]
fn divisions_by_literals_agree() {
    for ty in Type::ALL.iter().copied().filter(|ty| ty.is_integer()) {
        let others =
            [5, 6, 9, 10, 11, 25, 60, 125, 127, 641, 1000, 86400, 0xcccc_cccd, 0x1_0000_0001].into_iter();
        let others = others.flat_map(|bits: u64| [bits, bits.wrapping_neg()]);
        let divisors = edges(ty).into_iter().chain(others.map(|bits| Literal::new(ty, bits)));
        for divisor in divisors {
            for op in [BinaryOp::Div, BinaryOp::Rem] {
                agree(&[ty], ty, |operands| Op::Binary { op, ty, a: operands[0], b: divisor.into() });
            }
        }
    }
}

#[test]
fn binary_operations_agree() {
    all_agree(binary_cases());
}

#[test]
fn comparisons_and_choices_agree() {
    all_agree(choice_cases());
}

#[test]
fn conversions_agree() {
    all_agree(conversion_cases());
}

#[test]
fn fused_products_agree() {
    all_agree(fused_cases());
}

#[test]
fn ptxas_accepts_every_operation_on_every_type() {
    let Some(ptxas) = find_ptxas() else {
        println!("skipped: no ptxas; set KILN_PTXAS to its path, or put it on PATH");
        return;
    };
    let cases = [unary_cases(), binary_cases(), choice_cases(), conversion_cases(), fused_cases()];
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    for target in TARGETS.map(|number| PtxTarget::new(number).unwrap()) {
        // Every program is an entry of one module; the assembler names the one it does not like.
        let mut module = String::new();
        for (at, case) in cases.iter().enumerate() {
            for flush in [false, true] {
                let text = program(&case.types, case.result, flush, &case.make).emit(target).text;
                let text = text.replace(".entry apply(", &format!(".entry apply_{at}_{flush}("));
                let (header, body) = text.split_once("\n\n").unwrap();
                if module.is_empty() {
                    module = format!("{header}\n\n");
                }
                assert!(
                    module.starts_with(header),
                    "these operations need nothing newer than the target itself"
                );
                module.push_str(body);
            }
        }
        let (accepted, log) = assemble(&ptxas, "operations", &module, target);
        assert!(accepted, "{target}:\n{log}");
    }
}
