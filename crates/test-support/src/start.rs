//! Starts etcd, the API server and the controller manager, and waits until they are ready.
//!
//! In: the programs and a new directory.
//! Out: a control plane in which the daemon's user may do everything, or an error with the end of
//! the failed server's log.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::Client;

use super::binaries::Binaries;
use super::control_plane::{ControlPlane, client_of};
use super::credentials::{ADMIN, CONTROLLERS, Credentials, MOORLINE};
use super::reaper::Reaper;
use super::server::Server;

/// A start takes three seconds; this is for a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(180);
/// Interval between two checks of a starting server.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Number of attempts, in case other programs take the ports that were free a moment before.
const ATTEMPTS: u32 = 3;

/// Logs every request once when it is answered, and watches also when they begin.
const AUDIT_POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}]
}"#;

/// A failed start; with `port_taken` another attempt may succeed.
struct Failure {
    text: String,
    port_taken: bool,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { text, port_taken: false }
    }
}

/// Returns a control plane that is ready, or the reason for the failure.
pub async fn start(binaries: &Binaries) -> Result<ControlPlane, String> {
    let mut attempt = 1;
    loop {
        match start_once(binaries).await {
            Ok(plane) => return Ok(plane),
            Err(failure) if failure.port_taken && attempt < ATTEMPTS => attempt += 1,
            Err(failure) => return Err(failure.text),
        }
    }
}

async fn start_once(binaries: &Binaries) -> Result<ControlPlane, Failure> {
    let (directory, reaper) = place()?;
    let starting = Starting {
        credentials: Credentials::write_into(&directory)?,
        ports: free_ports()?,
        deadline: Instant::now() + START_DEADLINE,
        reaper,
        directory,
    };
    let mut servers = vec![starting.etcd(&binaries.etcd).await?];
    let mut api_server = starting.api_server_command()?;
    api_server.extend(flags_beside(&binaries.api_server));
    let authority = starting.api_server(&binaries.api_server, &api_server, &mut servers).await?;
    servers.push(starting.controller_manager(&binaries.controller_manager, &authority)?);
    Ok(ControlPlane {
        audit_log: starting.directory.join("audit.log"),
        url: starting.url(),
        etcd: ("127.0.0.1", starting.ports[0]),
        api_server: (binaries.api_server.clone(), api_server),
        authority,
        servers: Mutex::new(servers),
        namespaces: Mutex::default(),
        directory: starting.directory,
        credentials: Arc::new(starting.credentials),
        reaper: starting.reaper,
    })
}

/// Returns the flags that this version of the API server needs, one a line in a file beside it.
fn flags_beside(api_server: &Path) -> Vec<String> {
    let flags = std::fs::read_to_string(api_server.with_file_name("api-server-flags")).unwrap_or_default();
    flags.lines().map(str::to_owned).collect()
}

/// Creates the directory of a control plane, which is removed at the end of the test process.
pub(crate) fn place() -> Result<(PathBuf, Arc<Reaper>), String> {
    let directory = tempfile::Builder::new()
        .prefix("moorline-control-plane-")
        .tempdir()
        .map_err(|error| format!("no temporary directory: {error}"))?
        .keep();
    let reaper = Reaper::for_directory(&directory)
        .map_err(|error| format!("cannot start the reaper's /bin/sh: {error}"))?;
    Ok((directory, Arc::new(reaper)))
}

/// State that the servers of one start share.
struct Starting {
    directory: PathBuf,
    credentials: Credentials,
    ports: [u16; 3],
    deadline: Instant,
    reaper: Arc<Reaper>,
}

