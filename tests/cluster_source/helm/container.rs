//! The fence in a container, whose profile refuses namespaces: that of the chart's own Pod does. Such a place is made here by a filter
//! of system calls on a thread, which all that the thread starts has as well.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;

use landlock::{ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _};
use moorline::helm::isolation::Protections;
use moorline::helm::{Helm, IsolationLevel};
use moorline::object::Object;
use moorline::render::RenderOptions;
use moorline::render::helm::Capabilities;
use moorline::tree::FileTree;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};
use serde_json::json;

use super::daemon::file;
use super::{objects, script};
use moorline_test_support::daemon::until;
use moorline_test_support::programs::find;
use moorline_test_support::scene::Scene;

/// Does something where these system calls are refused with this error, and namespaces in any case.
fn contained<T: Send>(refused: &[i64], error: i32, work: impl FnOnce() -> T + Send) -> T {
    let filter = |rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32| -> Vec<seccompiler::sock_filter> {
        let action = SeccompAction::Errno(error.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into().unwrap();
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap().try_into().unwrap()
    };
    let spaces = [libc::CLONE_NEWUSER, libc::CLONE_NEWNET, libc::CLONE_NEWPID].map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        let asks =
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag).unwrap();
        SeccompRule::new(vec![asks]).unwrap()
    });
    let spaces =
        [(libc::SYS_unshare, Vec::new()), (libc::SYS_setns, Vec::new()), (libc::SYS_clone, spaces.to_vec())];
    let work = || {
        apply_filter(&filter(spaces.into_iter().collect(), libc::EPERM)).unwrap();
        if !refused.is_empty() {
            apply_filter(&filter(refused.iter().map(|call| (*call, Vec::new())).collect(), error)).unwrap();
        }
        work()
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// Returns the result of a program in the place of helm there.
fn run(program: &Path, strength: IsolationLevel) -> (Result<Vec<Object>, String>, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let fence = env!("CARGO_BIN_EXE_moorline");
    let helm = Helm::new(program, fence, folder.path().join("work")).with_isolation(strength);
    let chart = FileTree::from_texts([
        ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        ("templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
    ]);
    // Its threads are children of this one.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let found = objects(&helm, &chart, RenderOptions::default(), Capabilities::default()).await;
        (found, helm.isolation_warning().await)
    })
}

fn walls() -> Protections {
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_moorline")).args(["fence", "--walls"]).output();
    Protections::read(&String::from_utf8(said.unwrap().stdout).unwrap()).expect("the fence says what stands")
}

/// True if this machine has what the proof needs; a kernel without Landlock is said so, and proves the filter of calls alone.
fn has_landlock() -> bool {
    let access = AccessFs::from_all(ABI::V1);
    let all = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(access);
    let has = all.and_then(Ruleset::create).is_ok();
    if !has {
        eprintln!("this kernel has no Landlock: nothing is proven here about files");
    }
    has
}

