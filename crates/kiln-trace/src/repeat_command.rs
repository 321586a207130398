//! The command that runs a recorded program again.
//!
//! It has the arguments of the program and those variables of the environment that decide what a runtime does: of a rank, those of its launcher
//! as well. No other variable is looked at. What looks like a secret is left out ([`SecretFilter`]), and so is what is too long or too much; the command says
//! then what it lacks.

mod rank_variables;

use std::ffi::{OsStr, OsString};

use crate::format::MAX_NAME_BYTES;
use crate::record::{CommandGaps, CommandPart, CommandRecord, MAX_WORDS, TraceEvent};
use crate::recorder::interned_name;
use crate::secret_words::{LEFT_OUT, SecretFilter};
use crate::shell_word::{WordText, shell_word};

use rank_variables::RankVariables;

/// Variables that are read from a file.
const MAX_VARIABLES: usize = 64;
/// The variables that are kept: none of them holds a secret.
const VARIABLES: [&str; 20] = [
    "KILN_POLICY",
    "KILN_FINDINGS",
    "KILN_SIM_SEED",
    "KILN_SIM_FAULTS",
    "KILN_SEED",
    "KILN_TEST_DEVICE",
    "KILN_TRACE_TIMES",
    "CUDA_VISIBLE_DEVICES",
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
/// use kiln_trace::{CommandGaps, RepeatCommand};
///
/// let words = ["./train", "--steps", "10", "--token", "abc"].map(Into::into);
/// let command = RepeatCommand::of(words, |name| (name == "KILN_SIM_SEED").then(|| "7".into()));
/// assert_eq!(command.under(&["kiln", "trace"]), "KILN_SIM_SEED=7 kiln trace -- ./train --steps 10 --token ...");
/// assert_eq!(command.lacks(), CommandGaps::SECRETS);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RepeatCommand {
    variables: Vec<(String, WordText)>,
    words: Vec<WordText>,
    lacks: CommandGaps,
    records_itself: bool,
}

impl RepeatCommand {
    /// The command of a program with these words, the program first, in an environment with these variables.
    pub fn of(
        words: impl IntoIterator<Item = OsString>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let mut command = Self::default();
        let ranks =
            RankVariables::of(|name| variable(name).map(|value| value.to_string_lossy().into_owned()));
        for name in VARIABLES.iter().chain(&ranks.names) {
            if let Some(value) = variable(name).filter(|value| !value.is_empty()) {
                let value = command.kept(&value);
                command.variables.push(((*name).to_owned(), value));
            }
        }
        if ranks.is_one_of_several {
            command.lack(CommandGaps::OTHER_RANKS);
            command.lack(if ranks.has_token { CommandGaps::JOB_TOKEN } else { CommandGaps::default() });
        }
        let mut secrets = SecretFilter::default();
        for word in words {
            if command.words.len() >= MAX_WORDS {
                command.lack(CommandGaps::LATER_WORDS);
                break;
            }
            let text = word.to_string_lossy();
            // The program itself is no argument.
            let kept = if command.words.is_empty() { text.clone().into_owned() } else { secrets.kept(&text) };
            let is_whole = kept == text;
            let word = match is_whole {
                true => command.kept(&word),
                false => {
                    command.lack(CommandGaps::SECRETS);
                    command.kept(kept.as_ref())
                }
            };
            command.words.push(word);
        }
        command
    }

    /// The same for a program that records itself, so that nothing else has to.
    #[must_use]
    pub fn recording_itself(self) -> Self {
        Self { records_itself: true, ..self }
    }

    fn lack(&mut self, what: CommandGaps) {
        self.lacks = self.lacks.and(what);
    }

    /// A word as text, unless it is too long.
    fn kept(&mut self, word: &OsStr) -> WordText {
        let word = WordText::of(word);
        if word.text.len() <= MAX_NAME_BYTES {
            return word;
        }
        self.lack(CommandGaps::LONG_WORDS);
        WordText { text: LEFT_OUT.to_owned(), is_escaped: false }
    }

