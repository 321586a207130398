//! Words of a command line without the secrets in them.
//!
//! A name tells that its value is a secret: that of an option, of a variable, of a header, of a field of a URL. The tables below say which
//! names do. What follows such a name is left out, to the end of the word, and so is the next word where the name is the end of one, whatever that begins
//! with: a word too much is better than a secret. In URLs the user is left out, too, and words that look like the keys of well-known
//! services are, whatever stands before them.

/// What stands for a value that is left out.
pub(crate) const LEFT_OUT: &str = "...";

/// A name that has one of these anywhere, in small letters and without what divides its words.
const SECRET_PARTS: [&str; 27] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "accountkey",
    "storagekey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "sharedkey",
    "sshkey",
    "sessionkey",
    "licensekey",
    "authkey",
    "wandbkey",
    "bearer",
    "authorization",
    "authentication",
    "cookie",
    "webhook",
    "connectionstring",
];
/// A name that has one of these as a word.
const SECRET_WORDS: [&str; 8] = ["pass", "pwd", "pw", "auth", "jwt", "otp", "sas", "psk"];
/// A name that is one of these, and no more.
const SECRET_NAMES: [&str; 1] = ["key"];
/// A name that ends so, as `hftoken`. Names that end with `tokens` may have a number as their value, which is none.
const SECRET_END: &str = "token";
/// A field of a URL that is one of these, besides the names above.
const SECRET_FIELDS: [&str; 4] = ["sig", "signature", "xamzsignature", "code"];
/// Options whose value is a user and a password with a colon between them.
const USER_OPTIONS: [&str; 4] = ["-u", "--user", "--proxy-user", "--userpwd"];
/// What the keys of some services begin with.
const KEY_BEGINNINGS: [&str; 20] = [
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "hf_",
    "sk-",
    "sk_live_",
    "rk_live_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
];
/// So many letters and digits follow such a beginning at least.
const KEY_LETTERS: usize = 16;
/// The same where small letters and capitals follow and no digit, as in a name of several words.
const LONG_KEY_LETTERS: usize = 30;

/// Whether the value of a name is a secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    Plain,
    Secret,
    /// Unless it is a number.
    SecretText,
}

impl Name {
    fn of(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let whole: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
        let mut words = lower.split(|letter: char| !letter.is_ascii_alphanumeric());
        // `STORAGE_KEY` is a variable of the environment; `--sort-key` is not.
        let is_variable =
            name.ends_with("_KEY") && !name.contains(|letter: char| letter.is_ascii_lowercase());
        let is_secret = whole.ends_with(SECRET_END)
            || is_variable
            || SECRET_NAMES.contains(&&*whole)
            || SECRET_PARTS.iter().any(|part| whole.contains(part))
            || words.any(|word| SECRET_WORDS.contains(&word) || word == SECRET_END);
        match is_secret {
            true => Self::Secret,
            false if whole.strip_suffix('s').is_some_and(|one| one.ends_with(SECRET_END)) => Self::SecretText,
            false => Self::Plain,
        }
    }

    fn hides(self, value: &str) -> bool {
        match self {
            Self::Plain => false,
            Self::Secret => !value.is_empty(),
            Self::SecretText => !value.is_empty() && value.parse::<f64>().is_err(),
        }
    }
}

/// Takes the words of a command line one after the other.
pub(crate) struct SecretFilter {
    /// What the last word was the name of.
    last: Name,
    /// Whether it was an option whose value is a user and a password.
    is_user: bool,
}

impl Default for SecretFilter {
    fn default() -> Self {
        Self { last: Name::Plain, is_user: false }
    }
}