#[test]
fn what_namespaces_would_keep_away_is_out_of_reach_without_them() {
    let Some(git) = find("git") else { return };
    let stands = contained(&[], 0, walls);
    assert_eq!((stands.namespaces.as_str(), stands.calls, stands.files), ("", true, has_landlock()));
    let folder = tempfile::tempdir().unwrap();
    let neighbour = folder.path().join("login");
    std::fs::write(&neighbour, "a login of the daemon").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let own = std::process::id();
    let lines = [
        "reach() { name=$1; shift; \"$@\" > /dev/null 2>&1 < /dev/null && printf 'reached %s ' $name >&2; }"
            .to_owned(),
        "reach passwd /bin/cat /etc/passwd".to_owned(),
        format!("reach login /bin/cat {}", neighbour.display()),
        format!("reach environment /bin/cat /proc/{own}/environ"),
        format!("reach folder /bin/ls {}", folder.path().display()),
        format!("reach writing /usr/bin/touch {}", folder.path().join("left").display()),
        format!("reach mode /bin/chmod 777 {}", neighbour.display()),
        format!("reach daemon kill -0 {own}"),
        "reach group /usr/bin/setsid --wait /bin/true".to_owned(),
        "reach chart /bin/cat chart/Chart.yaml".to_owned(),
        format!(
            "{} ls-remote git://{}/a < /dev/null > /dev/null 2>&1",
            git.display(),
            listener.local_addr().unwrap()
        ),
        "exit 1".to_owned(),
    ]
    .join("\n");
    let program = script(folder.path(), &lines);
    let (told, _) = contained(&[], 0, || run(&program, IsolationLevel::BestEffort));
    let told = told.unwrap_err();
    assert!(listener.accept().is_err(), "somebody has come through");
    let reached = |told: &str| -> Vec<String> {
        told.split("reached ")
            .skip(1)
            .filter_map(|rest| rest.split_whitespace().next())
            .map(str::to_owned)
            .collect()
    };
    if has_landlock() {
        assert_eq!(reached(&told), ["chart"], "{told}");
    } else {
        let found = reached(&told);
        assert!(!["mode", "daemon", "group"].iter().any(|name| found.iter().any(|it| it == name)), "{told}");
    }
    // Outside of the fence the same program reaches all of it; git speaks to nobody, and somebody hears it.
    let child = std::process::Command::new(&program).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while listener.accept().is_err() {
        assert!(std::time::Instant::now() < until, "the way is open");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(listener);
    let words = child.wait_with_output().unwrap().stderr;
    assert_eq!(reached(&String::from_utf8_lossy(&words)).len(), 8, "{}", String::from_utf8_lossy(&words));
}

#[test]
fn helm_renders_there_what_it_renders_elsewhere() {
    let (Some(program), true) = (find("helm"), has_landlock()) else { return };
    let (found, said) = contained(&[], 0, || run(&program, IsolationLevel::Required));
    assert_eq!((found.unwrap().len(), said), (1, None));
}

#[test]
fn a_kernel_without_isolation_of_files_is_refused_or_reported() {
    let Some(program) = find("helm") else { return };
    let without =
        |strength| contained(&[libc::SYS_landlock_create_ruleset], libc::ENOSYS, || run(&program, strength));
    let (refused, said) = without(IsolationLevel::Required);
    let refused = refused.unwrap_err();
    assert!(
        refused.starts_with(
            "HelmIsolationUnavailable: this kernel does not support isolation of files (Landlock), so helm is not run"
        ),
        "{refused}"
    );
    assert_eq!(said, None);
    let (found, said) = without(IsolationLevel::BestEffort);
    assert_eq!(found.unwrap().len(), 1);
    let said = said.expect("the status says so");
    assert!(said.starts_with("helm runs without isolation of files (Landlock)"), "{said}");
}

#[tokio::test]
async fn a_daemon_there_says_why_it_renders_no_chart_or_without_which_wall() {
    let Some(program) = find("helm") else { return };
    let Some(scene) = Scene::new("chart-contained").await else { return };
    let commit = scene.push(&[
        file("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        file("chart/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
    ]);
    scene.sync("shop", json!({"path": "./chart", "interval": "1h"})).await;
    let helm = std::path::absolute(program).unwrap();
    let daemon = |more: &[&str]| {
        let arguments = [&["--leader-election=false", "--helm", helm.to_str().unwrap()], more].concat();
        contained(&[libc::SYS_landlock_create_ruleset], libc::ENOSYS, || scene.daemon_with(&arguments))
    };
    let strict = daemon(&[]);
    scene.until_reason("shop", "HelmIsolationUnavailable").await;
    let told = scene.status("shop", "/conditions/0/message").await;
    assert!(told.as_str().is_some_and(|it| it.contains("or set helmFence: bestEffort")), "{told}");
    drop(strict);
    let _lenient = daemon(&["--helm-fence", "bestEffort"]);
    scene.until_ready("shop", &commit).await;
    until("the status says what is missing", async || {
        let told = scene.status("shop", "/conditions/0/message").await;
        let said = "; helm runs without isolation of files (Landlock)";
        told.as_str().is_some_and(|it| it.contains(said)).then_some(())
    })
    .await;
}

#[test]
fn a_schema_that_is_not_skipped_reaches_neither_files_nor_sockets() {
    let Some(helm) = find("helm") else { return };
    let helm = std::path::absolute(helm).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let place = folder.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    };
    file("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n");
    file("chart/values.yaml", "a: 1\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    // The daemon's options for helm leave such schemas out; here there are none.
    let ask = |schema: &str, is_fenced: bool| {
        file("chart/values.schema.json", &format!("{{\"$ref\": \"{schema}\"}}"));
        let mut command = match is_fenced {
            true => std::process::Command::new(env!("CARGO_BIN_EXE_moorline")),
            false => std::process::Command::new(&helm),
        };
        if is_fenced {
            command.args(["fence", "--"]).arg(&helm);
        }
        command.args(["template", "a", "chart"]).current_dir(folder.path()).env_clear();
        command.env("HOME", folder.path()).stdin(std::process::Stdio::null());
        let output = contained(&[], 0, || command.output().unwrap());
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    if has_landlock() {
        let told = ask("file:///etc/passwd", true);
        assert!(told.contains("open /etc/passwd: permission denied"), "{told}");
    }
    let told = ask("file:///etc/passwd", false);
    assert!(told.contains("invalid character"), "without a fence it is read: {told}");
    let url = format!("http://{}/a.json", listener.local_addr().unwrap());
    let told = ask(&url, true);
    assert!(told.contains("operation not permitted"), "{told}");
    assert!(listener.accept().is_err(), "somebody has come through");
    // Without a fence somebody does; a caller without an answer says so.
    let answer = std::thread::spawn(move || {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while std::time::Instant::now() < until {
            if listener.accept().is_ok() {
                return true;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        false
    });
    ask(&url, false);
    assert!(answer.join().unwrap(), "the way is open");
}
