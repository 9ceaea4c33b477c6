//! A real sshd on the loopback, which runs `git-upload-pack` for the owner of one key.
//!
//! In: a folder, a host key, the key that it lets in. Out: a port, and what sshd says. It runs as the user of the tests;
//! as root it would want an account and a folder of the system, so that root runs it as nobody. The library nss_wrapper
//! has it believe that this user is called git and has a shell.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use russh::keys::PrivateKey;

use moorline_test_support::daemon::until;
use moorline_test_support::programs::{command, find, report_skipped, tools};
use moorline_test_support::reaper::Reaper;
use moorline_test_support::running::Running;
use moorline_test_support::ssh_server::{known, pem};

const NOBODY: u32 = 65534;
const WRAPPER: &str = "libnss_wrapper.so";
/// Programs that sshd begins with since its version 9.8, and the settings that name them.
const PARTS: [(&str, &str); 2] = [("sshd-session", "SshdSessionPath"), ("sshd-auth", "SshdAuthPath")];

/// Folder of sshd's files, and the user as whom it runs.
pub(crate) struct Ground {
    folder: PathBuf,
    user: (u32, u32),
    pub(crate) port: u16,
    reaper: Arc<Reaper>,
}

/// A running sshd; killed when it is dropped.
pub(crate) struct Sshd {
    running: Running,
    /// Its line of known_hosts.
    pub(crate) known: String,
}

impl Ground {
    /// A folder in `root` with all that sshd needs; none where there is no sshd.
    pub(crate) fn new(root: &Path, user_key: &PrivateKey, reaper: &Arc<Reaper>) -> Option<Self> {
        let (program, beside) = (find("sshd")?, tools().join("openssh"));
        if !beside.join(WRAPPER).is_file() {
            report_skipped(&format!(
                "there is no openssh/{WRAPPER} in target/tools; `make tools` fetches it"
            ));
            return None;
        }
        let folder = root.join("sshd");
        fs::create_dir_all(&folder).unwrap();
        // Copies, because nobody may not come to where this repository lies.
        fs::copy(program, folder.join("sshd")).unwrap();
        for entry in fs::read_dir(beside).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        let owner = fs::metadata(&folder).unwrap();
        let user = if owner.uid() == 0 { (NOBODY, NOBODY) } else { (owner.uid(), owner.gid()) };
        // To its files, and to the repository, which lies beside them.
        for open in [root, &folder] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o711)).unwrap();
        }
        let place = folder.display();
        let passwd = format!("git:x:{}:{}::{place}:/bin/sh\n", user.0, user.1);
        fs::write(folder.join("passwd"), passwd).unwrap();
        fs::write(folder.join("group"), format!("git:x:{}:\n", user.1)).unwrap();
        fs::write(folder.join("keys"), user_key.public_key().to_openssh().unwrap()).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let ground = Self { folder, user, port, reaper: reaper.clone() };
        fs::write(ground.folder.join("config"), ground.config()).unwrap();
        Some(ground)
    }

    fn config(&self) -> String {
        let place = self.folder.display();
        let path = std::env::var("PATH").unwrap();
        // The repository is its owner's, and git asks whether it may be read by somebody else.
        let trust = "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=*";
        let mut text = format!(
            "ListenAddress 127.0.0.1\nPort {}\nHostKey {place}/host\nAuthorizedKeysFile {place}/keys\nStrictModes no\n\
             PidFile none\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             AcceptEnv GIT_PROTOCOL\nSetEnv {trust} \"PATH={path}\"\n",
            self.port
        );
        for (part, setting) in PARTS.iter().filter(|(part, _)| self.folder.join(part).exists()) {
            text += &format!("{setting} {place}/{part}\n");
        }
        text
    }

    /// Starts sshd with this host key.
    pub(crate) async fn start(&self, host_key: &PrivateKey) -> Sshd {
        let file = |name: &str| self.folder.join(name);
        fs::write(file("host"), pem(host_key)).unwrap();
        fs::set_permissions(file("host"), fs::Permissions::from_mode(0o600)).unwrap();
        for entry in fs::read_dir(&self.folder).unwrap() {
            chown(entry.unwrap().path(), Some(self.user.0), Some(self.user.1)).unwrap();
        }
        let log = file("log");
        // Lines of an earlier server are not of this one.
        drop(fs::remove_file(&log));
        let mut sshd = command(&file("sshd"));
        sshd.args(["-D", "-e", "-f"])
            .arg(file("config"))
            .env("LD_LIBRARY_PATH", &self.folder)
            .env("LD_PRELOAD", file(WRAPPER))
            .env("NSS_WRAPPER_PASSWD", file("passwd"))
            .env("NSS_WRAPPER_GROUP", file("group"));
        if fs::metadata(&self.folder).unwrap().uid() != self.user.0 {
            sshd.uid(self.user.0).gid(self.user.1);
        }
        let running = Running::start(&mut sshd, &log, &self.reaper);
        let mut sshd = Sshd { running, known: known(self.port, host_key.public_key()) };
        until("sshd listens", async || {
            let ended = sshd.running.child.try_wait().unwrap();
            assert!(ended.is_none(), "sshd ended: {}", sshd.log());
            sshd.log().contains("Server listening on").then_some(())
        })
        .await;
        sshd
    }
}

impl Sshd {
    pub(crate) fn log(&self) -> String {
        self.running.log()
    }

    /// Returns the number of logins.
    pub(crate) fn logins(&self) -> usize {
        self.log().matches("Accepted publickey for git").count()
    }
}
