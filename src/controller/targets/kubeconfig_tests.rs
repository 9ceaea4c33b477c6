//! Tests of the Secrets that give access to another cluster, as tables.

use serde_json::json;

use super::*;

fn kubeconfig(cluster: &Value, user: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "east",
        "clusters": [{"name": "c", "cluster": cluster}, {"name": "other", "cluster": {"proxy-url": "p"}}],
        "users": [{"name": "u", "user": user}, {"name": "other", "user": {"exec": {"command": "sh"}}}],
        "contexts": [{"name": "east", "context": {"cluster": "c", "user": "u"}}],
    })
}

fn with(base: &Value, more: &Value) -> Value {
    let mut all = base.as_object().unwrap().clone();
    all.extend(more.as_object().unwrap().clone());
    Value::Object(all)
}

fn read(key: &str, content: &Value) -> Result<RemoteAccess, String> {
    read_access(&[(key.to_owned(), content.to_string().into_bytes())], None)
        .map_err(|error| error.to_string())
}

#[test]
fn only_values_within_the_secret_give_access() {
    let cluster = json!({"server": "https://east.example.com:6443", "certificate-authority-data": "Q0E="});
    let user = json!({"token": "t", "client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"});
    for key in ["kubeconfig", "value"] {
        let found = read(key, &kubeconfig(&cluster, &user)).ok().unwrap();
        assert_eq!(found.host_and_port(), ("east.example.com", 6443));
        assert!(found.authorities.as_deref() == Some(b"CA") && found.token.as_deref() == Some("t"));
        assert!(found.client.is_some_and(|pair| pair.key == "S0VZ"));
    }
    assert!(read("other", &kubeconfig(&cluster, &user)).is_err_and(|text| text.contains("none of the keys")));
    let harmless = json!({"insecure-skip-tls-verify": false, "proxy-url": "", "disable-compression": true});
    assert!(read("value", &kubeconfig(&with(&cluster, &harmless), &user)).is_ok());
    let clusters = [
        ("insecure-skip-tls-verify", json!(true)),
        ("proxy-url", json!("http://proxy")),
        ("certificate-authority", json!("/etc/ca.crt")),
        ("new-field", json!("x")),
        ("server", json!("http://east.example.com")),
        ("server", json!("https://user:word@east.example.com")),
        ("server", json!("east.example.com")),
        ("server", json!("https://east.example.com/?a=b")),
        ("server", json!(null)),
        ("certificate-authority-data", json!("%")),
        ("tls-server-name", json!(["x"])),
    ];
    for (field, value) in clusters {
        let refused =
            read("value", &kubeconfig(&with(&cluster, &json!({field: value})), &user)).err().unwrap();
        assert!(refused.contains(field), "{field}: {refused}");
        assert!(!refused.contains("word"), "{refused}");
    }
    let users = [
        ("exec", json!({"command": "aws"})),
        ("auth-provider", json!({"name": "gcp"})),
        ("tokenFile", json!("/var/run/secrets/token")),
        ("client-certificate", json!("/etc/tls.crt")),
        ("client-key", json!("/etc/tls.key")),
        ("username", json!("admin")),
        ("password", json!("word")),
        ("as", json!("system:admin")),
        ("as-groups", json!(["system:masters"])),
        ("client-key-data", json!("")),
        ("token", json!(7)),
    ];
    for (field, value) in users {
        let refused =
            read("value", &kubeconfig(&cluster, &with(&user, &json!({field: value})))).err().unwrap();
        assert!(refused.contains(field) && !refused.contains("word\""), "{field}: {refused}");
    }
    let nobody = read("value", &kubeconfig(&cluster, &json!({}))).err().unwrap();
    assert!(nobody.contains("neither a token"), "{nobody}");
}

#[test]
fn a_kubeconfig_says_which_context_counts() {
    let (cluster, user) = (json!({"server": "https://east.example.com"}), json!({"token": "t"}));
    let whole = kubeconfig(&cluster, &user);
    let read = |more: Value| read("value", &with(&whole, &more));
    assert!(read(json!({"current-context": ""})).is_ok(), "there is only one");
    for (more, expect) in [
        (json!({"current-context": "west"}), "lacks the context"),
        (json!({"current-context": "", "contexts": []}), "names no current-context"),
        (json!({"users": []}), "lacks the user"),
        (
            json!({"clusters": [{"name": "c", "cluster": cluster}, {"name": "c", "cluster": cluster}]}),
            "cluster of its context twice",
        ),
        (json!({"contexts": [{"name": "east", "context": {"cluster": "c"}}]}), "names no user"),
    ] {
        let refused = read(more).err().unwrap();
        assert!(refused.contains(expect), "{expect}: {refused}");
    }
    let large = "# ".to_owned() + &"x".repeat(MAX_KUBECONFIG) + "\n" + &whole.to_string();
    for text in ["{", "a: 1\n---\nb: 2\n", "[]", "", &large] {
        let read = read_access(&[("value".to_owned(), text.as_bytes().to_vec())], None);
        assert!(read.is_err(), "{}", text.chars().take(20).collect::<String>());
    }
    let data = [("east".to_owned(), whole.to_string().into_bytes())];
    assert!(read_access(&data, Some("east")).is_ok());
    assert!(read_access(&data, Some("west")).is_err_and(|error| error.to_string().contains("no key west")));
}

#[test]
fn the_cluster_secrets_of_argo_cd_are_read() {
    let read = |config: Value| {
        let data = [("server", b"https://east.example.com".to_vec()), ("config", config.to_string().into())];
        let data = data.map(|(key, value)| (key.to_owned(), value));
        read_access(&data, None).map_err(|error| error.to_string())
    };
    let found = read(json!({"bearerToken": "t", "tlsClientConfig": {"insecure": false, "caData": "Q0E="}}));
    assert!(found.is_ok_and(|found| found.token.as_deref() == Some("t") && found.authorities.is_some()));
    for (config, expect) in [
        (json!({"bearerToken": "t", "tlsClientConfig": {"insecure": true}}), "insecure"),
        (json!({"awsAuthConfig": {"clusterName": "c"}}), "awsAuthConfig"),
        (json!({"execProviderConfig": {"command": "argocd-k8s-auth"}}), "execProviderConfig"),
        (json!({"username": "admin", "password": "word"}), "password"),
        (json!({"bearerToken": "t", "proxyUrl": "http://proxy"}), "proxyUrl"),
        (json!({"tlsClientConfig": {"certData": "Q0E="}}), "keyData"),
        (json!({}), "neither"),
    ] {
        let refused = read(config).err().unwrap();
        assert!(refused.contains(expect), "{expect}: {refused}");
    }
}
