//! The words after the dots of an instruction, sorted into kinds.

use crate::keyword::keywords;
use crate::name::Name;
use crate::opcode::Opcode;
use crate::scalar::ScalarType;
use crate::state_space::Space;

/// One word after a dot.
///
/// The same word can mean different things: `.lo` is half of a product in `mul` and a comparison in `setp`,
/// `.nan` a comparison in `setp` and a rule for NaN in `min`. The opcode decides, once, when the form is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Modifier {
    /// `.u32` and the like.
    Type(ScalarType),
    /// `.v2`, `.v4`, `.v8`: that many elements.
    Vector(u8),
    /// `.global` and the like.
    Space(Space),
    /// `.rn` and the like.
    Rounding(Rounding),
    /// `.lt` and the like.
    Compare(Compare),
    /// `.add`, `.and`, `.cas` and the like: the operation of an atomic, or how `setp` combines.
    Operation(Operation),
    /// `.lo`, `.hi`, `.wide` of a product.
    Part(Part),
    /// `.relaxed`, `.volatile` and the like.
    Order(Order),
    /// `.cta`, `.gpu`, `.sys`, `.cluster`.
    Scope(Scope),
    /// `.ca`, `.L2::128B` and the like: hints that change no value.
    Cache(Cache),
    /// `.up`, `.down`, `.bfly`, `.idx`.
    Shuffle(Shuffle),
    /// `.all`, `.any`, `.uni`, `.ballot` of a vote.
    Vote(Vote),
    /// `.f4e` and the like of `prmt`.
    Permute(Permute),
    /// `.finite` and the like of `testp`.
    Test(Test),
    /// A word that switches one property on.
    Flag(Flag),
    /// Any other word.
    Other(Name),
}

keywords! {
    /// How a result is rounded.
    pub enum Rounding {
        Rn = "rn", Rz = "rz", Rm = "rm", Rp = "rp", Rna = "rna", Rs = "rs",
        Rni = "rni", Rzi = "rzi", Rmi = "rmi", Rpi = "rpi",
    }
}

keywords! {
    /// A comparison. The variants ending in `u` are also true when an operand is NaN; `lo`, `ls`, `hi`, `hs`
    /// compare unsigned.
    pub enum Compare {
        Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge",
        Lo = "lo", Ls = "ls", Hi = "hi", Hs = "hs",
        Equ = "equ", Neu = "neu", Ltu = "ltu", Leu = "leu", Gtu = "gtu", Geu = "geu",
        Num = "num", Nan = "nan",
    }
}

keywords! {
    /// What an atomic or a reduction does, or how `setp` combines its result with a predicate.
    pub enum Operation {
        Add = "add", Inc = "inc", Dec = "dec", Min = "min", Max = "max", And = "and", Or = "or", Xor = "xor",
        Exch = "exch", Cas = "cas", Popc = "popc",
    }
}

keywords! {
    /// Which part of a product.
    pub enum Part { Lo = "lo", Hi = "hi", Wide = "wide" }
}

keywords! {
    /// Ordering of a memory access.
    pub enum Order {
        Weak = "weak", Relaxed = "relaxed", Acquire = "acquire", Release = "release", AcqRel = "acq_rel",
        Sc = "sc", Volatile = "volatile", Mmio = "mmio",
    }
}

keywords! {
    /// The threads an ordering holds for. `gl` is the old spelling of `gpu` in `membar`.
    pub enum Scope { Cta = "cta", Cluster = "cluster", Gpu = "gpu", Sys = "sys", Gl = "gl" }
}

keywords! {
    /// Cache hints: they change how fast an access is. `nc` also promises that no thread of the launch writes the memory.
    pub enum Cache {
        Ca = "ca", Cg = "cg", Cs = "cs", Cv = "cv", Lu = "lu", Wb = "wb", Wt = "wt", Nc = "nc",
        L1EvictNormal = "L1::evict_normal", L1EvictUnchanged = "L1::evict_unchanged",
        L1EvictFirst = "L1::evict_first", L1EvictLast = "L1::evict_last", L1NoAllocate = "L1::no_allocate",
        L2EvictNormal = "L2::evict_normal", L2EvictFirst = "L2::evict_first", L2EvictLast = "L2::evict_last",
        L2CacheHint = "L2::cache_hint",
        L264B = "L2::64B", L2128B = "L2::128B", L2256B = "L2::256B",
        L1 = "L1", L2 = "L2",
    }
}

keywords! {
    /// How `shfl` picks the lane.
    pub enum Shuffle { Up = "up", Down = "down", Bfly = "bfly", Idx = "idx" }
}

keywords! {
    /// What `vote` and `match` ask.
    pub enum Vote { All = "all", Any = "any", Uni = "uni", Ballot = "ballot" }
}

