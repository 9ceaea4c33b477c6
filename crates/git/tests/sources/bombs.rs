//! Packs that are small and take very much time or memory, and a disk that is not large enough
//! for all repositories.

use std::path::Path;
use std::time::{Duration, Instant};

use moorline_core::tree::MemoryLimit;
use moorline_git::{
    Address, Credentials, Error, HostPolicy, Memory, ObjectIds, ReadLimits, Reference, Repositories,
    Repository, Revision,
};
use moorline_test_support::bombs;
use moorline_test_support::bombs::Bomb;
use moorline_test_support::git_bench::{Bench, within};
use moorline_test_support::git_server::{Reply, Work};
use moorline_test_support::under_load::under_load;

/// The bytes that the chart gives to the daemon.
const MEMORY: u64 = 512 << 20;

fn served(bombs: &[Bomb]) -> Bench {
    let bench = Bench::new();
    let bombs = bombs.to_vec();
    bench
        .server
        .rule(move |request| bombs.iter().find_map(|bomb| bomb.answer(request)).unwrap_or(Reply::Git));
    bench
}

fn repositories(folder: &Path, memory: u64, quota: u64) -> Repositories {
    let open = || {
        Repositories::with_limits(folder, None, HostPolicy::allow_all(), (Memory::new(Some(memory)), quota))
    };
    // Another test may be starting git just now: until it has, the child holds our lock as well.
    (0..100)
        .find_map(|_| open().map_err(|_| std::thread::sleep(Duration::from_millis(20))).ok())
        .unwrap_or_else(|| open().unwrap())
}

fn open(bench: &Bench, all: &Repositories, path: &str) -> Repository {
    let address = Address::remote(&bench.server.url(path)).unwrap();
    all.repository(&address, "", &Credentials::default()).unwrap()
}

async fn fetched(repository: &Repository, by: Instant) -> Result<u64, Error> {
    let revision = repository.resolve(&Reference::Head, by).await?;
    repository.fetch(&revision, by).await
}

#[tokio::test]
async fn a_pack_that_builds_very_much_is_refused_at_once() {
    let bombs = [
        bombs::differences("wide", 8000, 120, false),
        bombs::differences("deep", 34, 100, true),
        bombs::differences("large", 1, 60, false),
    ];
    let bench = served(&bombs);
    let all = repositories(&bench.root.path().join("small"), MEMORY, u64::MAX);
    let plenty = repositories(&bench.root.path().join("large"), 8 << 30, u64::MAX);
    let table = [
        (&plenty, "wide", "more than 4294967296 bytes that the differences in its pack build"),
        (&plenty, "deep", "more than 4294967296 bytes that the differences in its pack build"),
        (&all, "large", "bytes in one object of its pack"),
    ];
    for (all, name, expect) in table {
        let begun = Instant::now();
        let repository = open(&bench, all, &format!("bombs/{name}.git"));
        let told = fetched(&repository, within(60_000)).await.unwrap_err();
        assert_eq!(told.reason(), "RepositoryTooLarge", "{name}: {told}");
        assert!(told.to_string().contains(expect), "{name}: {told}");
        assert!(begun.elapsed() < under_load(Duration::from_secs(10)), "{name}: {:?}", begun.elapsed());
    }
    assert!(fetched(&open(&bench, &plenty, "bombs/large.git"), within(60_000)).await.is_ok());
}

#[tokio::test]
async fn the_deadline_ends_the_unpacking() {
    let bench = served(&[bombs::differences("slow", 30, 100, false)]);
    let whole = repositories(&bench.root.path().join("whole"), 8 << 30, u64::MAX);
    let begun = Instant::now();
    fetched(&open(&bench, &whole, "bombs/slow.git"), within(120_000)).await.unwrap();
    let took = begun.elapsed();
    let all = repositories(&bench.root.path().join("data"), 8 << 30, u64::MAX);
    let repository = open(&bench, &all, "bombs/slow.git");
    let begun = Instant::now();
    let told = fetched(&repository, begun + took / 4).await.unwrap_err();
    assert_eq!(told.reason(), "RepositoryTimeout", "{told}");
    // The next one waits for the one that still has the repository.
    repository.resolve(&Reference::Head, within(120_000)).await.unwrap();
    assert!(begun.elapsed() < took * 3 / 4, "{:?} of {took:?}", begun.elapsed());
}