impl SecretFilter {
    /// A word without the secrets in it.
    pub(crate) fn kept(&mut self, word: &str) -> String {
        let (last, is_user) = (self.last, self.is_user);
        // Also that of a word that is left out: a name that was taken for a value has a value itself.
        self.last =
            if word.starts_with('-') && word.chars().all(is_of_name) { Name::of(word) } else { Name::Plain };
        self.is_user = USER_OPTIONS.contains(&word);
        if last.hides(word) {
            return LEFT_OUT.to_owned();
        }
        if is_user && let Some(kept) = without_password(word) {
            return kept;
        }
        if let Some((option, value)) = word.split_once('=')
            && USER_OPTIONS.contains(&option)
            && let Some(kept) = without_password(value)
        {
            return format!("{option}={kept}");
        }
        if word.contains("-----BEGIN") {
            return LEFT_OUT.to_owned();
        }
        let word = match word.contains("://") {
            true => without_secrets_of_url(word),
            false => without_user_of_host(word),
        };
        without_keys(&without_values(&word))
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.".contains(letter)
}

/// `user:password` without the password; two numbers are those of a user and a group.
fn without_password(word: &str) -> Option<String> {
    let (user, password) = word.split_once(':')?;
    let are_numbers = [user, password].iter().all(|part| part.chars().all(|letter| letter.is_ascii_digit()));
    (!are_numbers && !password.is_empty()).then(|| format!("{user}:{LEFT_OUT}"))
}

/// A word up to the first value of a secret: what follows `NAME=`, `NAME:`, `"NAME":`, `--NAME ` or `Bearer `.
fn without_values(word: &str) -> String {
    let mut rest = word;
    while let Some(at) = rest.find(is_of_name) {
        let from = rest.get(at..).unwrap_or_default();
        let end = from.find(|letter| !is_of_name(letter)).unwrap_or(from.len());
        let (name, behind) = (from.get(..end).unwrap_or_default(), from.get(end..).unwrap_or_default());
        if let Some(value) = value_behind(name, behind)
            && Name::of(name).hides(first_word(value))
            && !value.starts_with(LEFT_OUT)
        {
            let kept = word.get(..word.len() - value.len()).unwrap_or_default();
            return format!("{kept}{LEFT_OUT}");
        }
        rest = behind;
    }
    word.to_owned()
}

/// The value that stands behind a name in the same word.
fn value_behind<'w>(name: &str, behind: &'w str) -> Option<&'w str> {
    let is_option = name.starts_with('-');
    let is_scheme = ["bearer", "basic"].contains(&name.to_ascii_lowercase().as_str());
    if (is_option || is_scheme) && behind.starts_with(char::is_whitespace) {
        return Some(behind.trim_start());
    }
    let behind = behind.trim_start_matches(['"', '\'', '\\', ' ']);
    let value = behind.strip_prefix(['=', ':'])?;
    if value.starts_with("//") { None } else { Some(value.trim_start()) }
}

/// The value up to where another field would begin.
fn first_word(value: &str) -> &str {
    value.split([' ', ',', '}', '&', ';']).next().unwrap_or_default()
}

/// A word with URLs, without the users and the secret fields of these.
fn without_secrets_of_url(word: &str) -> String {
    let mut kept = String::new();
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once("://") {
        kept.push_str(before);
        kept.push_str("://");
        let end = behind.find([' ', '"', '\'', '>']).unwrap_or(behind.len());
        let (url, others) = behind.split_at_checked(end).unwrap_or((behind, ""));
        kept.push_str(&without_secret_fields(&without_user(before, url)));
        rest = others;
    }
    kept + rest
}

/// `user:password@host` without the user and the password. An image with its digest looks the same.
fn without_user_of_host(word: &str) -> String {
    match word.rsplit_once('@') {
        Some((user, host))
            if user.contains(':')
                && !user.contains(['/', ' ', '='])
                && !host.is_empty()
                && !host.starts_with("sha256:") =>
        {
            format!("{LEFT_OUT}@{host}")
        }
        _ => word.to_owned(),
    }
}

/// What follows `scheme://`, without the user.
fn without_user(before: &str, url: &str) -> String {
    let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
    // A password with a slash in it makes what stands before that look like a host and a port.
    let has_port = |text: &str| text.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok());
    let part = if authority.contains('@') || has_port(authority) { authority } else { url };
    let Some((user, _)) = part.rsplit_once('@').filter(|(user, _)| !user.is_empty()) else {
        return url.to_owned();
    };
    if before.ends_with("ssh") && !user.contains(':') {
        return url.to_owned();
    }
    format!("{LEFT_OUT}{}", url.get(user.len()..).unwrap_or_default())
}

