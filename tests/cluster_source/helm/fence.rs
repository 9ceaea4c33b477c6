//! Programs in the place of helm that want out, or that do not end. Each is held back, and nothing of it stays. `container.rs` has
//! the same where namespaces are refused, as in a Pod.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use moorline::helm::isolation::Protections;
use moorline::helm::{Helm, IsolationLevel};
use moorline::object::Object;
use moorline::render::RenderOptions;
use moorline::render::helm::Capabilities;
use moorline::tree::FileTree;

use super::{helm_of, objects, script};
use moorline_test_support::programs::find;
use moorline_test_support::under_load::under_load;

/// Returns the result of these shell lines in the place of helm.
async fn run(lines: &str, deadline: Duration) -> Result<Vec<Object>, String> {
    let folder = tempfile::tempdir().unwrap();
    let (helm, work) = helm_of(&script(folder.path(), lines));
    let answer = render(&helm.with_deadline(deadline)).await;
    let left = std::fs::read_dir(work.path().join("work")).unwrap().count();
    assert_eq!(left, 0, "the folder of the run is gone");
    answer
}

async fn render(helm: &Helm) -> Result<Vec<Object>, String> {
    let tree = FileTree::from_texts([("Chart.yaml", "name: shop\n"), ("templates/a.yaml", "a: b\n")]);
    objects(helm, &tree, RenderOptions::default(), Capabilities::default()).await
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(2);
const MAP: &str = "printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: a}\\n'";

/// For what the kernel still does with a process that was killed, on a machine that is busy.
const MOMENT: Duration = Duration::from_secs(10);

/// True if a process has this as an argument, and goes on.
fn runs(argument: &str) -> bool {
    let begun = Instant::now();
    while is_there(argument) {
        if begun.elapsed() > under_load(MOMENT) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn is_there(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes()))
}

#[tokio::test]
async fn it_knows_nothing_of_the_daemon() {
    // In this process there are dozens of variables, PATH and the folders of cargo among them.
    let told = run("export -p >&2; exit 1", LONG).await.unwrap_err();
    let names: Vec<&str> = told
        .split("export ")
        .skip(1)
        .filter_map(|line| line.split_once('=').map(|(name, _)| name))
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    let expect = [
        "GOMAXPROCS",
        "GOMEMLIMIT",
        "HELM_CACHE_HOME",
        "HELM_CONFIG_HOME",
        "HELM_DATA_HOME",
        "HELM_PLUGINS",
        "HELM_REPOSITORY_CACHE",
        "HOME",
        "TMPDIR",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    ];
    assert_eq!(names, expect, "{told}");
    // Its files are its own, and there is no input.
    let told = run(&format!("read -r line && exit 1\n[ -s chart/Chart.yaml ] || exit 1\n{MAP}"), LONG).await;
    assert_eq!(told.unwrap().len(), 1);
}

#[tokio::test]
async fn it_reaches_no_network() {
    let Some(git) = find("git") else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("git://{}/a", listener.local_addr().unwrap());
    let ask = format!("{} ls-remote {url} < /dev/null > /dev/null 2>&1", git.display());
    let answer = run(&format!("{ask}\n{MAP}"), SHORT).await;
    assert_eq!(answer.unwrap().len(), 1);
    assert!(listener.accept().is_err(), "somebody has come through");
    // The same without a fence does come through.
    let mut child = Command::new("/bin/sh").args(["-c", &ask]).spawn().unwrap();
    let until = Instant::now() + LONG;
    while listener.accept().is_err() {
        assert!(Instant::now() < until, "the way is open");
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the protections that this machine has.
fn walls() -> Protections {
    let said = Command::new(env!("CARGO_BIN_EXE_moorline")).args(["fence", "--walls"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    Protections::read(&said).expect("the fence says what stands")
}

#[tokio::test]
async fn it_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let write = |file: &str| format!("while echo 0123456789; do :; done > {file} 2> /dev/null");
    let outside = write(file.to_str().unwrap());
    // In its own folder there may be a file, without anything in it.
    let lines = format!("{outside}\n{}\n[ -e file ] && [ ! -s file ] || exit 1\n{MAP}", write("file"));
    assert_eq!(run(&lines, LONG).await.unwrap().len(), 1);
    match walls().files {
        true => assert!(!file.exists(), "outside of its folder there is not even that"),
        false => assert_eq!(std::fs::metadata(file).unwrap().len(), 0),
    }
}

#[tokio::test]
async fn it_leaves_nothing_behind() {
    // Neither children that have closed its output, nor those in a session of their own.
    let stays = format!("{MAP}\n/bin/sleep 7654321 > /dev/null 2>&1 &\nexit 0");
    assert_eq!(run(&stays, LONG).await.unwrap().len(), 1);
    assert!(!runs("7654321"));
    // Those that hold its output open are ended at the deadline.
    let told = run("/bin/sleep 7654322 &\n/bin/sleep 7654323", SHORT).await.unwrap_err();
    assert!(told.contains("HelmExceeded: helm was stopped: it took longer than 2 s"), "{told}");
    assert!(!runs("7654322") && !runs("7654323"));
    // They cannot leave their process group, and with namespaces that would help them nothing.
    if walls().calls {
        let setsid =
            [Path::new("/usr/bin/setsid"), Path::new("/bin/setsid")].into_iter().find(|it| it.exists());
        let Some(setsid) = setsid else { return };
        let leaves =
            format!("{MAP}\n{} /bin/sleep 7654324 > /dev/null 2>&1 &\n/bin/sleep 0.2", setsid.display());
        assert_eq!(run(&leaves, LONG).await.unwrap().len(), 1);
        assert!(!runs("7654324"));
    }
}

#[tokio::test]
async fn it_ends_when_its_time_or_its_room_is_over() {
    let begun = Instant::now();
    let told = run("while :; do :; done", SHORT).await.unwrap_err();
    assert!(told.contains("took longer than 2 s") && begun.elapsed() < under_load(LONG), "{told}");
    // It has closed what it prints to, and goes on.
    let told = run("exec > /dev/null 2>&1\n/bin/sleep 7654325", SHORT).await.unwrap_err();
    assert!(told.contains("took longer than 2 s") && !runs("7654325"), "{told}");
    let line = "0123456789".repeat(400);
    let told = run(&format!("while :; do echo {line}; done"), LONG).await.unwrap_err();
    assert!(told.contains("it printed more than 33554432 bytes"), "{told}");
    let told = run(&format!("while :; do echo {line}; done >&2"), SHORT * 10).await.unwrap_err();
    assert!(told.contains("bytes of warnings") || told.contains("took longer"), "{told}");
    let told = run("x=0123456789; while :; do x=$x$x; done", LONG).await.unwrap_err();
    assert!(told.contains("Helm"), "{told}");
    let told = run("kill -9 $$; /bin/sleep 1; exit 3", LONG).await.unwrap_err();
    assert!(told.contains("Helm"), "{told}");
}

#[tokio::test]
async fn a_chart_that_takes_all_memory_takes_its_own() {
    let Some(program) = find("helm") else { return };
    let (helm, _work) = helm_of(&program);
    let check = async |template: &str, expect: &[&str]| {
        let tree = FileTree::from_texts([
            ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
            ("templates/a.yaml", template),
        ]);
        let told =
            objects(&helm, &tree, RenderOptions::default(), Capabilities::default()).await.unwrap_err();
        assert!(
            expect.iter().any(|it| told.starts_with(it)) && !told.contains("goroutine") && told.len() < 5000,
            "{told}"
        );
    };
    let crash = "HelmExceeded: helm was stopped: it crashed: ";
    check("a: {{ repeat 1000000000 \"a\" }}", &[crash]).await;
    check("{{ range untilStep 0 1000000000 1 }}{{ end }}", &[crash]).await;
    // Helm 4 refuses the depth before its memory ends, Helm 3 may not.
    check("{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}", &["HelmFailed: ", crash])
        .await;
}

#[tokio::test]
async fn where_namespaces_are_refused_the_other_walls_stand() {
    let (Some(program), Some(unshare), Some(setpriv)) = (find("helm"), find("unshare"), find("setpriv"))
    else {
        return;
    };
    // A place in which nobody makes namespaces, as many containers are.
    let folder = tempfile::tempdir().unwrap();
    let moorline = env!("CARGO_BIN_EXE_moorline");
    let inside = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces; exec {} --bounding-set -all {moorline} \"$@\"",
        setpriv.display()
    );
    let fence =
        script(folder.path(), &format!("exec {} -Ur /bin/sh -c '{inside}' sh \"$@\"", unshare.display()));
    let said = Command::new(&fence).args(["fence", "--walls"]).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    if !said.contains("namespaces: none") {
        eprintln!("such a place cannot be made on this machine: {said}");
        return;
    }
    let chart = FileTree::from_texts([
        ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        ("templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
    ]);
    let helm = Helm::new(&program, &fence, folder.path().join("work"));
    let helm = helm.with_isolation(IsolationLevel::BestEffort);
    let found = objects(&helm, &chart, RenderOptions::default(), Capabilities::default()).await;
    assert_eq!(found.unwrap().len(), 1);
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join("file");
    let wants_out = format!(
        "trap '' XFSZ\nwhile echo 0123456789; do :; done > {} 2> /dev/null\n/bin/sleep 7654326 &\n/bin/sleep 7654327",
        file.display()
    );
    let helm =
        Helm::new(script(other.path(), &wants_out), &fence, folder.path().join("work")).with_deadline(SHORT);
    let told = render(&helm).await.unwrap_err();
    assert!(told.contains("took longer than 2 s"), "{told}");
    assert!(!runs("7654326") && !runs("7654327"));
    assert_eq!(std::fs::metadata(file).map_or(0, |file| file.len()), 0);
}

#[tokio::test]
async fn a_program_that_cannot_start_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let program = script(folder.path(), "");
    std::fs::write(&program, "#!/nowhere/sh\n").unwrap();
    let (helm, _work) = helm_of(&program);
    let told = render(&helm).await.unwrap_err();
    assert!(told.contains("HelmUnstartable") && told.contains("No such file"), "{told}");
}