keywords! {
    /// Byte selection modes of `prmt`.
    pub enum Permute { F4e = "f4e", B4e = "b4e", Rc8 = "rc8", Ecl = "ecl", Ecr = "ecr", Rc16 = "rc16" }
}

keywords! {
    /// What `testp` asks.
    pub enum Test {
        Finite = "finite", Infinite = "infinite", Number = "number", NotANumber = "notanumber",
        Normal = "normal", Subnormal = "subnormal",
    }
}

keywords! {
    /// Words that switch one property on.
    pub enum Flag {
        Ftz = "ftz", Sat = "sat", Satfinite = "satfinite", Relu = "relu", Approx = "approx", Full = "full",
        Noftz = "noftz", Cc = "cc", Nan = "NaN", XorSign = "xorsign", Abs = "abs", Scaled = "scaled",
        To = "to", Uni = "uni", Sync = "sync", Aligned = "aligned", Arrive = "arrive", Wait = "wait",
        Red = "red", Warp = "warp", Wrap = "wrap", Clamp = "clamp", Left = "l", Right = "r",
        Shiftamt = "shiftamt", Idx = "idx", Pack = "pack", Async = "async", Bulk = "bulk",
        Mode = "mode", Noinc = "noinc", Noreturn = "noreturn", Unified = "unified", Trap = "trap", Zero = "zero",
        CommitGroup = "commit_group", WaitGroup = "wait_group", WaitAll = "wait_all",
        Tensor = "tensor", TensorMap = "tensormap", Proxy = "proxy", Mbarrier = "mbarrier", MbarrierInit = "mbarrier_init",
        Init = "init", Inval = "inval", TestWait = "test_wait", TryWait = "try_wait",
        ExpectTx = "expect_tx", CompleteTx = "complete_tx", ArriveDrop = "arrive_drop", NoComplete = "noComplete",
        PendingCount = "pending_count", Parity = "parity", Read = "read", Reduce = "reduce", Prefetch = "prefetch",
    }
}

impl Modifier {
    /// Reads one word after a dot of an instruction with `opcode`.
    pub(crate) fn read(opcode: Opcode, word: &str) -> Self {
        if let Some(own) = Self::read_special(opcode, word) {
            return own;
        }
        if let Some(ty) = ScalarType::from_keyword(word) {
            return Self::Type(ty);
        }
        let arity = match word {
            "v2" => 2,
            "v4" => 4,
            "v8" => 8,
            _ => 0,
        };
        if arity != 0 {
            return Self::Vector(arity);
        }
        Space::from_keyword(word)
            .map(Self::Space)
            .or_else(|| Rounding::from_keyword(word).map(Self::Rounding))
            .or_else(|| Operation::from_keyword(word).map(Self::Operation))
            .or_else(|| Part::from_keyword(word).map(Self::Part))
            .or_else(|| Order::from_keyword(word).map(Self::Order))
            .or_else(|| Scope::from_keyword(word).map(Self::Scope))
            .or_else(|| Cache::from_keyword(word).map(Self::Cache))
            .or_else(|| Flag::from_keyword(word).map(Self::Flag))
            .unwrap_or_else(|| Self::Other(Name::from(word)))
    }

    /// The words whose meaning belongs to one opcode.
    fn read_special(opcode: Opcode, word: &str) -> Option<Self> {
        match opcode {
            Opcode::Setp | Opcode::Set | Opcode::Vset | Opcode::Vset2 | Opcode::Vset4 => {
                Compare::from_keyword(word).map(Self::Compare)
            }
            Opcode::Shfl => Shuffle::from_keyword(word).map(Self::Shuffle),
            Opcode::Vote | Opcode::Match => Vote::from_keyword(word).map(Self::Vote),
            Opcode::Prmt => Permute::from_keyword(word).map(Self::Permute),
            Opcode::Testp => Test::from_keyword(word).map(Self::Test),
            _ => None,
        }
    }

    /// The word as written, without its dot.
    pub fn keyword(&self) -> &str {
        match self {
            Self::Type(x) => x.keyword(),
            Self::Vector(2) => "v2",
            Self::Vector(4) => "v4",
            Self::Vector(_) => "v8",
            Self::Space(x) => x.keyword(),
            Self::Rounding(x) => x.keyword(),
            Self::Compare(x) => x.keyword(),
            Self::Operation(x) => x.keyword(),
            Self::Part(x) => x.keyword(),
            Self::Order(x) => x.keyword(),
            Self::Scope(x) => x.keyword(),
            Self::Cache(x) => x.keyword(),
            Self::Shuffle(x) => x.keyword(),
            Self::Vote(x) => x.keyword(),
            Self::Permute(x) => x.keyword(),
            Self::Test(x) => x.keyword(),
            Self::Flag(x) => x.keyword(),
            Self::Other(x) => x,
        }
    }
}
