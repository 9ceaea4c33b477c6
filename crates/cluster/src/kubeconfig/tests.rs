//! Kubeconfigs in one and several files, and what is said about broken ones.

use std::os::unix::fs::PermissionsExt as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::super::connect::KubeconfigContexts;
use super::*;

/// Files of a folder that goes with the value.
struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn read(&self, names: &[&str]) -> Result<Kubeconfig, ConnectError> {
        read(&names.iter().map(|name| self.0.path().join(name)).collect::<Vec<_>>())
    }

    fn error(&self, names: &[&str]) -> String {
        let error = self.read(names).expect_err("it is refused").to_string();
        let why = error.strip_prefix("the kubeconfig cannot be used: ").expect(&error);
        why.strip_prefix(&self.path("")).expect(&error).to_owned()
    }
}

const EAST: &str = "\
apiVersion: v1
kind: Config
current-context: east
clusters:
- {name: east, cluster: {server: 'https://east:6443', certificate-authority: ca.crt}}
contexts:
- {name: east, context: {cluster: east, user: me, namespace: shop}}
users:
- name: me
  user: {client-certificate: ./me.crt, client-key: /keys/me.key}
";

const WEST: &str = "\
apiVersion: v1
kind: Config
current-context: west
preferences: {colors: yes}
clusters:
- {name: east, cluster: {server: 'https://other:6443'}}
- {name: west, cluster: {server: 'https://west:6443', insecure-skip-tls-verify: true}}
contexts:
- {name: west, context: {cluster: west, user: robot}}
---
users:
- {name: robot, user: {tokenFile: token, exec: {command: bin/login, args: [west]}}}
- {name: me, user: {token: other}}
- {name: plain, user: {exec: {command: aws}}}
";

#[test]
fn the_first_of_several_files_wins_and_paths_begin_at_the_folder_of_their_file() {
    let files = Files::new(&[("a/config", EAST), ("b/config", WEST)]);
    let merged = files.read(&["a/config", "b/config"]).unwrap();
    assert_eq!(merged.current_context.as_deref(), Some("east"));
    assert_eq!(merged.preferences.unwrap().colors, Some(true));
    let cluster = |name: &str| {
        let mut named = merged.clusters.iter().filter(|named| named.name == name);
        let cluster = named.next().unwrap().cluster.clone().unwrap();
        assert!(named.next().is_none(), "{name} is there once");
        cluster
    };
    assert_eq!(cluster("east").server.as_deref(), Some("https://east:6443"));
    assert_eq!(cluster("east").certificate_authority, Some(files.path("a/ca.crt")));
    assert_eq!(cluster("west").insecure_skip_tls_verify, Some(true));
    let contexts: Vec<&str> = merged.contexts.iter().map(|named| &*named.name).collect();
    assert_eq!(contexts, ["east", "west"]);
    assert_eq!(merged.contexts[0].context.as_ref().unwrap().namespace.as_deref(), Some("shop"));

    let user = |name: &str| {
        let named = merged.auth_infos.iter().find(|named| named.name == name);
        named.unwrap().auth_info.clone().unwrap()
    };
    assert!(user("me").token.is_none(), "the second file changes nothing of the first");
    assert_eq!(user("me").client_certificate, Some(files.path("a/./me.crt")));
    assert_eq!(user("me").client_key.as_deref(), Some("/keys/me.key"));
    assert_eq!(user("robot").token_file, Some(files.path("b/token")));
    assert_eq!(user("robot").exec.unwrap().command, Some(files.path("b/bin/login")));
    assert_eq!(user("plain").exec.unwrap().command.as_deref(), Some("aws"), "it is looked up in PATH");
}

#[test]
fn a_file_may_be_empty_json_or_in_another_encoding() {
    let json = r#"{"current-context": "one", "clusters": null, "contexts": [], "users": []}"#;
    let files = Files::new(&[("json", json), ("empty", "# nothing\n")]);
    assert_eq!(files.read(&["empty", "json"]).unwrap().current_context.as_deref(), Some("one"));
    let utf16 = |order: fn(u16) -> [u8; 2]| {
        "\u{feff}current-context: zürich\n".encode_utf16().flat_map(order).collect::<Vec<u8>>()
    };
    let texts = [
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
        "\u{feff}current-context: zürich\n".as_bytes().to_vec(),
    ];
    for (place, text) in texts.into_iter().enumerate() {
        fs::write(files.path("encoded"), text).unwrap();
        let read = files.read(&["encoded"]).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("zürich"), "{place}");
    }
    fs::write(files.path("encoded"), [0xff, 0xfe, 0x61]).unwrap();
    assert_eq!(files.error(&["encoded"]), "encoded: it is no valid UTF-16");
}

