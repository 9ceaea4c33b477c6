//! Content of the data folder: after crashes, after a thousand fetches; and what is read from it.

use std::fs;
use std::time::{Duration, Instant};

use moorline_core::tree::TreeEntry;
use moorline_git::{ReadLimits, Reference, Repositories};
use moorline_test_support::git_bench::{Bench, look, read_all, soon};
use moorline_test_support::git_server::Work;

#[tokio::test]
async fn what_a_crash_leaves_behind_mends_itself() {
    let bench = Bench::new();
    {
        let all = bench.all();
        assert_eq!(read_all(&bench.open(&all)).await, Ok(2));
    }
    let store = bench.store();
    for lock in ["shallow.lock", "packed-refs.lock", "index.lock", "config.lock", "packed-refs.new"] {
        fs::write(store.join(lock), "").unwrap();
    }
    fs::write(store.join("objects/pack/pack_git2_abc"), "half").unwrap();
    fs::write(store.join("objects/pack/tmp_pack_abc"), "half").unwrap();
    fs::create_dir_all(store.with_file_name("2.unfinished/objects/pack")).unwrap();
    fs::create_dir_all(store.with_file_name("0/objects")).unwrap();
    {
        let all = bench.all();
        let repository = bench.open(&all);
        bench.server.requests();
        assert_eq!(read_all(&repository).await, Ok(2));
        assert_eq!(bench.server.requests().len(), 2, "a restart looks, and fetches nothing");
        bench.work.push(&[("a/three.yaml", "three")]);
        assert_eq!(read_all(&repository).await, Ok(3));
    }
    let mut names: Vec<_> = fs::read_dir(bench.store())
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["HEAD", "config", "first-bytes", "objects", "packed-refs", "refs", "shallow"]);
    Work::git_in(&bench.store(), &["fsck", "--strict"]);

    // Packs that were cut, emptied, or lost.
    for damage in ["cut", "empty", "lost", "no index", "no refs"] {
        let pack = bench.packs()[0].clone();
        let bytes = fs::read(&pack).unwrap();
        fs::set_permissions(&pack, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        match damage {
            "cut" => fs::write(&pack, &bytes[..bytes.len() / 2]).unwrap(),
            "empty" => fs::write(&pack, "").unwrap(),
            "lost" => fs::remove_file(&pack).unwrap(),
            "no index" => fs::remove_file(pack.with_extension("idx")).unwrap(),
            _ => fs::remove_file(bench.store().join("packed-refs")).unwrap(),
        }
        let all = bench.all();
        assert_eq!(read_all(&bench.open(&all)).await, Ok(3), "{damage}");
    }
}

#[tokio::test]
async fn a_mirror_that_is_damaged_while_it_is_used_mends_itself() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    assert_eq!(read_all(&repository).await, Ok(2));
    for pack in bench.packs() {
        fs::remove_file(&pack).unwrap();
        fs::write(&pack, "x").unwrap();
    }
    assert_eq!(read_all(&repository).await, Ok(2));
    bench.work.push(&[("a/three.yaml", "three")]);
    fs::remove_dir_all(bench.store()).unwrap();
    assert_eq!(read_all(&repository).await, Ok(3));
}

#[tokio::test]
async fn nothing_stays_open_once_everybody_has_read() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    let reads = (0..20).map(|_| read_all(&repository));
    assert!(futures::future::join_all(reads).await.iter().all(|read| *read == Ok(2)));
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let store = bench.store();
    assert!(!maps.contains(store.to_str().unwrap()), "memory stays mapped between two revisions");
}

#[tokio::test]
async fn a_mirror_stays_near_the_size_of_a_fresh_clone() {
    let rounds = if std::env::var_os("MOORLINE_LONG_TESTS").is_some() { 1000 } else { 150 };
    let bench = Bench::new();
    let text: String = (0..3000).map(|number| format!("{}: {}\n", number, number * 7919)).collect();
    bench.work.push(&[("a/large.yaml", &text)]);
    // All commits are made at once, and the branch moves over them: starting git a thousand times
    // is slow.
    let mut import = String::from("reset refs/heads/next\nfrom refs/heads/main\n\n");
    for round in 0..rounds {
        let number = round.to_string();
        import.push_str(&format!(
            "commit refs/heads/next\ncommitter a <a@example.com> {round} +0000\ndata 1\nx\n\
             M 100644 inline a/one.yaml\ndata {}\n{number}\n",
            number.len()
        ));
    }
    bench.work.write("../import", &import);
    let script = "git fast-import --quiet < ../import";
    let done = std::process::Command::new("sh").args(["-c", script]).current_dir(&bench.work.bare).status();
    assert!(done.unwrap().success());
    let commits = Work::git_in(&bench.work.bare, &["rev-list", "--reverse", "main..next"]);
    let all = bench.all();
    let repository = bench.open(&all);
    let (mut most, mut bytes) = (0, 0);
    let begun = Instant::now();
    for commit in commits.lines() {
        fs::write(bench.work.bare.join("refs/heads/main"), format!("{commit}\n")).unwrap();
        let revision = look(&repository).await;
        assert_eq!(revision.commit.to_string(), commit);
        bytes += repository.fetch(&revision, soon()).await.unwrap();
        most = most.max(repository.size(soon()).await.unwrap().1);
    }
    let elapsed = begun.elapsed();
    let fresh_all =
        Repositories::new(&bench.root.path().join("fresh"), None, moorline_git::HostPolicy::allow_all())
            .unwrap();
    let fresh = bench.open(&fresh_all);
    let revision = look(&fresh).await;
    fresh.fetch(&revision, soon()).await.unwrap();
    let clone = fresh.size(soon()).await.unwrap().1;
    println!(
        "{rounds} fetches in {elapsed:?}: {bytes} bytes fetched, at most {most} on disk; a fresh clone has {clone}"
    );
    assert!(most < 3 * clone, "{most} of {clone}");
    let read = repository.read(&look(&repository).await, &[""], soon()).await.unwrap();
    assert_eq!(read.files.entries().count(), 3);
}

