//! A loopback Git server for tests: smart HTTP over `git http-backend`, with faults on demand.
//!
//! In: a folder of bare repositories, and a rule that decides the response to each request.
//! Out: a URL, and a log of all requests with their bytes. Also [`Work`], a working copy in which
//! tests commit and push.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Response to a request.
#[derive(Clone)]
pub enum Reply {
    /// Response of Git.
    Git,
    /// Response of Git with a protocol older than version 2.
    OldGit,
    /// This status, these header lines and this body.
    Raw(u16, &'static str, Vec<u8>),
    /// The first bytes of Git's response, with the length of the whole.
    Cut(usize),
    /// Response of Git, with a changed body.
    Changed(fn(Vec<u8>) -> Vec<u8>),
    /// No response.
    Silence,
    /// No response until this is true, then the connection is cut.
    SilenceUntil(Arc<AtomicBool>),
    /// One byte of the response every 50 milliseconds.
    Drip,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Bytes received, and bytes of the body sent.
    pub up: usize,
    pub down: usize,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

type Rule = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

pub struct GitServer {
    pub port: u16,
    root: PathBuf,
    log: Arc<Mutex<Vec<Request>>>,
    rule: Arc<Mutex<Rule>>,
}

impl GitServer {
    /// Serves the bare repositories in `root`.
    pub fn start(root: &Path) -> Self {
        Self::start_with(root, None)
    }

    /// Same as [`Self::start`], over TLS.
    pub fn start_with(root: &Path, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        Self::start_on(TcpListener::bind(("127.0.0.1", 0)).unwrap(), root, tls)
    }

    /// Same as [`Self::start_with`], with an existing listener.
    pub fn start_on(listener: TcpListener, root: &Path, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            root: root.to_owned(),
            log: Arc::default(),
            rule: Arc::new(Mutex::new(Box::new(|_| Reply::Git))),
        };
        let (root, log, rule) = (server.root.clone(), server.log.clone(), server.rule.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, log, rule, tls) = (root.clone(), log.clone(), rule.clone(), tls.clone());
                thread::spawn(move || {
                    drop(stream.set_nodelay(true));
                    match tls {
                        Some(config) => {
                            let session = rustls::ServerConnection::new(config).unwrap();
                            serve(rustls::StreamOwned::new(session, stream), &root, &log, &rule)
                        }
                        None => serve(stream, &root, &log, &rule),
                    }
                });
            }
        });
        server
    }

    pub fn url(&self, repository: &str) -> String {
        format!("http://127.0.0.1:{}/{repository}", self.port)
    }

    pub fn rule(&self, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }

    /// Returns the requests since the last call.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

/// Answers the requests of one connection.
fn serve<S: Read + Write>(
    stream: S,
    root: &Path,
    log: &Mutex<Vec<Request>>,
    rule: &Mutex<Rule>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = receive(&mut stream).ok()?;
        let reply = rule.lock().unwrap()(&request);
        let (head, body) = match &reply {
            Reply::Silence => {
                log.lock().unwrap().push(request);
                thread::sleep(Duration::from_secs(600));
                return None;
            }
            Reply::SilenceUntil(end) => {
                log.lock().unwrap().push(request);
                while !end.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(20));
                }
                return None;
            }
            Reply::Raw(status, headers, body) => (format!("HTTP/1.1 {status} -\r\n{headers}"), body.clone()),
            Reply::Git | Reply::OldGit | Reply::Cut(_) | Reply::Drip | Reply::Changed(_) => {
                backend(root, &request, matches!(reply, Reply::OldGit)).ok()?
            }
        };
        let body = match reply {
            Reply::Changed(change) => change(body),
            _ => body,
        };
        request.down = body.len();
        log.lock().unwrap().push(request);
        let out = stream.get_mut();
        out.write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes()).ok()?;
        match reply {
            Reply::Cut(length) => {
                out.write_all(&body[..length.min(body.len())]).ok()?;
                out.flush().ok()?;
                return None;
            }
            Reply::Drip => {
                for byte in &body {
                    out.write_all(&[*byte]).ok()?;
                    out.flush().ok()?;
                    thread::sleep(Duration::from_millis(50));
                }
            }
            _ => out.write_all(&body).ok()?,
        }
        out.flush().ok()?;
    }
}