impl Starting {
    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports[2])
    }

    fn etcd_urls(&self) -> [String; 2] {
        [0, 1].map(|which| format!("http://127.0.0.1:{}", self.ports[which]))
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }

    async fn etcd(&self, program: &Path) -> Result<Server, Failure> {
        let [clients, peers] = self.etcd_urls();
        let arguments = [
            format!("--data-dir={}", self.path("etcd")),
            // Data does not have to survive a power failure.
            "--unsafe-no-fsync".to_owned(),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            "--log-level=error".to_owned(),
            "--quota-backend-bytes=8589934592".to_owned(),
        ];
        let mut server = self.server(program, &arguments)?;
        let address = ("127.0.0.1", self.ports[0]);
        self.until(std::slice::from_mut(&mut server), async || match TcpStream::connect(address) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{address:?}: {error}")),
        })
        .await?;
        Ok(server)
    }

    /// The arguments of the API server.
    fn api_server_command(&self) -> Result<Vec<String>, Failure> {
        let policy = self.path("audit-policy.json");
        std::fs::write(&policy, AUDIT_POLICY).map_err(|error| format!("cannot write {policy}: {error}"))?;
        Ok(vec![
            format!("--etcd-servers={}", self.etcd_urls()[0]),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports[2]),
            format!("--cert-dir={}", self.path("certificates")),
            format!("--token-auth-file={}", self.credentials.token_file.display()),
            "--authorization-mode=RBAC".to_owned(),
            format!("--service-account-key-file={}", self.credentials.public_key.display()),
            format!("--service-account-signing-key-file={}", self.credentials.private_key.display()),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/12".to_owned(),
            // Otherwise it complains forever that its address, a loopback address, cannot be an
            // endpoint.
            "--endpoint-reconciler-type=none".to_owned(),
            "--allow-privileged".to_owned(),
            format!("--audit-policy-file={policy}"),
            format!("--audit-log-path={}", self.path("audit.log")),
            // Writes each entry before the response is sent; batches would be dropped when their
            // buffer is full.
            "--audit-log-mode=blocking".to_owned(),
            // In megabytes. A rotation would hide requests from the tests that count them.
            "--audit-log-maxsize=100000".to_owned(),
        ])
    }

    /// Starts the API server and adds it to etcd in `servers`; returns the certificate by which
    /// clients verify it.
    async fn api_server(
        &self,
        program: &Path,
        arguments: &[String],
        servers: &mut Vec<Server>,
    ) -> Result<String, Failure> {
        servers.push(self.server(program, arguments)?);
        let certificate = self.directory.join("certificates/apiserver.crt");
        let mut authority = String::new();
        self.until(servers, async || {
            authority = issuer(&certificate)?;
            let admin =
                client_of(&self.credentials.kubeconfig(ADMIN, &self.url(), &authority), ADMIN).await?;
            is_ready(&admin).await?;
            grant_everything(&admin, MOORLINE).await
        })
        .await?;
        Ok(authority)
    }

    fn controller_manager(&self, program: &Path, authority: &str) -> Result<Server, Failure> {
        let kubeconfig = self.path("controllers.kubeconfig");
        let certificate = self.path("authority.crt");
        std::fs::write(&kubeconfig, self.credentials.kubeconfig(CONTROLLERS, &self.url(), authority))
            .and_then(|()| std::fs::write(&certificate, authority))
            .map_err(|error| format!("cannot write into {}: {error}", self.directory.display()))?;
        let arguments = [
            format!("--kubeconfig={kubeconfig}"),
            "--secure-port=0".to_owned(),
            "--leader-elect=false".to_owned(),
            format!("--root-ca-file={certificate}"),
            format!("--service-account-private-key-file={}", self.credentials.private_key.display()),
            "--controllers=*,-node-ipam-controller".to_owned(),
        ];
        self.server(program, &arguments)
    }

    fn server(&self, program: &Path, arguments: &[String]) -> Result<Server, Failure> {
        Server::start(program, arguments, &self.directory, &self.reaper)
            .map_err(|error| format!("cannot start {}: {error}", program.display()).into())
    }

    /// Polls until the result is `Ok`, one of the servers has ended, or the deadline is over. All
    /// servers are checked, because another program on etcd's port would answer instead of etcd.
    async fn until(
        &self,
        servers: &mut [Server],
        mut ask: impl AsyncFnMut() -> Result<(), String>,
    ) -> Result<(), Failure> {
        loop {
            let refusal = match ask().await {
                Ok(()) => return Ok(()),
                Err(refusal) => refusal,
            };
            for server in servers.iter_mut() {
                if let Some(end) = server.ended() {
                    return Err(Failure {
                        text: format!("the control plane did not start: {end}"),
                        port_taken: server.log.names_a_taken_port(),
                    });
                }
            }
            if Instant::now() > self.deadline {
                let tails: String = servers.iter().map(|server| server.log.tail()).collect();
                return Err(format!("not ready after {START_DEADLINE:?}: {refusal}\n{tails}").into());
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }
}

/// Three different ports that are free now.
pub(crate) fn free_ports() -> Result<[u16; 3], String> {
    let no_port = |error| format!("no free port on 127.0.0.1: {error}");
    let listen = || TcpListener::bind(("127.0.0.1", 0)).map_err(no_port);
    let listeners = [listen()?, listen()?, listen()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr().map_err(no_port)?.port();
    }
    Ok(ports)
}

/// Returns the certificate of the API server's own authority: the file has its own certificate,
/// then the issuer's.
fn issuer(certificate: &Path) -> Result<String, String> {
    let chain =
        std::fs::read_to_string(certificate).map_err(|error| format!("no certificate yet: {error}"))?;
    let last = chain.rfind("-----BEGIN CERTIFICATE-----").ok_or("the certificate is not written yet")?;
    Ok(chain[last..].to_owned())
}

async fn is_ready(admin: &Client) -> Result<(), String> {
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| error.to_string())?;
    let answer = admin.request_text(request).await;
    answer.map(drop).map_err(|error| format!("/readyz: {error}"))
}

/// Grants all rights to the daemon's user, by RBAC as in a real cluster.
async fn grant_everything(admin: &Client, user: &str) -> Result<(), String> {
    let binding = serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let uri = format!(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{user}?fieldManager=tests&force=true"
    );
    let request = http::Request::patch(uri)
        .header("Content-Type", "application/apply-patch+yaml")
        .body(binding.to_string().into_bytes())
        .map_err(|error| error.to_string())?;
    let answer = admin.request_text(request).await;
    answer.map(drop).map_err(|error| format!("cannot bind cluster-admin to {user}: {error}"))
}