/// Three repositories of about 160 kB each.
fn three() -> Bench {
    let bench = Bench::new();
    let mut seed: u64 = 1;
    let mut noise = || {
        let digits = (0..300_000).map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + (seed >> 60) as u8)
        });
        digits.collect::<String>()
    };
    for name in ["one", "two", "three"] {
        let root = bench.root.path().join(name);
        std::fs::create_dir(&root).unwrap();
        let work = Work::new(&root);
        work.push(&[("a.yaml", &noise())]);
        std::fs::rename(work.bare, bench.root.path().join(format!("{name}.git"))).unwrap();
    }
    bench
}

/// Two of the three repositories fit.
const ROOM_FOR_TWO: u64 = 400_000;

/// Reads a repository; true if something had to be fetched.
async fn is_fetched(repository: &Repository) -> bool {
    let revision = repository.resolve(&Reference::Head, within(20_000)).await.unwrap();
    let fetched = repository.fetch(&revision, within(20_000)).await.unwrap();
    let files = repository.read(&revision, &[""], within(20_000)).await.unwrap().files;
    assert_eq!(files.entries().count(), 1);
    fetched > 0
}

#[tokio::test]
async fn what_was_not_used_for_longest_leaves_a_disk_that_is_full() {
    let bench = three();
    let data = bench.root.path().join("data");
    let folders = || {
        let all = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.is_dir() && std::fs::read_dir(path).unwrap().next().is_some()).count()
    };
    let all = repositories(&data, MEMORY, ROOM_FOR_TWO);
    let [one, two, three] = ["one", "two", "three"].map(|name| open(&bench, &all, &format!("{name}.git")));
    assert!(is_fetched(&one).await && is_fetched(&two).await);
    assert!(!is_fetched(&one).await, "it is there, and the one that was used last");
    assert!(is_fetched(&three).await);
    assert_eq!(folders(), 2);
    assert!(!is_fetched(&one).await && !is_fetched(&three).await, "these are still there");
    assert!(is_fetched(&two).await, "it was removed, and is fetched anew");
    assert_eq!(folders(), 2);
}

#[tokio::test]
async fn what_is_in_use_stays_on_a_disk_that_is_full() {
    let bench = three();
    let all = repositories(&bench.root.path().join("data"), MEMORY, ROOM_FOR_TWO);
    let [one, two, three] = ["one", "two", "three"].map(|name| open(&bench, &all, &format!("{name}.git")));
    assert!(is_fetched(&one).await && is_fetched(&two).await);
    // The one that was not used for longest is in use while room is made.
    bench.server.rule(|request| if request.path.contains("/one.git") { Reply::Drip } else { Reply::Git });
    bench.server.requests();
    let user = one.clone();
    let using = tokio::spawn(async move { user.resolve(&Reference::Head, within(20_000)).await });
    while !bench.server.requests().iter().any(|request| request.path.contains("/one.git")) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(is_fetched(&three).await);
    assert!(!using.is_finished(), "it was no longer in use");
    bench.server.rule(|_| Reply::Git);
    using.await.unwrap().unwrap();
    assert!(!is_fetched(&one).await, "it was in use, and stays");
    assert!(is_fetched(&two).await, "it went instead");
}

/// Two that read one repository, where there is memory for one of them: the first has it, and
/// needs the repository once more.
#[tokio::test]
async fn who_waits_for_memory_does_not_hold_the_repository() {
    let bench = Bench::new();
    let all = repositories(&bench.root.path().join("data"), MEMORY, u64::MAX);
    let repository = open(&bench, &all, "repository.git");
    let revision = repository.resolve(&Reference::Head, within(20_000)).await.unwrap();
    repository.fetch(&revision, within(20_000)).await.unwrap();
    let most = Memory::new(Some(MEMORY)).most_for_work();
    let read = |repository: Repository, revision: Revision| async move {
        let limits = ReadLimits { memory_limit: MemoryLimit::with_bytes(most), ..ReadLimits::default() };
        let found = repository
            .read_changed(&revision, (&[""], &[]), &ObjectIds::new(), &limits, within(60_000))
            .await;
        (limits, found.unwrap())
    };
    let first = read(repository.clone(), revision.clone()).await;
    let second = tokio::spawn(read(repository.clone(), revision.clone()));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!second.is_finished());
    let ids = repository.ids(&revision, ["a"], within(5_000)).await.unwrap();
    assert_eq!(ids.len(), 1);
    drop(first);
    let (_, reading) = second.await.unwrap();
    assert!(reading.snapshot.is_some());
}
