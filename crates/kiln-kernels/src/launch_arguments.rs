//! All arguments of a launch.

use crate::argument::CaseArgument;
use crate::buffer::{CaseBuffer, Data};

/// The arguments of a launch, in the order of the kernel's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseArguments {
    list: Vec<CaseArgument>,
}

impl CaseArguments {
    pub(crate) fn new(list: Vec<CaseArgument>) -> Self {
        Self { list }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &CaseArgument> {
        self.list.iter()
    }

    /// The buffers, in order.
    pub fn buffers(&self) -> impl Iterator<Item = &CaseBuffer> {
        self.list.iter().filter_map(CaseArgument::buffer)
    }

    /// Packs values and addresses as a launch takes them: each at its alignment. `addresses` are those of the buffers.
    ///
    /// ```
    /// let case = kiln_kernels::cases().iter().find(|case| case.name == "saxpy").unwrap();
    /// // A float, two pointers, a count.
    /// assert_eq!(case.arguments(1).pack(&[0x1000, 0x2000]).len(), 4 + 4 + 8 + 8 + 4);
    /// ```
    pub fn pack(&self, addresses: &[u64]) -> Vec<u8> {
        let mut packed = Vec::new();
        let mut addresses = addresses.iter();
        for argument in &self.list {
            let (bytes, align) = match argument {
                CaseArgument::Value { bytes, align } => (bytes.clone(), *align),
                CaseArgument::Buffer(_) => (addresses.next().copied().unwrap_or(0).to_le_bytes().to_vec(), 8),
            };
            packed.resize(packed.len().next_multiple_of(align.max(1)), 0);
            packed.extend(bytes);
        }
        packed
    }

    /// The same arguments with other contents of the buffers, given as bytes in order.
    pub fn with_contents(&self, contents: &[Vec<u8>]) -> Self {
        let mut contents = contents.iter();
        let list = self.list.iter().map(|argument| match argument {
            CaseArgument::Buffer(buffer) => {
                let bytes = contents.next().map_or(&[][..], |bytes| bytes);
                CaseArgument::Buffer(CaseBuffer { data: buffer.data.from_bytes(bytes), ..buffer.clone() })
            }
            value => value.clone(),
        });
        Self { list: list.collect() }
    }

    /// Whether the buffers of `actual` count as equal to these.
    ///
    /// # Errors
    /// The first difference: which argument, which element.
    pub fn compare(&self, actual: &Self) -> Result<(), String> {
        for (at, (want, have)) in self.list.iter().zip(&actual.list).enumerate() {
            if let (Some(want), Some(have)) = (want.buffer(), have.buffer()) {
                want.check(&have.data).map_err(|text| format!("argument {at}: {text}"))?;
            }
        }
        Ok(())
    }

    fn data(&mut self, at: usize) -> Option<&mut Data> {
        match self.list.get_mut(at) {
            Some(CaseArgument::Buffer(buffer)) => Some(&mut buffer.data),
            _ => None,
        }
    }

    fn value(&self, at: usize) -> [u8; 8] {
        let mut all = [0; 8];
        if let Some(CaseArgument::Value { bytes, .. }) = self.list.get(at) {
            all.iter_mut().zip(bytes).for_each(|(into, from)| *into = *from);
        }
        all
    }

    /// The integer at a place, its sign not extended.
    pub(crate) fn integer(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.value(at))
    }

    /// The float at a place.
    pub(crate) fn float(&self, at: usize) -> f32 {
        f32::from_bits(self.integer(at) as u32)
    }
}

/// Accessors by type; a wrong place or type is an empty list, which no comparison accepts.
macro_rules! lists {
    ($($name:ident: $variant:ident($ty:ty)),*) => {
        impl CaseArguments {$(
            pub(crate) fn $name(&self, at: usize) -> Vec<$ty> {
                match self.list.get(at) {
                    Some(CaseArgument::Buffer(CaseBuffer { data: Data::$variant(list), .. })) => list.clone(),
                    _ => Vec::new(),
                }
            }
        )*}
    };
}

lists!(
    u8s: U8(u8), i8s: I8(i8), u16s: U16(u16), i16s: I16(i16), u32s: U32(u32), i32s: I32(i32), u64s: U64(u64),
    i64s: I64(i64), f32s: F32(f32), f64s: F64(f64)
);

impl CaseArguments {
    /// Replaces the content of a buffer.
    pub(crate) fn set(&mut self, at: usize, list: impl Into<Data>) {
        if let Some(data) = self.data(at) {
            *data = list.into();
        }
    }
}
