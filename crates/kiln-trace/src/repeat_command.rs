//! The command that runs a recorded program again.
//!
//! It has the arguments of the program and those variables of the environment that decide what a runtime does. No other variable is
//! looked at. What looks like a secret is left out ([`SecretFilter`]), and so is what is too long; the command says then that it is not
//! whole.

use crate::format::MAX_NAME_BYTES;
use crate::record::{CommandPart, CommandRecord, TraceEvent};
use crate::recorder::interned_name;
use crate::secret_words::{LEFT_OUT, SecretFilter};

/// Words that are kept.
const MAX_WORDS: usize = 256;

/// The variables that are kept: none of them holds a secret.
const VARIABLES: [&str; 22] = [
    "KILN_POLICY",
    "KILN_FINDINGS",
    "KILN_SIM_SEED",
    "KILN_SEED",
    "KILN_TEST_DEVICE",
    "KILN_TRACE_TIMES",
    "KILN_RANK",
    "KILN_WORLD_SIZE",
    "KILN_LOCAL_RANK",
    "KILN_LOCAL_SIZE",
    "KILN_LIBCUDA",
    "KILN_NVRTC",
    "KILN_CUDA_INCLUDE",
    "KILN_CUBLAS",
    "KILN_CUBLASLT",
    "KILN_CUFFT",
    "KILN_CUDNN",
    "KILN_CUSOLVER",
    "KILN_CUSPARSE",
    "KILN_CURAND",
    "KILN_NCCL",
    "KILN_CUPTI",
];

/// The command that runs a program again.
///
/// ```
/// use kiln_trace::RepeatCommand;
///
/// let words = ["./train", "--steps", "10", "--token", "abc"].map(str::to_owned);
/// let command = RepeatCommand::of(words, |name| (name == "KILN_SIM_SEED").then(|| "7".to_owned()));
/// assert_eq!(command.under(&["kiln", "trace"]), "KILN_SIM_SEED=7 kiln trace -- ./train --steps 10 --token ...");
/// assert!(!command.is_whole());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepeatCommand {
    variables: Vec<(String, String)>,
    words: Vec<String>,
    is_whole: bool,
}

impl Default for RepeatCommand {
    /// One that is not known.
    fn default() -> Self {
        Self { variables: Vec::new(), words: Vec::new(), is_whole: true }
    }
}

impl RepeatCommand {
    /// The command of a program with these words, the program first, in an environment with these variables.
    pub fn of(words: impl IntoIterator<Item = String>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut command = Self::default();
        for name in VARIABLES {
            if let Some(value) = variable(name).filter(|value| !value.is_empty()) {
                let value = command.shortened(value);
                command.variables.push((name.to_owned(), value));
            }
        }
        let mut secrets = SecretFilter::default();
        for word in words {
            if command.words.len() >= MAX_WORDS {
                command.is_whole = false;
                break;
            }
            // The program itself is no argument.
            let kept = if command.words.is_empty() { word.clone() } else { secrets.kept(&word) };
            command.is_whole &= kept == word;
            let kept = command.shortened(kept);
            command.words.push(kept);
        }
        command
    }

    fn shortened(&mut self, mut text: String) -> String {
        if text.len() > MAX_NAME_BYTES {
            LEFT_OUT.clone_into(&mut text);
            self.is_whole = false;
        }
        text
    }

