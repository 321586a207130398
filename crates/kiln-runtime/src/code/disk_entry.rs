//! Compiled code as an entry of the disk cache holds it.

use std::time::Duration;

use crate::code_cache::{CacheEntry, EntryKind};

/// What a compilation made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Payload {
    pub(super) ptx: String,
    pub(super) cubin: Option<Vec<u8>>,
    /// Name expressions and what they are called in the code.
    pub(super) names: Vec<(String, String)>,
    /// How long it took.
    pub(super) compile_time: Duration,
}

impl Payload {
    /// PTX with nothing else known of it.
    pub(super) fn of_ptx(ptx: String) -> Self {
        Self { ptx, cubin: None, names: Vec::new(), compile_time: Duration::ZERO }
    }

    /// As an entry of the cache.
    pub(super) fn entry(&self) -> CacheEntry {
        let kind = if self.cubin.is_some() { EntryKind::CubinWithPtx } else { EntryKind::Ptx };
        let kernels = kernel_names(&self.ptx, &self.names);
        CacheEntry { kind, compile_time: self.compile_time, kernels, payload: self.encode() }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |part: &[u8]| {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        };
        put(self.ptx.as_bytes());
        put(self.cubin.as_deref().unwrap_or_default());
        for (name, lowered) in &self.names {
            put(name.as_bytes());
            put(lowered.as_bytes());
        }
        bytes
    }

    /// What an entry of the cache holds.
    pub(super) fn from_entry(entry: &CacheEntry) -> Option<Self> {
        let mut rest = entry.payload.as_slice();
        let mut take = || -> Option<&[u8]> {
            let (length, behind) = rest.split_first_chunk::<8>()?;
            let (part, behind) =
                behind.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            rest = behind;
            Some(part)
        };
        let text = |part: &[u8]| String::from_utf8(part.to_vec()).ok();
        let ptx = text(take()?)?;
        let cubin = take()?.to_vec();
        let mut names = Vec::new();
        while let Some(name) = take() {
            names.push((text(name)?, text(take()?)?));
        }
        let cubin = (entry.kind == EntryKind::CubinWithPtx).then_some(cubin);
        Some(Self { ptx, cubin, names, compile_time: entry.compile_time })
    }
}

/// The kernels of PTX: by the name expression of the source where there is one, else by their name in the PTX.
pub(super) fn kernel_names(ptx: &str, expressions: &[(String, String)]) -> Vec<String> {
    let Ok(module) = kiln_ptx::PtxModule::parse(ptx) else { return Vec::new() };
    let name = |entry: &str| {
        let expression = expressions.iter().find(|(_, lowered)| lowered == entry);
        expression.map_or(entry, |(expression, _)| expression).to_owned()
    };
    module.entries().map(|entry| name(&entry.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_reads_back_and_what_is_cut_does_not() {
        let payload = Payload {
            ptx: ".version 8.0".into(),
            cubin: Some(vec![1, 2, 3]),
            names: vec![("scale<float>".into(), "_Z5scaleIfEv".into())],
            compile_time: Duration::from_millis(7),
        };
        let entry = payload.entry();
        assert_eq!(Payload::from_entry(&entry), Some(payload));
        for cut in 0..20 {
            let payload = entry.payload[..cut].to_vec();
            assert_eq!(Payload::from_entry(&CacheEntry { payload, ..entry.clone() }), None, "{cut}");
        }
    }
}