#[tokio::test]
async fn a_file_of_100_megabytes_is_refused_by_its_size() {
    let bench = Bench::new();
    let make = "head -c 104857600 /dev/zero | git hash-object -w --stdin -t blob";
    let made =
        std::process::Command::new("sh").args(["-c", make]).current_dir(&bench.work.folder).output().unwrap();
    let id = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    bench.work.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{id},a/zeros.bin")]);
    bench.work.git(&["commit", "-q", "-m", "x"]);
    bench.work.git(&["push", "-q", "origin", "HEAD"]);
    let all = bench.all();
    let repository = bench.open(&all);
    let revision = look(&repository).await;
    let before = peak_memory();
    let found = repository.read(&revision, &["a"], soon()).await.unwrap();
    let entry = found.files.entries().find(|(path, _)| *path == "a/zeros.bin").unwrap().1.clone();
    assert_eq!(entry, TreeEntry::TooLarge(104_857_600));
    println!("peak memory {before} before and {} after, kB", peak_memory());
}

fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn links_and_submodules_are_recorded_and_not_followed_out() {
    let bench = Bench::new();
    let link =
        |target: &str, path: &str| std::os::unix::fs::symlink(target, bench.work.folder.join(path)).unwrap();
    link("/etc/passwd", "a/absolute");
    link("../../../etc/passwd", "a/climbs");
    link("../shared/base.yaml", "a/base.yaml");
    link("../gone", "a/gone");
    bench.work.write("shared/base.yaml", "base");
    bench.work.write("shared/unused.yaml", "unused");
    let commit = bench.work.commit(&[]);
    fs::create_dir_all(bench.work.folder.join("a/module")).unwrap();
    bench.work.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},a/module")]);
    bench.work.git(&["commit", "-q", "-m", "x"]);
    bench.work.git(&["push", "-q", "origin", "HEAD"]);
    let all = bench.all();
    let repository = bench.open(&all);
    let revision = look(&repository).await;
    let found = repository.read(&revision, &["a"], soon()).await.unwrap();
    let entry =
        |path: &str| found.files.entries().find(|(other, _)| *other == path).map(|(_, entry)| entry.clone());
    assert_eq!(entry("a/absolute"), Some(TreeEntry::Link("/etc/passwd".into())));
    assert_eq!(entry("a/climbs"), Some(TreeEntry::Link("../../../etc/passwd".into())));
    assert!(matches!(entry("a/module"), Some(TreeEntry::Unreadable { folder: true, .. })));
    assert_eq!(&*found.files.read("a/base.yaml").unwrap(), b"base");
    assert_eq!(entry("shared/unused.yaml"), None);
    assert!(found.files.read("a/climbs").is_err() && found.files.read("a/absolute").is_err());
    let ids: Vec<_> = found.ids.iter().map(|(path, id)| (&**path, id.is_some())).collect();
    assert_eq!(ids, [("a", true), ("gone", false), ("shared/base.yaml", true)]);

    // The key changes exactly when something that was read changes.
    let same = async |files: &[(&str, &str)]| {
        bench.work.push(files);
        let revision = look(&repository).await;
        repository
            .read_changed(&revision, (&["a"], &[]), &found.ids, &ReadLimits::default(), soon())
            .await
            .unwrap()
            .snapshot
            .is_none()
    };
    assert!(same(&[("shared/unused.yaml", "changed"), ("other", "new")]).await);
    assert!(!same(&[("gone", "is there now")]).await);
}

#[tokio::test]
async fn a_rewritten_branch_and_a_moved_tag_are_followed() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    bench.work.git(&["tag", "release"]);
    bench.work.git(&["push", "-q", "origin", "release"]);
    let tag = Reference::tag("release").unwrap();
    let first = repository.resolve(&tag, soon()).await.unwrap();
    assert_eq!(first.commit, look(&repository).await.commit);
    assert_eq!(read_all(&repository).await, Ok(2));
    bench.work.git(&["checkout", "-q", "--orphan", "new"]);
    bench.work.commit(&[("b", "b"), ("c", "c"), ("d", "d")]);
    bench.work.git(&["tag", "-f", "release"]);
    bench.work.git(&["push", "-q", "-f", "origin", "HEAD:main", "release"]);
    assert_eq!(read_all(&repository).await, Ok(5));
    let moved = repository.resolve(&tag, soon()).await.unwrap();
    assert_eq!(moved.commit, look(&repository).await.commit);
}

#[test]
fn a_data_folder_has_one_user() {
    let root = tempfile::tempdir().unwrap();
    let first = Repositories::new(root.path(), None, moorline_git::HostPolicy::allow_all()).unwrap();
    assert_eq!(
        Repositories::new(root.path(), None, moorline_git::HostPolicy::allow_all()).unwrap_err().reason(),
        "DataFolder"
    );
    drop(first);
    let again = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        Repositories::new(root.path(), None, moorline_git::HostPolicy::allow_all()).is_ok()
    });
    assert!(again);
}

#[tokio::test]
async fn mirrors_that_nobody_holds_are_removed() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    assert_eq!(read_all(&repository).await, Ok(2));
    all.remove_unused();
    bench.store();
    drop(repository);
    all.remove_unused();
    assert_eq!(fs::read_dir(bench.root.path().join("data")).unwrap().count(), 1, "the lock alone");
}