/// What follows `scheme://`, without the values of secret fields.
fn without_secret_fields(url: &str) -> String {
    let Some(at) = url.find(['?', '#']) else { return url.to_owned() };
    let (mut kept, mut rest) =
        url.split_at_checked(at).map_or((String::new(), url), |(a, b)| (a.to_owned(), b));
    while !rest.is_empty() {
        let end = rest.get(1..).and_then(|rest| rest.find(['&', ';', '#'])).map_or(rest.len(), |end| end + 1);
        let (field, others) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = others;
        match field.split_once('=') {
            Some((name, value)) if is_secret_field(name) && !value.is_empty() => {
                kept += &format!("{name}={LEFT_OUT}");
            }
            _ => kept.push_str(field),
        }
    }
    kept
}

fn is_secret_field(name: &str) -> bool {
    let whole: String = name.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    Name::of(name) != Name::Plain || SECRET_FIELDS.contains(&&*whole)
}

/// A word without what looks like the key of a service.
fn without_keys(word: &str) -> String {
    let mut kept = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let at = rest.find(is_of_name).unwrap_or(rest.len());
        let end = rest
            .get(at..)
            .and_then(|from| from.find(|letter| !is_of_name(letter)))
            .map_or(rest.len(), |end| at + end);
        kept.push_str(rest.get(..at).unwrap_or_default());
        let piece = rest.get(at..end).unwrap_or_default();
        kept.push_str(if is_key(piece) { LEFT_OUT } else { piece });
        rest = rest.get(end..).unwrap_or_default();
    }
    kept
}

fn is_key(piece: &str) -> bool {
    KEY_BEGINNINGS.iter().filter_map(|beginning| piece.strip_prefix(beginning)).any(|key| {
        let count = |is_so: fn(&char) -> bool| key.chars().filter(is_so).count();
        let (letters, digits) = (count(char::is_ascii_alphabetic), count(char::is_ascii_digit));
        let is_mixed = letters + digits >= KEY_LETTERS && letters > 0 && digits > 0;
        is_mixed || is_key_of_letters(key)
    })
}

