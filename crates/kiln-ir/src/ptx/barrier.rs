//! Emits barriers, votes of a block, and traps.

use super::parameter_layout::TrapStatus;
use super::register::{Class, Register};
use super::writer::{Writer, ins};
use crate::operation::{Axis, BlockVote, Operand};

impl Writer<'_> {
    pub(super) fn block_vote(&mut self, vote: BlockVote, a: Operand) -> Register {
        let a = self.register(a).to_string();
        match vote {
            BlockVote::Any => self.compute(Class::Pred, "bar.red.or.pred", &["0", &a]),
            BlockVote::All => self.compute(Class::Pred, "bar.red.and.pred", &["0", &a]),
            BlockVote::Count => self.compute(Class::B32, "bar.red.popc.u32", &["0", &a]),
        }
    }

    /// The grid barrier: one thread of each block increments a counter and waits until it reaches the number of blocks
    /// times the number of barriers so far. A trap of another thread ends the wait and the thread.
    pub(super) fn meet_in_grid(&mut self) {
        let (word, status) = (self.grid_barrier(), self.status());
        let blocks = self.blocks();
        let round = match self.once.round {
            Some(round) => round,
            None => {
                let round = self.fresh(Class::B64);
                self.early(&format!("mov.u64 {round}, 0"));
                self.once.round = Some(round);
                round
            }
        };
        let thread = self.thread_number().to_string();
        ins!(self, "add.u64 {round}, {round}, {blocks}");
        ins!(self, "bar.sync 0");
        let (wait, met) = (self.label(), self.label());
        let other = self.compute(Class::Pred, "setp.ne.u32", &[&thread, "0"]);
        ins!(self, "@{other} bra {met}");
        ins!(self, "red.release.gpu.global.add.u64 [{word}], 1");
        self.place(wait);
        let arrived =
            self.compute(Class::B64, "ld.acquire.gpu.global.u64", &[&format!("[{word}]")]).to_string();
        let all = self.compute(Class::Pred, "setp.ge.u64", &[&arrived, &round.to_string()]);
        ins!(self, "@{all} bra {met}");
        let state = format!("[{status}+{}]", TrapStatus::STATE);
        let trapped = self.compute(Class::B32, "ld.relaxed.gpu.global.u32", &[&state]).to_string();
        let go_on = self.compute(Class::Pred, "setp.eq.u32", &[&trapped, "0"]);
        ins!(self, "@{go_on} bra {wait}");
        self.place(met);
        ins!(self, "bar.sync 0");
        let trapped = self.compute(Class::B32, "ld.relaxed.gpu.global.u32", &[&state]).to_string();
        let stop = self.compute(Class::Pred, "setp.ne.u32", &[&trapped, "0"]);
        ins!(self, "@{stop} ret");
    }

    /// The number of blocks of the grid.
    fn blocks(&mut self) -> Register {
        let wide = |writer: &mut Self, axis: Axis| {
            let count = writer.compute(Class::B32, "mov.u32", &[&format!("%nctaid.{axis}")]).to_string();
            writer.compute(Class::B64, "cvt.u64.u32", &[&count]).to_string()
        };
        let (x, y, z) = (wide(self, Axis::X), wide(self, Axis::Y), wide(self, Axis::Z));
        let plane = self.compute(Class::B64, "mul.lo.u64", &[&x, &y]).to_string();
        self.compute(Class::B64, "mul.lo.u64", &[&plane, &z])
    }

    /// The first thread to trap stores its index, its block and the code; every trapping thread ends.
    pub(super) fn trap(&mut self, code: Operand) {
        let status = self.status();
        let code = self.operand(code);
        let claim = format!("[{status}+{}]", TrapStatus::STATE);
        let before =
            self.compute(Class::B32, "atom.relaxed.gpu.global.cas.b32", &[&claim, "0", "1"]).to_string();
        let first = self.compute(Class::Pred, "setp.eq.u32", &[&before, "0"]);
        let thread = self.thread_number();
        let block = self.block_number();
        ins!(self, "@{first} st.global.u32 [{status}+{}], {code}", TrapStatus::CODE);
        ins!(self, "@{first} st.global.u32 [{status}+{}], {thread}", TrapStatus::THREAD);
        ins!(self, "@{first} st.global.u64 [{status}+{}], {block}", TrapStatus::BLOCK);
        ins!(self, "ret");
    }

    /// The number of the block in the grid: along x, then y, then z.
    fn block_number(&mut self) -> Register {
        let word = |writer: &mut Self, name: &str, axis: Axis| {
            let word = writer.compute(Class::B32, "mov.u32", &[&format!("%{name}.{axis}")]).to_string();
            writer.compute(Class::B64, "cvt.u64.u32", &[&word]).to_string()
        };
        let (x, y, z) =
            (word(self, "ctaid", Axis::X), word(self, "ctaid", Axis::Y), word(self, "ctaid", Axis::Z));
        let (width, height) = (word(self, "nctaid", Axis::X), word(self, "nctaid", Axis::Y));
        let row = self.compute(Class::B64, "mad.lo.u64", &[&z, &height, &y]).to_string();
        self.compute(Class::B64, "mad.lo.u64", &[&row, &width, &x])
    }
}
