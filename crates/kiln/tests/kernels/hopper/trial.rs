//! One kernel that runs on the simulated device and on a GPU, and what it must leave in memory.

use kiln::code::Source;
use kiln::tensor::TensorMap;
use kiln::{DeviceRuntime, Result};

/// Differences that are listed; the others are counted.
const LISTED: usize = 10;

/// A kernel `k`, launched once. Its parameters are a tensor map, if there is one, and the addresses of input and output.
pub(crate) struct Trial {
    /// The form, in words that tell it from the others.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) cluster: u32,
    pub(crate) tensor: Option<Tensor>,
    pub(crate) input: Vec<u8>,
    /// What the output holds before.
    pub(crate) output: Vec<u8>,
    /// Bytes of one value of the result.
    pub(crate) unit: usize,
    /// What is wrong with a result, without looking at a device.
    pub(crate) oracle: Oracle,
}

/// Says what is wrong with a result, and what a value of it was computed from.
pub(crate) trait Judge {
    fn wrong(&self, result: &[u8]) -> Vec<String>;

    fn operands(&self, unit: usize) -> String;
}

/// What a result must be.
pub(crate) enum Oracle {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What the GPU gives: CUDA does not say.
    Any,
    /// What a judge accepts.
    Judge(Box<dyn Judge>),
}

/// A tensor that the kernel reaches through its map.
pub(crate) struct Tensor {
    /// Its address is filled in when there is one.
    pub(crate) map: TensorMap,
    pub(crate) content: Vec<u8>,
    pub(crate) is_written: bool,
}

impl Trial {
    /// What is in the tensor and then in the output when the kernel is done.
    pub(crate) fn run(&self, gpu: &DeviceRuntime) -> Result<Vec<u8>> {
        let kernel = gpu.kernel(Source::Ptx(&self.text), "k")?;
        let (input, output) = (gpu.upload(&self.input)?, gpu.upload(&self.output)?);
        let tensor = match &self.tensor {
            Some(tensor) => {
                let buffer = gpu.upload(&tensor.content)?;
                let map = TensorMap { address: buffer.address().0, ..tensor.map.clone() };
                Some((gpu.tensor_map(&buffer, &map)?, buffer, tensor.is_written))
            }
            None => None,
        };
        let mut launch = gpu.launch(&kernel);
        launch.grid(self.blocks).block(self.threads);
        if self.cluster > 1 {
            launch.cluster(self.cluster);
        }
        match &tensor {
            Some((map, _, true)) => launch.write_map(map),
            Some((map, _, false)) => launch.read_map(map),
            None => &mut launch,
        };
        launch.read(&input).read_write(&output);
        // SAFETY: the kernel stays inside of its tensor, input and output: the executor, which checks every access, finds nothing.
        unsafe { launch.submit() }?;
        gpu.synchronize()?;
        let mut result = match &tensor {
            Some((_, buffer, _)) => buffer.download()?,
            None => Vec::new(),
        };
        result.extend(output.download()?);
        Ok(result)
    }

    /// What the oracle says of a result.
    pub(crate) fn wrong(&self, result: &[u8]) -> Option<String> {
        match &self.oracle {
            Oracle::Bytes(expected) => self.differences(["found", "expected"], result, expected),
            Oracle::Any => None,
            Oracle::Judge(judge) => {
                let wrong = judge.wrong(result);
                (!wrong.is_empty()).then(|| self.listed(wrong.len(), wrong.into_iter()))
            }
        }
    }

    /// Where two results differ.
    pub(crate) fn differences(&self, names: [&str; 2], first: &[u8], second: &[u8]) -> Option<String> {
        assert_eq!(first.len(), second.len(), "{}", self.name);
        let pairs = first.chunks(self.unit).zip(second.chunks(self.unit)).enumerate();
        let differ: Vec<_> = pairs.filter(|(_, (first, second))| first != second).collect();
        let operands = |unit: usize| match &self.oracle {
            Oracle::Bytes(_) | Oracle::Any => format!("byte {:#x}", unit * self.unit),
            Oracle::Judge(judge) => judge.operands(unit),
        };
        let lines = differ.iter().map(|(unit, (first, second))| {
            format!("{} {}, {} {}: {}", names[0], hex(first), names[1], hex(second), operands(*unit))
        });
        (!differ.is_empty()).then(|| self.listed(differ.len(), lines))
    }

    fn listed(&self, count: usize, lines: impl Iterator<Item = String>) -> String {
        let lines: Vec<String> = lines.take(LISTED).map(|line| format!("\n    {line}")).collect();
        format!("{}: {count} differ{}", self.name, lines.concat())
    }

    /// A number that changes when the kernel or what it is given does.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut words = String::new();
        if self.cluster > 1 {
            words += &format!("{} {} {}", self.blocks, self.threads, self.cluster);
        }
        let tensor = self.tensor.as_ref().map_or(&[][..], |tensor| {
            words += &format!("{:?}", tensor.map);
            &tensor.content
        });
        hash(&[self.text.as_bytes(), &self.input, &self.output, tensor, words.as_bytes()])
    }
}

/// A number of some bytes, by FNV-1a.
pub(crate) fn hash(parts: &[&[u8]]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    parts.iter().flat_map(|part| part.iter()).fold(0xcbf2_9ce4_8422_2325, step)
}

/// Bytes of a value, the highest first.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect()
}
