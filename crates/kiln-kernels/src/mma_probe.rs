//! Probes of tensor cores: one instruction of a whole warp, with the results of a GPU.

use std::fmt::Write;

use crate::mma_operands::{Spread, number};
use crate::seeded_inputs::Random;

/// What kind of instruction a probe runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixProbeKind {
    /// `mma`.
    Multiply,
    /// `ldmatrix`.
    Load,
    /// `stmatrix`.
    Store,
    /// `movmatrix`.
    Transpose,
}

/// Registers of one operand, and the type of what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Registers of each thread.
    pub registers: usize,
    /// `f16`, `s8` and so on.
    pub element: &'static str,
}

/// One instruction in one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixProbe {
    /// The dotted word of the instruction.
    pub text: String,
    /// What it does.
    pub kind: MatrixProbeKind,
    /// What each thread brings.
    pub operands: Vec<Fragment>,
    /// Registers of each thread's result.
    pub results: usize,
}

impl MatrixProbe {
    /// Threads of a warp.
    pub const LANES: usize = 32;

    /// How many warps run it: one for each kind of operands.
    pub const WARPS: usize = Spread::ALL.len();

    /// Bytes of a register.
    pub fn register_bytes(&self) -> usize {
        if self.operands.iter().any(|operand| operand.element == "f64") { 8 } else { 4 }
    }

    /// Registers that each thread loads.
    pub fn loaded(&self) -> usize {
        self.operands.iter().map(|operand| operand.registers).sum()
    }

    /// The registers of all threads: warp by warp, thread by thread.
    pub fn inputs(&self, seed: u64) -> Vec<u8> {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let mut random = Random::new(self.text.bytes().fold(seed, hash));
        let mut bytes = Vec::new();
        for spread in Spread::ALL {
            for _ in 0..Self::LANES {
                for operand in &self.operands {
                    for _ in 0..operand.registers {
                        let word = register(operand.element, spread, &mut random);
                        bytes.extend(&word.to_le_bytes()[..self.register_bytes()]);
                    }
                }
            }
        }
        bytes
    }

    /// Bytes of the results of all threads, in the order of the inputs.
    pub fn result_bytes(&self) -> usize {
        Self::WARPS * Self::LANES * self.results * self.register_bytes()
    }

    /// A module with the kernel `probe(inputs, results)`, for [`MatrixProbe::WARPS`] blocks of one warp.
    pub fn module(&self) -> String {
        let ty = |element: &str| match element {
            "f64" => "f64",
            "f32" => "f32",
            _ => "b32",
        };
        let size = self.register_bytes();
        let mut text = String::from(
            ".version 8.7\n.target sm_90\n.address_size 64\n\n.visible .entry probe(.param .u64 inputs, .param .u64 results)\n{\n\
             .reg .b64 %in, %out, %at;\n.reg .b32 %warp, %lane, %row, %cell;\n.shared .align 16 .b8 cells[512];\n",
        );
        let result_type = self.operands.last().map_or("b32", |operand| ty(operand.element));
        let _ = writeln!(text, ".reg .{result_type} %d<{}>;", self.results.max(1));
        for (at, operand) in self.operands.iter().enumerate() {
            let _ = writeln!(text, ".reg .{} %s{at}_<{}>;", ty(operand.element), operand.registers);
        }
        text.push_str("ld.param.u64 %in, [inputs];\nld.param.u64 %out, [results];\nmov.u32 %warp, %ctaid.x;\nmov.u32 %lane, %tid.x;\n");
        text.push_str("mad.lo.u32 %warp, %warp, 32, %lane;\n");
        let _ = writeln!(text, "mul.wide.u32 %at, %warp, {};\nadd.s64 %in, %in, %at;", self.loaded() * size);
        let _ = writeln!(text, "mul.wide.u32 %at, %warp, {};\nadd.s64 %out, %out, %at;", self.results * size);
        let mut offset = 0;
        for (at, operand) in self.operands.iter().enumerate() {
            for register in 0..operand.registers {
                let _ =
                    writeln!(text, "ld.global.{} %s{at}_{register}, [%in+{offset}];", ty(operand.element));
                offset += size;
            }
        }
        self.instruction(&mut text);
        for register in 0..self.results {
            let _ = writeln!(text, "st.global.{result_type} [%out+{}], %d{register};", register * size);
        }
        text.push_str("ret;\n}\n");
        text
    }

    fn instruction(&self, text: &mut String) {
        let list = |name: &str, count: usize| {
            let names: Vec<String> = (0..count).map(|at| format!("%{name}{at}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let source = |at: usize| list(&format!("s{at}_"), self.operands[at].registers);
        let own = "mov.u32 %cell, cells;\nmad.lo.u32 %cell, %lane, 16, %cell;\n";
        // Rows are named in another order than that of the lanes.
        let rows = |count: usize| {
            format!(
                "mad.lo.u32 %row, %lane, 5, 3;\nand.b32 %row, %row, {};\nmov.u32 %cell, cells;\nmad.lo.u32 %cell, %row, 16, %cell;\n",
                8 * count - 1
            )
        };
        let _ = match self.kind {
            MatrixProbeKind::Multiply => {
                writeln!(
                    text,
                    "{} {}, {}, {}, {};",
                    self.text,
                    list("d", self.results),
                    source(0),
                    source(1),
                    source(2)
                )
            }
            MatrixProbeKind::Transpose => writeln!(text, "{} %d0, %s0_0;", self.text),
            MatrixProbeKind::Load => writeln!(
                text,
                "{own}st.shared.v4.b32 [%cell], {};\nbar.warp.sync 0xffffffff;\n{}{} {}, [%cell];",
                source(0),
                rows(self.results),
                self.text,
                list("d", self.results)
            ),
            MatrixProbeKind::Store => writeln!(
                text,
                "{own}st.shared.v4.b32 [%cell], {{0, 0, 0, 0}};\nbar.warp.sync 0xffffffff;\n{}{} [%cell], {};\n\
                 bar.warp.sync 0xffffffff;\n{own}ld.shared.v4.b32 {}, [%cell];",
                rows(self.operands[0].registers),
                self.text,
                source(0),
                list("d", 4)
            ),
        };
    }
}

/// The bits of one register.
fn register(element: &'static str, spread: Spread, random: &mut Random) -> u64 {
    let bits = crate::mma_operands::bits(element);
    (0..(32 / bits).max(1)).fold(0, |word, at| word | number(element, spread, random) << (at * bits % 64))
}