/// Whether letters alone look like a key: very many in both cases, or many that are all capitals.
fn is_key_of_letters(key: &str) -> bool {
    let has_small = key.contains(|letter: char| letter.is_ascii_lowercase());
    let has_capital = key.contains(|letter: char| letter.is_ascii_uppercase());
    let least = if has_small { LONG_KEY_LETTERS } else { KEY_LETTERS };
    has_capital && key.len() >= least && key.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(words: &[&str]) -> String {
        let mut filter = SecretFilter::default();
        words.iter().map(|word| filter.kept(word)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_name_of_a_secret_hides_its_value() {
        let names = [
            "token",
            "hf-token",
            "HF_TOKEN",
            "hftoken",
            "access_token",
            "secret",
            "client-secret",
            "password",
            "passwd",
            "db.password",
            "PGPASSWORD",
            "pass",
            "pwd",
            "MYSQL_PWD",
            "pw",
            "passphrase",
            "passcode",
            "bearer",
            "auth",
            "basic-auth",
            "authorization",
            "api-key",
            "apikey",
            "API_KEY",
            "apiKey",
            "WANDB_API_KEY",
            "private-key",
            "ssh-key",
            "wandb-key",
            "key",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SESSION_TOKEN",
            "AZURE_STORAGE_KEY",
            "AccountKey",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "credential",
            "cookie",
            "jwt",
            "otp",
            "sas",
            "psk",
            "connection-string",
            "NPM_TOKEN",
            "DEPLOY_KEY",
        ];
        for name in names {
            assert_eq!(kept(&[&format!("--{name}"), "s3cret", "x"]), format!("--{name} ... x"));
            assert_eq!(kept(&[&format!("--{name}=s3cret"), "x"]), format!("--{name}=... x"));
            assert_eq!(kept(&[&format!("{name}=s3cret"), "x"]), format!("{name}=... x"));
            assert_eq!(kept(&["-e", &format!("{name}=s3cret"), "x"]), format!("-e {name}=... x"));
            assert_eq!(kept(&[&format!("--env={name}=s3cret")]), format!("--env={name}=..."));
            assert_eq!(kept(&["-H", &format!("{name}: s3cret s3cret"), "x"]), format!("-H {name}: ... x"));
            assert_eq!(kept(&[&format!(r#"{{"{name}": "s3cret"}}"#)]), format!(r#"{{"{name}": ..."#));
            assert_eq!(
                kept(&["sh", "-c", &format!("./a --{name} s3cret")]),
                format!("sh -c ./a --{name} ...")
            );
            assert_eq!(
                kept(&[&format!("https://host/a?x=1&{name}=s3cret&y=2")]),
                format!("https://host/a?x=1&{name}=...&y=2")
            );
        }
    }

    #[test]
    fn a_value_may_begin_with_anything() {
        for value in
            ["-s3cret", "--s3cret", "-", "--token", "--token=s3cret", "=s3cret", "@s3cret", "s3cret word"]
        {
            assert_eq!(
                kept(&["--token", value, "--steps=3"]),
                if value == "--token" { "--token ... ..." } else { "--token ... --steps=3" }
            );
        }
        // A name that was taken for a value has a value itself.
        assert_eq!(kept(&["--auth", "--password", "s3cret", "--steps", "3"]), "--auth ... ... --steps 3");
        assert_eq!(kept(&["--token=", "--steps"]), "--token= --steps", "there is none");
    }

    #[test]
    fn users_of_urls_are_left_out() {
        for (url, shown) in [
            ("https://me:s3cret@host/data", "https://...@host/data"),
            ("https://s3cret@host", "https://...@host"),
            ("postgres://me:s3@cret@host:5432/db", "postgres://...@host:5432/db"),
            ("https://me:s3/cret@host/data", "https://...@host/data"),
            ("--url=https://me:s3cret@host/?a=1", "--url=https://...@host/?a=1"),
            ("git clone https://me:s3cret@host x", "git clone https://...@host x"),
            ("https://host/#access_token=s3cret", "https://host/#access_token=..."),
            ("https://host/a?sig=s3cret;part=7", "https://host/a?sig=...;part=7"),
            (
                "https://host/a?X-Amz-Signature=s3cret&X-Amz-Credential=s3cret",
                "https://host/a?X-Amz-Signature=...&X-Amz-Credential=...",
            ),
        ] {
            assert_eq!(kept(&[url]), shown);
        }
        assert_eq!(kept(&["curl", "-u", "me:s3cret", "x", "me:s3cret@host"]), "curl -u me:... x ...@host");
        assert_eq!(kept(&["curl", "--user=me:s3cret", "--user=7:7"]), "curl --user=me:... --user=7:7");
        assert_eq!(kept(&["--header", "Bearer s3cret"]), "--header Bearer ...");
    }

    #[test]
    fn keys_of_services_are_left_out_without_a_name() {
        for key in [
            "ghp_0123456789abcdefABCDEF0123456789abcd",
            "hf_abcdefghijklmnop0123456789",
            "sk-proj-abcdefghij0123456789",
            "AKIAIOSFODNN7EXAMPLE12",
            "AKIAABCDEFGHIJKLMNOP",
            "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
            "ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ",
            "sk-abcdefghijklmnopqrstuvwxyzABCDEFGH",
            "glpat-abcdefghij0123456789",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123",
            "xoxb-123456789012-abcdefgh",
        ] {
            assert_eq!(kept(&["login", key, "x"]), "login ... x");
        }
        assert_eq!(kept(&["-----BEGIN PRIVATE KEY-----\nabc"]), "...");
    }

    #[test]
    fn what_is_no_secret_stays() {
        for words in [
            &["--steps", "10", "--tokenizer", "gpt2", "--max-tokens", "512", "--tokens=1e6"][..],
            &["--author", "me", "--passes", "3", "--sort-key", "name", "--monkey", "x", "--bypass"],
            &[
                "token.txt",
                "password",
                "https://host:8080/a?part=7",
                "s3://bucket/a@b",
                "ssh://git@host/a",
                "me@host",
            ],
            &[
                "-u",
                "1000:1000",
                "a=b",
                "C:\\data",
                "x: y",
                "sk-learn",
                "hf_hub_download",
                "hf_TransformerWithHead",
                "sk-internationalizations",
                "AKIASmallLettersToo",
                "--compass",
                "north",
            ],
            &["it's", "", "-", "--", "é=ü", "a://", "://@", "?token="],
        ] {
            assert_eq!(kept(words), words.join(" "));
        }
    }
}
