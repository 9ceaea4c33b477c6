//! Data keys that the keyring of GnuPG decrypts, for the person who runs a command.
//!
//! In: a data key that is encrypted for a key of OpenPGP. Out: the data key, or the reason why
//! there is none. The program runs once for each data key, without a shell: it gets the encrypted
//! data key as its input; its outputs and its time are limited. The daemon never runs it.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use moorline_sops::{KeyHolder, KeyRefusal, KeySource, SecretBytes};

/// The program, unless another is named.
const PROGRAM: &str = "gpg";
/// The arguments: states are written to standard error, and no server is asked.
const ARGUMENTS: [&str; 7] =
    ["--batch", "--quiet", "--no-auto-key-retrieve", "--disable-dirmngr", "--status-fd", "2", "--decrypt"];
/// Time for one data key. The agent may ask for a passphrase meanwhile.
const DEADLINE: Duration = Duration::from_secs(120);
/// Interval at which the end of a process that has closed its outputs is polled.
const END_LOOK: Duration = Duration::from_millis(5);
/// Most bytes of a decrypted data key.
const MAX_DATA_KEY_BYTES: usize = 1024;
/// Most bytes of standard error that are read.
const MAX_WORDS_BYTES: usize = 64 * 1024;
/// State of a message that was encrypted, and is decrypted and whole.
const DECRYPTED: &[u8] = b"[GNUPG:] DECRYPTION_OKAY";

/// The keyring of a person.
pub(super) struct Gpg {
    program: OsString,
    arguments: Vec<OsString>,
    deadline: Duration,
    /// The reason for which the program is not started again.
    given_up: RefCell<Option<KeyRefusal>>,
}

/// Reason why there is no data key.
enum Failure {
    /// Of this data key.
    Refused(String),
    /// Of every data key.
    GivenUp(String),
}

impl Gpg {
    /// Uses the named program, or else `gpg`. It inherits the environment.
    pub(super) fn new(named: Option<OsString>) -> Self {
        Self {
            program: named.unwrap_or_else(|| PROGRAM.into()),
            arguments: ARGUMENTS.map(OsString::from).into(),
            deadline: DEADLINE,
            given_up: RefCell::default(),
        }
    }

    fn run(&self, enc: &str) -> Result<SecretBytes, Failure> {
        let until = Instant::now() + self.deadline;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Failure::GivenUp(self.not_started(&error)))?;
        let answer = self.answer(&mut child, enc, until);
        if answer.is_err() {
            // It may have ended already.
            let _ = child.kill();
        }
        let _ = child.wait();
        answer
    }

    /// Writes the input, and waits for the outputs and the end.
    fn answer(&self, child: &mut Child, enc: &str, until: Instant) -> Result<SecretBytes, Failure> {
        if let Some(mut input) = child.stdin.take() {
            let enc = enc.to_owned();
            // The input is closed at its end. A program that does not read it fails by itself.
            thread::spawn(move || drop(input.write_all(enc.as_bytes())));
        }
        let plain = child.stdout.take().map(|output| read_at_most(output, MAX_DATA_KEY_BYTES));
        let words = child.stderr.take().map(|output| read_at_most(output, MAX_WORDS_BYTES));
        let plain = self.wait(plain, until)?;
        if plain.as_bytes().len() > MAX_DATA_KEY_BYTES {
            return Err(self.refused("prints more than a data key"));
        }
        let words = self.wait(words, until)?;
        let status = self.end(child, until)?;
        let has =
            |state: &[u8]| words.as_bytes().split(|byte| *byte == b'\n').any(|line| line.starts_with(state));
        match status.success() && has(DECRYPTED) {
            true => Ok(plain),
            false => Err(self.refused(&format!(
                "does not decrypt it: the secret key is not there or stays locked, or the message is no encrypted one; {status}"
            ))),
        }
    }

    fn wait(&self, output: Option<Receiver<SecretBytes>>, until: Instant) -> Result<SecretBytes, Failure> {
        let output = output.ok_or_else(|| self.refused("has no output"))?;
        let left = until.saturating_duration_since(Instant::now());
        output.recv_timeout(left).map_err(|_| self.late())
    }

    fn end(&self, child: &mut Child, until: Instant) -> Result<ExitStatus, Failure> {
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() >= until => return Err(self.late()),
                Ok(None) => thread::sleep(END_LOOK),
                Err(error) => return Err(self.refused(&format!("cannot be waited for: {error}"))),
            }
        }
    }

    fn not_started(&self, error: &io::Error) -> String {
        let program = Path::new(&self.program).display();
        match error.kind() {
            io::ErrorKind::NotFound => format!(
                "it needs the program {program} with the secret key, and there is no {program} here; SOPS_GPG_EXEC names another program"
            ),
            _ => format!("the program {program} does not start: {error}"),
        }
    }

    fn late(&self) -> Failure {
        let (program, seconds) = (Path::new(&self.program).display(), self.deadline.as_secs_f32());
        Failure::GivenUp(format!("{program} has not answered within {seconds} s"))
    }

    fn refused(&self, problem: &str) -> Failure {
        Failure::Refused(format!("{} {problem}", Path::new(&self.program).display()))
    }
}