    /// What a recording has of it.
    pub fn events(&self) -> Vec<TraceEvent<'static>> {
        let is_whole = self.is_whole;
        let event = |part, name: &str, text: &str| {
            let (name, text) = (interned_name(name), interned_name(text));
            TraceEvent::Command(CommandRecord { part, name, text, is_whole })
        };
        let variables = self.variables.iter().map(|(name, value)| event(CommandPart::Variable, name, value));
        variables.chain(self.words.iter().map(|word| event(CommandPart::Argument, "", word))).collect()
    }

    /// Adds a word that was recorded.
    pub fn add(&mut self, word: &CommandRecord<'_>) {
        if self.words.len() + self.variables.len() >= MAX_WORDS + VARIABLES.len() {
            self.is_whole = false;
            return;
        }
        self.is_whole &= word.is_whole;
        match word.part {
            CommandPart::Argument => self.words.push(word.text.to_owned()),
            CommandPart::Variable => self.variables.push((word.name.to_owned(), word.text.to_owned())),
        }
    }

    /// Whether there is one.
    pub fn is_known(&self) -> bool {
        !self.words.is_empty()
    }

    /// Whether nothing was left out.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The command as a shell takes it, run by another one, such as `kiln trace`.
    pub fn under(&self, command: &[&str]) -> String {
        let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        format!("{}{} -- {}", self.settings(), command.join(" "), self.program())
    }

    /// The command as a shell takes it.
    pub fn alone(&self) -> String {
        format!("{}{}", self.settings(), self.program())
    }

    fn settings(&self) -> String {
        self.variables
            .iter()
            .map(|(name, value)| format!("{}={} ", plain_name(name), quoted(value)))
            .collect()
    }

    fn program(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }
}

/// The name of a variable, of which a file may have made anything.
fn plain_name(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '_' })
        .collect()
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,%+@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str], variables: &[(&str, &str)]) -> RepeatCommand {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        RepeatCommand::of(words.iter().map(|word| (*word).to_owned()), find)
    }

    #[test]
    fn a_command_has_words_and_the_variables_that_matter() {
        let variables =
            [("KILN_POLICY", "simulate"), ("KILN_JOB_TOKEN", "s3cret"), ("HOME", "/h"), ("KILN_SEED", "")];
        let made = command(&["./my train", "--note", "it's", ""], &variables);
        assert_eq!(made.alone(), "KILN_POLICY=simulate './my train' --note 'it'\\''s' ''");
        assert_eq!(
            made.under(&["kiln", "watch", "a b.kiln"]),
            "KILN_POLICY=simulate kiln watch 'a b.kiln' -- './my train' --note 'it'\\''s' ''"
        );
        assert!(made.is_whole() && made.is_known());
        assert!(!RepeatCommand::default().is_known());
    }

    #[test]
    fn values_of_secrets_are_left_out() {
        for (words, shown) in [
            (["a", "--api-key=sk-1", "b"], "a --api-key=... b"),
            (["a", "--API_KEY", "sk-1"], "a --API_KEY ..."),
            (["a", "HF_TOKEN=sk-1", "b"], "a HF_TOKEN=... b"),
            (["a", "--hf-token", "sk-1"], "a --hf-token ..."),
            (["a", "--password", "sk-1"], "a --password ..."),
        ] {
            let made = command(&words, &[]);
            assert_eq!((made.alone().as_str(), made.is_whole()), (shown, false));
            assert!(!format!("{:?}", made.events()).contains("sk-1"));
        }
        for words in [["./token", "--steps", "3"], ["a", "token.txt", "b"], ["a", "--tokens", "7"]] {
            assert!(command(&words, &[]).is_whole(), "{words:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_left_out_and_told() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let made = command(&["a", &long], &[("KILN_LIBCUDA", &long)]);
        assert_eq!((made.alone().as_str(), made.is_whole()), ("KILN_LIBCUDA=... a ...", false));
        let many = vec!["w"; MAX_WORDS + 1];
        let made = command(&many, &[]);
        assert_eq!((made.events().len(), made.is_whole()), (MAX_WORDS, false));
    }

    #[test]
    fn what_was_recorded_is_the_same_again() {
        let made = command(&["./train", "--steps", "10"], &[("KILN_SIM_SEED", "7")]);
        let mut read = RepeatCommand::default();
        for event in made.events() {
            if let TraceEvent::Command(word) = event {
                read.add(&word);
            }
        }
        assert_eq!(read, made);
    }
}
