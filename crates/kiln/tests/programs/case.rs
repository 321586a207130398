//! A program with what it is given, and what it means.

use kiln::program::DispatchConfig;
use kiln_ir::{InterpretError, Interpreter, Literal, Program};

pub(crate) struct Case {
    pub(crate) program: Program,
    pub(crate) scalars: Vec<(&'static str, Literal)>,
    /// In the order of the program.
    pub(crate) buffers: Vec<(&'static str, Data)>,
    pub(crate) config: DispatchConfig,
    /// Whether a graph of it is refused, because a trap would not be reported.
    pub(crate) can_trap: bool,
    /// Blocks.
    grid: u32,
}

/// Elements of the types the cases have.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Data {
    F32(Vec<f32>),
    U32(Vec<u32>),
    F64(Vec<f64>),
}

/// What a program does, as the interpreter has it.
pub(crate) enum Meaning {
    /// The bytes of every buffer.
    Buffers(Vec<Vec<u8>>),
    /// The code, the block and the thread in it.
    Trap(u32, u64, u32),
}

impl Data {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::F32(data) => bytemuck::cast_slice(data).to_vec(),
            Self::U32(data) => bytemuck::cast_slice(data).to_vec(),
            Self::F64(data) => bytemuck::cast_slice(data).to_vec(),
        }
    }
}

impl Case {
    pub(crate) fn meaning(&self) -> Meaning {
        let scalars: Vec<Literal> = self.scalars.iter().map(|(_, value)| *value).collect();
        let mut buffers: Vec<Vec<u8>> = self.buffers.iter().map(|(_, data)| data.bytes()).collect();
        match Interpreter::new([self.grid, 1, 1]).run(&self.program, &scalars, &mut buffers) {
            Ok(_) => Meaning::Buffers(buffers),
            Err(InterpretError::Trap { code, block, thread }) => {
                Meaning::Trap(code, u64::from(block[0]), thread[0])
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// `y = a * x + y` and `z = 3 i`, for all but the last element of z; the last block is not full.
pub(crate) fn blend() -> Case {
    const LEN: usize = 100;
    let program = Program::build("blend", |k| {
        let a = k.scalar::<f32>("a");
        let (x, y) = (k.input::<f32>("x"), k.in_out::<f32>("y"));
        let z = k.output::<u32>("z").like(y);
        k.block([32, 1, 1]);
        k.over(y);
        let i = k.global_x();
        y.store(i, a * x.load(i) + y.load(i));
        k.if_((i + 1_u64).lt(z.length()), || z.store(i, i.to::<u32>() * 3_u32));
    });
    Case {
        program: program.unwrap(),
        scalars: vec![("a", 2.5_f32.into())],
        buffers: vec![
            ("x", Data::F32((0..LEN).map(|at| at as f32 / 7.0).collect())),
            ("y", Data::F32((0..LEN).map(|at| 1.0 - at as f32).collect())),
            ("z", Data::U32(vec![0; LEN])),
        ],
        config: DispatchConfig::default(),
        can_trap: false,
        grid: 4,
    }
}

/// Roots of what is not negative; a negative number is a trap.
fn guarded(values: Vec<f64>) -> Case {
    let program = Program::build("guarded", |k| {
        let (x, root) = (k.input::<f64>("x"), k.output::<f64>("root"));
        root.like(x);
        k.block([32, 1, 1]);
        k.over(x);
        let i = k.global_x();
        k.if_(x.load(i).lt(0.0), || k.trap(42_u32));
        root.store(i, x.load(i).sqrt());
    });
    let len = values.len();
    Case {
        program: program.unwrap(),
        scalars: vec![],
        buffers: vec![("x", Data::F64(values)), ("root", Data::F64(vec![0.0; len]))],
        config: DispatchConfig::default(),
        can_trap: true,
        grid: (len as u32).div_ceil(32),
    }
}

/// A program that can trap and does not.
pub(crate) fn does_not_trap() -> Case {
    guarded((0..70).map(f64::from).collect())
}

/// A program that traps, in one thread of its second block.
pub(crate) fn traps() -> Case {
    guarded((0..70).map(|at| f64::from(at) * if at == 45 { -1.0 } else { 1.0 }).collect())
}

/// Every round adds what the neighbour had; the neighbour of a block's last thread is in another block.
pub(crate) fn meets() -> Case {
    let text = "
        kernel meets(inout x: u32[], n: u32) block(32) {
            let i = global.x;
            let next = (i + 1) % len(x);
            for turn in 0..n {
                let sum = x[i] + x[next];
                barrier grid;
                x[i] = sum;
                barrier grid;
            }
        }";
    Case {
        program: Program::parse(text).unwrap(),
        scalars: vec![("n", 5_u32.into())],
        buffers: vec![("x", Data::U32((0..128).map(|at| at * at).collect()))],
        config: DispatchConfig { grid: Some(4.into()), ..DispatchConfig::default() },
        can_trap: false,
        grid: 4,
    }
}