#[test]
fn an_error_names_the_file_and_the_line_and_quotes_no_value() {
    let check = |text: &str, expected: &str| {
        let files = Files::new(&[("east", EAST), ("broken", text)]);
        assert_eq!(files.error(&["east", "broken"]), expected, "{text}");
    };
    check(
        "users:\n- name: me\n  user:\n    token: 12345\n",
        "broken:4:5: users[0].user.token: a string is expected",
    );
    check(
        "users: []\n---\nusers:\n- {name: a}\n- {name: b, user: {exec: {interactiveMode: planted}}}\n",
        "broken:5:20: users[1].user.exec: one of `Never`, `IfAvailable`, `Always` is expected",
    );
    check("clusters:\n- cluster: {server: planted}\n", "broken:2:3: clusters[0]: a missing field `name`");
    check(
        "contexts:\n- {name: a, context: {user: planted}}\n",
        "broken:2:13: contexts[0].context: a missing field `cluster`",
    );
    check("users:\n- {name: 5, user: {token: planted}}\n", "broken:2:4: users[0].name: a string is expected");
    check("users: planted\n", "broken:1:1: users: a sequence is expected");
    check("current-context: [planted]\n", "broken:1:1: current-context: a string is expected");
    check("planted\n", "broken:1:1: the file: a mapping is expected");
    check("kind: Planted\n", "broken: kubeconfigs with mismatching kind cannot be merged");
    let files = Files::new(&[("broken", "users:\n- name: me\n  user: {token: 'planted\n")]);
    let error = files.error(&["broken"]);
    assert!(error.starts_with("broken:") && !error.contains("planted"), "{error}");
    assert!(files.error(&["gone"]).starts_with("gone: No such file"), "{}", files.error(&["gone"]));
}

#[test]
fn files_of_a_list_may_be_missing_but_not_all() {
    let files = Files::new(&[("east", EAST)]);
    let path = |name: &str| PathBuf::from(files.path(name));
    assert_eq!(existing(vec![path("gone"), path("east"), path("away")]).unwrap(), [path("east")]);
    let error = existing(vec![path("gone"), path("away")]).unwrap_err();
    assert!(matches!(&error, ConnectError::Nothing(why) if why.contains("gone, ")), "{error}");
}

/// A kubeconfig of a server on the loopback, and of a program that logs in.
fn with_program(address: &str) -> String {
    format!(
        "current-context: here\nclusters: [{{name: here, cluster: {{server: 'http://{address}'}}}}]\n\
         contexts: [{{name: here, context: {{cluster: here, user: me}}}}]\n\
         users: [{{name: me, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: ./login, \
         interactiveMode: Never}}}}}}]\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_beside_the_kubeconfig_logs_in_with_json_or_yaml() {
    let json = r#"{"kind": "ExecCredential", "status": {"token": "from-json"}}"#;
    for (printed, token) in
        [(json, "from-json"), ("kind: ExecCredential\nstatus: {token: from-yaml}", "from-yaml")]
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let script = format!("#!/bin/sh\ncat <<'END'\n{printed}\nEND\n");
        let files = Files::new(&[("config", &with_program(&address)), ("login", &script)]);
        fs::set_permissions(files.path("login"), fs::Permissions::from_mode(0o755)).unwrap();
        let contexts = KubeconfigContexts(files.read(&["config"]).unwrap());
        let connection = contexts.connect("here").await.unwrap();
        let asked = tokio::spawn(async move {
            let request = http::Request::get("/version").body(Vec::new()).unwrap();
            connection.client.request_text(request).await.map_err(|error| error.to_string())
        });
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let read = stream.read(&mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head[..read]).into_owned();
        assert!(head.contains(&format!("authorization: Bearer {token}\r\n")), "{head}");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        assert_eq!(asked.await.unwrap(), Ok("ok".to_owned()));
    }
}
