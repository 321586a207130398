//! The operation of an instruction: the word before the first dot.

use std::cmp::Reverse;

use crate::keyword::keywords;
use crate::module::PtxVersion;

keywords! {
    /// The first word of an instruction.
    ///
    /// The list is complete for PTX ISA [`Opcode::KNOWN_VERSION`]. [`Opcode::Unknown`] stands for every other word; the form keeps
    /// its text.
    pub enum Opcode {
        // Integer arithmetic.
        Add = "add", Sub = "sub", Mul = "mul", Mad = "mad", Mul24 = "mul24", Mad24 = "mad24", Sad = "sad",
        Div = "div", Rem = "rem", Abs = "abs", Neg = "neg", Min = "min", Max = "max",
        Addc = "addc", Subc = "subc", Madc = "madc", Dp4a = "dp4a", Dp2a = "dp2a",
        Popc = "popc", Clz = "clz", Bfind = "bfind", Fns = "fns", Brev = "brev", Bfe = "bfe", Bfi = "bfi",
        Bmsk = "bmsk", Szext = "szext", Clmad = "clmad",
        // Floating point.
        Fma = "fma", Rcp = "rcp", Sqrt = "sqrt", Rsqrt = "rsqrt", Sin = "sin", Cos = "cos", Lg2 = "lg2",
        Ex2 = "ex2", Tanh = "tanh", Testp = "testp", Copysign = "copysign",
        // Comparison, selection, logic.
        Set = "set", Setp = "setp", Selp = "selp", Slct = "slct",
        And = "and", Or = "or", Xor = "xor", Not = "not", Cnot = "cnot", Lop3 = "lop3",
        Shf = "shf", Shl = "shl", Shr = "shr", Prmt = "prmt",
        // Movement and conversion.
        Mov = "mov", Ld = "ld", Ldu = "ldu", St = "st", Cvt = "cvt", Cvta = "cvta", Isspacep = "isspacep",
        Prefetch = "prefetch", Prefetchu = "prefetchu", Applypriority = "applypriority", Discard = "discard",
        Createpolicy = "createpolicy", Mapa = "mapa", Getctarank = "getctarank", Cp = "cp",
        Multimem = "multimem", Tensormap = "tensormap",
        // Across the threads of a warp.
        Shfl = "shfl", Vote = "vote", Match = "match", Activemask = "activemask", Redux = "redux",
        Elect = "elect",
        // Atomics and ordering.
        Atom = "atom", Red = "red", Membar = "membar", Fence = "fence",
        Bar = "bar", Barrier = "barrier", Mbarrier = "mbarrier", Griddepcontrol = "griddepcontrol",
        Clusterlaunchcontrol = "clusterlaunchcontrol",
        // Control.
        Bra = "bra", Brx = "brx", Call = "call", Ret = "ret", Exit = "exit", Trap = "trap", Brkpt = "brkpt",
        Nanosleep = "nanosleep", Pmevent = "pmevent", Setmaxnreg = "setmaxnreg",
        Alloca = "alloca", Stacksave = "stacksave", Stackrestore = "stackrestore",
        // Textures and surfaces.
        Tex = "tex", Tld4 = "tld4", Txq = "txq", Istypep = "istypep",
        Suld = "suld", Sust = "sust", Sured = "sured", Suq = "suq",
        // Matrices.
        Wmma = "wmma", Mma = "mma", Wgmma = "wgmma", Tcgen05 = "tcgen05",
        Ldmatrix = "ldmatrix", Stmatrix = "stmatrix", Movmatrix = "movmatrix",
        // Video.
        Vadd = "vadd", Vsub = "vsub", Vabsdiff = "vabsdiff", Vmin = "vmin", Vmax = "vmax", Vshl = "vshl",
        Vshr = "vshr", Vmad = "vmad", Vset = "vset",
        Vadd2 = "vadd2", Vsub2 = "vsub2", Vavrg2 = "vavrg2", Vabsdiff2 = "vabsdiff2", Vmin2 = "vmin2",
        Vmax2 = "vmax2", Vset2 = "vset2",
        Vadd4 = "vadd4", Vsub4 = "vsub4", Vavrg4 = "vavrg4", Vabsdiff4 = "vabsdiff4", Vmin4 = "vmin4",
        Vmax4 = "vmax4", Vset4 = "vset4",
        Unknown = "?",
    }
}

impl Opcode {
    /// The newest PTX ISA whose instructions are all listed. A module of a newer version may use others.
    pub const KNOWN_VERSION: PtxVersion = PtxVersion { major: 9, minor: 0 };

    /// The opcode whose spelling is nearest to a word that is none, if one is near enough to be meant.
    ///
    /// ```
    /// use kiln_ptx::Opcode;
    ///
    /// assert_eq!(Opcode::nearest("madx"), Some(Opcode::Mad));
    /// assert_eq!(Opcode::nearest("frobnicate"), None);
    /// ```
    pub fn nearest(word: &str) -> Option<Self> {
        let limit = word.chars().count().div_ceil(3).min(MAX_EDITS);
        let known = Self::ALL.iter().filter(|opcode| **opcode != Self::Unknown);
        let near =
            known.map(|opcode| (edits(word, opcode.keyword()), *opcode)).filter(|(edits, _)| *edits <= limit);
        // Of those that are equally near, the one that begins alike.
        let begins =
            |opcode: Self| word.bytes().zip(opcode.keyword().bytes()).take_while(|(a, b)| a == b).count();
        near.min_by_key(|(edits, opcode)| (*edits, Reverse(begins(*opcode)))).map(|(_, opcode)| opcode)
    }
}

/// The most letters by which a misspelt word may differ.
const MAX_EDITS: usize = 3;

/// How many letters must be inserted, removed or replaced to turn one word into the other.
fn edits(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, b) in other.bytes().enumerate() {
            let above = row[column + 1];
            let replaced = diagonal + usize::from(a != b);
            row[column + 1] = replaced.min(above + 1).min(row[column] + 1);
            diagonal = above;
        }
    }
    row[other.len()]
}