fn receive(stream: &mut impl BufRead) -> io::Result<Request> {
    let mut up = 0;
    let mut line = || -> io::Result<String> {
        let mut line = String::new();
        up += stream.read_line(&mut line)?;
        match line.is_empty() {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(line.trim_end().to_owned()),
        }
    };
    let first = line()?;
    let mut headers = Vec::new();
    loop {
        let header = line()?;
        match header.split_once(':') {
            Some((key, value)) => headers.push((key.to_ascii_lowercase(), value.trim().to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(key, _)| key == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap_or(0))];
    stream.read_exact(&mut body)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let up = up + body.len();
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    Ok(Request { method, path, query, headers, body, up, down: 0 })
}

/// Returns the head (status and headers) and the body of Git's own response.
fn backend(root: &Path, request: &Request, old: bool) -> io::Result<(String, Vec<u8>)> {
    let mut command = git(root);
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("REQUEST_METHOD", &request.method)
        .env("CONTENT_TYPE", request.header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", request.body.len().to_string());
    if let (Some(version), false) = (request.header("git-protocol"), old) {
        command.env("GIT_PROTOCOL", version);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut input = child.stdin.take().unwrap();
    let body = request.body.clone();
    let writer = thread::spawn(move || drop(input.write_all(&body)));
    let output = child.wait_with_output()?.stdout;
    drop(writer.join());
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(0);
    let mut head = "HTTP/1.1 200 OK\r\n".to_owned();
    for line in String::from_utf8_lossy(&output[..end]).split("\r\n") {
        match line.strip_prefix("Status: ") {
            Some(status) => head = format!("HTTP/1.1 {status}\r\n"),
            None => head.push_str(&format!("{line}\r\n")),
        }
    }
    Ok((head, output.get(end + 4..).unwrap_or_default().to_vec()))
}

/// Runs git in `folder`, without any user configuration.
fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.com");
    command
}

/// A working copy, and the bare repository `repository.git` beside it, to which it pushes.
pub struct Work {
    pub folder: PathBuf,
    pub bare: PathBuf,
}

impl Work {
    /// Creates an empty pair in `root`.
    pub fn new(root: &Path) -> Self {
        let work = Self { folder: root.join("work"), bare: root.join("repository.git") };
        std::fs::create_dir_all(&work.folder).unwrap();
        git(root).args(["init", "-q", "--bare", "-b", "main", "repository.git"]).status().unwrap();
        work.git(&["init", "-q", "-b", "main", "."]);
        work.git(&["remote", "add", "origin", "../repository.git"]);
        work
    }

    /// Runs git in the working copy and returns its output.
    pub fn git(&self, arguments: &[&str]) -> String {
        Self::git_in(&self.folder, arguments)
    }

    pub fn git_in(folder: &Path, arguments: &[&str]) -> String {
        let output = git(folder).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        text
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Commits files and returns the commit id.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        files.iter().for_each(|(path, text)| self.write(path, text));
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Creates a branch of so many empty commits, faster than one by one.
    pub fn import(&self, branch: &str, from: Option<&str>, commits: usize) {
        let mut from = from.map(|commit| format!("from {commit}\n")).unwrap_or_default();
        let mut import = String::new();
        for number in 0..commits {
            import.push_str(&format!(
                "commit refs/heads/{branch}\ncommitter a <a@example.com> {number} +0000\ndata 1\nx\n"
            ));
            import.push_str(&std::mem::take(&mut from));
        }
        self.write("../import", &import);
        let script = "git fast-import --quiet < ../import";
        let done = Command::new("sh").args(["-c", script]).current_dir(&self.folder).status();
        assert!(done.unwrap().success());
    }

    /// Commits files, pushes the branch, and returns the commit id.
    pub fn push(&self, files: &[(&str, &str)]) -> String {
        let id = self.commit(files);
        self.git(&["push", "-q", "-f", "origin", "HEAD"]);
        id
    }
}