    /// What a recording has of it.
    pub fn events(&self) -> Vec<TraceEvent<'static>> {
        let event = |part, name: &str, word: &WordText| {
            TraceEvent::Command(CommandRecord {
                part,
                name: interned_name(name),
                text: interned_name(&word.text),
                is_escaped: word.is_escaped,
                records_itself: self.records_itself,
                lacks: self.lacks,
            })
        };
        let variables = self.variables.iter().map(|(name, value)| event(CommandPart::Variable, name, value));
        variables.chain(self.words.iter().map(|word| event(CommandPart::Argument, "", word))).collect()
    }

    /// Adds a word that was recorded.
    pub fn add(&mut self, word: &CommandRecord<'_>) {
        self.lack(word.lacks);
        self.records_itself |= word.records_itself;
        if self.words.len() >= MAX_WORDS || self.variables.len() >= MAX_VARIABLES {
            self.lack(CommandGaps::LATER_WORDS);
            return;
        }
        let text = WordText::recorded(word.text, word.is_escaped);
        match word.part {
            CommandPart::Argument => self.words.push(text),
            CommandPart::Variable => self.variables.push((word.name.to_owned(), text)),
        }
    }

    /// Whether there is one.
    pub fn is_known(&self) -> bool {
        !self.words.is_empty()
    }

    /// Whether nothing is missing to run the program again.
    pub fn is_whole(&self) -> bool {
        self.lacks.is_empty()
    }

    /// What is missing.
    pub fn lacks(&self) -> CommandGaps {
        self.lacks
    }

    /// Whether the program records itself.
    pub fn records_itself(&self) -> bool {
        self.records_itself
    }

    /// The command as a shell takes it that records the program again: run by another one, such as `kiln trace`, unless it records itself.
    pub fn recorded_under(&self, command: &[impl AsRef<OsStr>]) -> String {
        if self.records_itself { self.alone() } else { self.under(command) }
    }

    /// The command as a shell takes it, run by another one, such as `kiln trace`.
    pub fn under(&self, command: &[impl AsRef<OsStr>]) -> String {
        let command: Vec<String> = command.iter().map(|word| shell_word(word.as_ref())).collect();
        format!("{}{} -- {}", self.settings(), command.join(" "), self.program())
    }

    /// The command as a shell takes it.
    pub fn alone(&self) -> String {
        format!("{}{}", self.settings(), self.program())
    }

    fn settings(&self) -> String {
        self.variables
            .iter()
            .map(|(name, value)| format!("{}={} ", plain_name(name), value.quoted()))
            .collect()
    }

    fn program(&self) -> String {
        let words: Vec<String> = self.words.iter().map(WordText::quoted).collect();
        words.join(" ")
    }
}

/// The name of a variable, of which a file may have made anything.
fn plain_name(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str], variables: &[(&str, &str)]) -> RepeatCommand {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
        RepeatCommand::of(words.iter().map(|word| (*word).into()), find)
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
        assert_eq!((made.events().len(), made.lacks()), (MAX_WORDS, CommandGaps::LATER_WORDS));
        let said = "the words behind the first 256 are not in the recording";
        assert_eq!(made.lacks().to_string(), said);
    }

    #[test]
    fn a_rank_has_the_variables_of_its_launcher_and_needs_the_others() {
        let variables = [
            ("KILN_RANK", "1"),
            ("KILN_WORLD_SIZE", "4"),
            ("KILN_MEETING_POINT", "10.0.0.1:29500"),
            ("KILN_JOB_TOKEN", "s3cret"),
            ("SLURM_PROCID", "7"),
        ];
        let made = command(&["./train"], &variables);
        assert_eq!(made.alone(), "KILN_RANK=1 KILN_WORLD_SIZE=4 KILN_MEETING_POINT=10.0.0.1:29500 ./train");
        let said = "it is one rank of a job, which needs the others, and the same KILN_JOB_TOKEN for all, which is a secret and not in the recording";
        assert_eq!((made.is_whole(), &*made.lacks().to_string()), (false, said));
        let alone = command(&["./train"], &[("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_PORT", "1")]);
        assert_eq!((&*alone.alone(), alone.is_whole()), ("RANK=0 WORLD_SIZE=1 MASTER_PORT=1 ./train", true));
        let none = command(&["./train"], &[("WORLD_SIZE", "4"), ("KILN_MEETING_POINT", "a:1")]);
        assert_eq!((&*none.alone(), none.is_whole()), ("./train", true));
    }

    #[test]
    fn a_program_that_records_itself_is_run_as_it_was() {
        let made = command(&["./train"], &[]).recording_itself();
        assert_eq!(made.recorded_under(&["kiln", "trace"]), "./train");
        assert_eq!(command(&["./train"], &[]).recorded_under(&["kiln", "trace"]), "kiln trace -- ./train");
    }

    #[cfg(unix)]
    #[test]
    fn words_that_are_no_text_come_out_as_they_were() {
        use std::os::unix::ffi::OsStringExt;
        let words = [b"./train".to_vec(), b"a\nb\x1b".to_vec(), b"\xff7".to_vec()].map(OsString::from_vec);
        let made = RepeatCommand::of(words, |_| None);
        assert_eq!((&*made.alone(), made.is_whole()), ("./train $'a\\nb\\033' $'\\3777'", true));
        assert_eq!(read_again(&made), made);
    }

    fn read_again(made: &RepeatCommand) -> RepeatCommand {
        let mut read = RepeatCommand::default();
        for event in made.events() {
            if let TraceEvent::Command(word) = event {
                read.add(&word);
            }
        }
        read
    }

    #[test]
    fn what_was_recorded_is_the_same_again() {
        let made = command(&["./train", "--steps", "10"], &[("KILN_SIM_SEED", "7")]);
        assert_eq!(read_again(&made), made);
    }
}