impl KeyHolder for Gpg {
    fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal> {
        let KeySource::Pgp { enc, .. } = source else { return Ok(None) };
        if let Some(refusal) = self.given_up.borrow().as_ref() {
            return Err(refusal.clone());
        }
        self.run(enc).map(Some).map_err(|failure| match failure {
            Failure::Refused(problem) => KeyRefusal(problem),
            Failure::GivenUp(problem) => {
                let refusal = KeyRefusal(problem);
                self.given_up.replace(Some(refusal.clone()));
                refusal
            }
        })
    }
}

/// Reads an output in a thread of its own. One byte above the bound shows that there is more.
fn read_at_most(mut output: impl Read + Send + 'static, most: usize) -> Receiver<SecretBytes> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::with_capacity(most + 1);
        // An output that breaks off lacks the state at its end.
        let _ = output.by_ref().take(most as u64 + 1).read_to_end(&mut bytes);
        let _ = sender.send(SecretBytes::new(bytes));
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    const OKAY: &str = "echo '[GNUPG:] DECRYPTION_OKAY' >&2";

    /// A program that is a script, as an argument of the shell.
    fn script(text: &str, deadline: Duration) -> Gpg {
        Gpg { arguments: vec!["-c".into(), text.into()], deadline, ..Gpg::new(Some("sh".into())) }
    }

    fn asked(gpg: &Gpg) -> Result<Vec<u8>, String> {
        let source = KeySource::Pgp { fingerprint: "F".into(), enc: "a message".into() };
        let found = gpg.decrypt(&source).map_err(|refusal| refusal.to_string())?;
        Ok(found.expect("is for this holder").as_bytes().to_vec())
    }

    #[test]
    fn the_message_is_the_input_and_only_what_was_encrypted_counts() {
        let run = |text: &str| asked(&script(text, DEADLINE));
        // Without an end of the input, cat would not end.
        assert_eq!(run(&format!("cat; {OKAY}")), Ok(b"a message".to_vec()));
        let refused = |text: &str| {
            let words = run(text).unwrap_err();
            assert!(words.starts_with("sh does not decrypt it: ") && !words.contains("hunter2"), "{words}");
        };
        refused("cat");
        refused(&format!("cat; {OKAY}; exit 2"));
        refused("echo '[GNUPG:] DECRYPTION_FAILED hunter2' >&2; echo hunter2; exit 2");
        let other = KeySource::Age { recipient: "age1".into(), enc: "a message".into() };
        assert!(matches!(script(OKAY, DEADLINE).decrypt(&other), Ok(None)));
    }

    #[test]
    fn outputs_are_limited() {
        let endless = asked(&script("exec yes", DEADLINE)).unwrap_err();
        assert_eq!(endless, "sh prints more than a data key");
        let words = format!("{OKAY}; cat; exec head -c 65000 /dev/zero >&2");
        assert_eq!(asked(&script(&words, DEADLINE)), Ok(b"a message".to_vec()));
    }

    #[test]
    fn a_program_that_does_not_answer_is_ended_and_not_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let starts = folder.path().join("starts");
        let text = format!("echo >> '{}'; exec sleep 60", starts.display());
        let gpg = script(&text, Duration::from_millis(500));
        let begin = Instant::now();
        for _ in 0..3 {
            assert_eq!(asked(&gpg).unwrap_err(), "sh has not answered within 0.5 s");
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        assert!(std::fs::read(starts).unwrap_or_default().len() <= 1, "it was started again");
    }
}
