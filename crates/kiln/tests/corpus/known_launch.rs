//! How single kernels are launched: the lines of `launches.txt`.

use kiln::driver::Dim3;

/// What is known about the launch of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KnownLaunch {
    pub(crate) grid: Option<Dim3>,
    pub(crate) block: Option<Dim3>,
    pub(crate) shared_bytes: Option<u32>,
    pub(crate) cooperative: bool,
    /// Kinds of findings that are mistakes of the kernel.
    pub(crate) mistakes: Vec<String>,
    /// What it needs besides its arguments; it is not run.
    pub(crate) needs: Option<String>,
    /// The first arguments; the rest is invented.
    pub(crate) arguments: Vec<KnownArgument>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KnownArgument {
    Invented,
    Bytes(Vec<u8>),
    /// An array that holds one number.
    Fill(u32),
    /// An array of the multiples of a number.
    Steps(u32),
}

impl KnownLaunch {
    /// What is known about a kernel; nothing for most.
    pub(crate) fn of(kernel: &str) -> Self {
        let lines = include_str!("launches.txt").lines();
        let line = lines.filter(|line| !line.starts_with('#')).find_map(|line| {
            let (name, rest) = line.split_once(':')?;
            let is_meant = name.strip_suffix('*').map_or(name == kernel, |start| kernel.starts_with(start));
            is_meant.then_some(rest)
        });
        line.map(Self::read).unwrap_or_default()
    }

    fn read(text: &str) -> Self {
        let (shape, arguments) = text.split_once('|').unwrap_or((text, ""));
        let mut launch = Self::default();
        let mut words = shape.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "grid" => launch.grid = words.next().map(dim),
                "block" => launch.block = words.next().map(dim),
                "shared" => launch.shared_bytes = words.next().and_then(|bytes| bytes.parse().ok()),
                "cooperative" => launch.cooperative = true,
                "mistake" => launch.mistakes.extend(words.next().map(str::to_owned)),
                "needs" => launch.needs = Some(words.by_ref().collect::<Vec<_>>().join(" ")),
                other => unreachable!("`{other}` in `{text}` of launches.txt"),
            }
        }
        let given = arguments.split(';').map(str::trim).filter(|argument| !argument.is_empty());
        launch.arguments = given.map(KnownArgument::read).collect();
        launch
    }
}

impl KnownArgument {
    fn read(text: &str) -> Self {
        let (word, value) = text.split_once(' ').unwrap_or((text, ""));
        let number: f64 = value.parse().unwrap_or(0.0);
        match word {
            "i32" => Self::Bytes((number as i32).to_le_bytes().to_vec()),
            "u64" => Self::Bytes((number as u64).to_le_bytes().to_vec()),
            "f32" => Self::Bytes((number as f32).to_le_bytes().to_vec()),
            "fill" => Self::Fill(number as u32),
            "steps" => Self::Steps(number as u32),
            "_" => Self::Invented,
            other => unreachable!("`{other}` in launches.txt is no argument"),
        }
    }
}

fn dim(text: &str) -> Dim3 {
    let mut sizes = text.split(',').map(|size| size.parse().unwrap_or(1));
    let mut next = || sizes.next().unwrap_or(1);
    Dim3::new(next(), next(), next())
}
