//! Cache of helm's output, by a digest of everything that the output depends on.
//!
//! In: a digest, and a way to render. Out: the output. Callers with the same digest share one run
//! and its error, so many Syncs of one chart start one helm. The least recently used entry is
//! evicted when the limit is reached. With a [`DiskCache`] the entries are on the disk, too.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::disk_cache::{CacheKey, DiskCache};
use super::error::HelmError;
use super::process::MAX_OUTPUT_BYTES;

/// The most compressed bytes that are kept.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// The most entries that are kept.
const MAX_ENTRIES: usize = 10_000;
/// Compression level: the text of manifests becomes a tenth at any level.
const LEVEL: u8 = 1;

type CachedOutput = Result<Arc<[u8]>, HelmError>;
type PendingOutput = Shared<BoxFuture<'static, CachedOutput>>;

/// Place of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheStorage {
    /// In memory alone: values of Secrets went into it.
    Memory,
    /// Also on the disk.
    Disk,
}

/// Result of a lookup.
enum CacheLookup {
    Cached(Arc<[u8]>),
    Pending(PendingOutput),
    Nothing,
}

/// Finished and pending renders; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct RenderCache(Arc<Mutex<CacheState>>);

#[derive(Default)]
struct CacheState {
    entries: HashMap<CacheKey, CacheEntry>,
    pending: HashMap<CacheKey, PendingOutput>,
    bytes: usize,
    uses: u64,
    disk: Option<DiskCache>,
}

struct CacheEntry {
    bytes: Arc<[u8]>,
    used: u64,
}

impl RenderCache {
    /// A cache with the entries on this disk, which new entries are written to.
    pub(super) fn with_disk(shelf: DiskCache) -> Self {
        let mut kept = CacheState::default();
        for (key, bytes) in shelf.load_all(MAX_BYTES) {
            kept.keep(key, bytes).iter().for_each(|gone| shelf.remove(gone));
        }
        kept.disk = Some(shelf);
        Self(Arc::new(Mutex::new(kept)))
    }

    /// Returns the output for a key, and renders it if there is none. One with values of decrypted
    /// files stays in memory.
    pub(super) async fn get<F: Future<Output = CachedOutput> + Send + 'static>(
        &self,
        (key, storage): (CacheKey, CacheStorage),
        make: impl FnOnce() -> F,
    ) -> CachedOutput {
        let (mut make, mut is_damaged) = (Some(make), false);
        let coming = loop {
            match self.find((key, storage), is_damaged, &mut make) {
                CacheLookup::Cached(packed) => {
                    let unpack = move || decompress_to_vec_with_limit(&packed, MAX_OUTPUT_BYTES);
                    match crate::chance::spawn_blocking_deterministic(unpack).await {
                        Ok(Ok(bytes)) => return Ok(bytes.into()),
                        // A damaged entry counts as missing.
                        Ok(Err(_)) | Err(_) => is_damaged = true,
                    }
                }
                CacheLookup::Pending(coming) => break coming,
                CacheLookup::Nothing => return Err(HelmError::Stopped),
            }
        };
        let answer = coming.await;
        if answer == Err(HelmError::Stopped) {
            self.lock().pending.remove(&key);
        }
        answer
    }

    /// Looks an output up and starts to render it if there is none, both under one lock.
    fn find<F: Future<Output = CachedOutput> + Send + 'static>(
        &self,
        (key, storage): (CacheKey, CacheStorage),
        is_damaged: bool,
        make: &mut Option<impl FnOnce() -> F>,
    ) -> CacheLookup {
        let mut kept = self.lock();
        if let Some(packed) = kept.touch(&key).filter(|_| !is_damaged) {
            return CacheLookup::Cached(packed);
        }
        if let Some(coming) = kept.pending.get(&key) {
            return CacheLookup::Pending(coming.clone());
        }
        let Some(make) = make.take() else { return CacheLookup::Nothing };
        let (this, making) = (self.clone(), make());
        // A task of its own: the first caller may be cancelled while others wait.
        let task = tokio::spawn(async move {
            let answer = making.await;
            let (cache, made) = (this.clone(), answer.clone());
            let kept = crate::chance::spawn_blocking_deterministic(move || {
                made.map(|bytes| cache.keep((key, storage), &bytes))
            });
            // An output that could not be cached is valid all the same.
            let _ = kept.await;
            this.lock().pending.remove(&key);
            answer
        });
        let coming = task.map(|ended| ended.unwrap_or(Err(HelmError::Stopped))).boxed().shared();
        kept.pending.insert(key, coming.clone());
        CacheLookup::Pending(coming)
    }

    fn keep(&self, (key, storage): (CacheKey, CacheStorage), bytes: &[u8]) {
        let packed: Arc<[u8]> = compress_to_vec(bytes, LEVEL).into();
        let mut kept = self.lock();
        let (gone, shelf) = (kept.keep(key, packed.clone()), kept.disk.clone());
        // Unlock before the slow write to the disk.
        drop(kept);
        if let Some(shelf) = shelf {
            if storage == CacheStorage::Disk {
                shelf.put(&key, &packed);
            }
            gone.iter().for_each(|gone| shelf.remove(gone));
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheState {
    fn touch(&mut self, key: &CacheKey) -> Option<Arc<[u8]>> {
        self.uses += 1;
        let packed = self.entries.get_mut(key)?;
        packed.used = self.uses;
        Some(packed.bytes.clone())
    }

    /// Inserts an entry, and returns the keys that it evicts.
    fn keep(&mut self, key: CacheKey, bytes: Arc<[u8]>) -> Vec<CacheKey> {
        let mut all = Vec::new();
        self.uses += 1;
        self.bytes += bytes.len();
        let before = self.entries.insert(key, CacheEntry { bytes, used: self.uses });
        self.bytes -= before.map_or(0, |before| before.bytes.len());
        // An entry that is larger than the limit stays: without it, each reconcile would render
        // again.
        while self.entries.len() > 1 && (self.bytes > MAX_BYTES || self.entries.len() > MAX_ENTRIES) {
            let oldest = self.entries.iter().min_by_key(|(_, packed)| packed.used).map(|(key, _)| *key);
            let gone = oldest.and_then(|key| self.entries.remove(&key));
            self.bytes -= gone.map_or(0, |gone| gone.bytes.len());
            all.extend(oldest);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_is_asked_at_one_time_is_made_once() {
        let (cache, made) = (RenderCache::default(), Arc::new(AtomicUsize::new(0)));
        let ask = |key: u8| {
            let (cache, made) = (cache.clone(), made.clone());
            async move {
                let make = || async move {
                    made.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    Ok(Arc::from([key; 3]))
                };
                cache.get(([key; 32], CacheStorage::Disk), make).await
            }
        };
        let answers = futures::future::join_all((0..100).map(|_| ask(7))).await;
        assert!(answers.iter().all(|answer| answer.as_deref() == Ok(&[7; 3])));
        assert_eq!(ask(7).await.as_deref(), Ok(&[7_u8; 3][..]));
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert_eq!(ask(8).await.as_deref(), Ok(&[8_u8; 3][..]));
        assert_eq!(made.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_refusal_is_shared_and_not_kept() {
        let (cache, made) = (RenderCache::default(), Arc::new(AtomicUsize::new(0)));
        let ask = || {
            let (cache, made) = (cache.clone(), made.clone());
            async move {
                let make = || async move {
                    made.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    Err(HelmError::Failed { text: "no".into() })
                };
                cache.get(([1; 32], CacheStorage::Disk), make).await
            }
        };
        assert!(futures::future::join_all((0..10).map(|_| ask())).await.iter().all(Result::is_err));
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert!(ask().await.is_err());
        assert_eq!(made.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn what_is_on_the_shelf_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = || RenderCache::with_disk(DiskCache::open(folder.path().join("kept")));
        let make = |text: &'static [u8]| move || async move { Ok(Arc::from(text)) };
        assert_eq!(
            shelf().get(([1; 32], CacheStorage::Disk), make(b"one")).await.as_deref(),
            Ok(&b"one"[..])
        );
        assert_eq!(
            shelf().get(([1; 32], CacheStorage::Disk), make(b"two")).await.as_deref(),
            Ok(&b"one"[..])
        );
        // A damaged entry is rendered again.
        let file = std::fs::read_dir(folder.path().join("kept")).unwrap().next().unwrap().unwrap();
        std::fs::write(file.path(), b"words").unwrap();
        assert_eq!(
            shelf().get(([1; 32], CacheStorage::Disk), make(b"two")).await.as_deref(),
            Ok(&b"two"[..])
        );
        assert_eq!(
            shelf().get(([1; 32], CacheStorage::Disk), make(b"three")).await.as_deref(),
            Ok(&b"two"[..])
        );
        // An entry with values of Secrets is not there.
        let hidden = ([2; 32], CacheStorage::Memory);
        assert_eq!(shelf().get(hidden, make(b"one")).await.as_deref(), Ok(&b"one"[..]));
        assert_eq!(std::fs::read_dir(folder.path().join("kept")).unwrap().count(), 1);
        assert_eq!(shelf().get(hidden, make(b"two")).await.as_deref(), Ok(&b"two"[..]));
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut kept = CacheState::default();
        let third: Arc<[u8]> = vec![0; MAX_BYTES / 3].into();
        (0..3).for_each(|key| assert!(kept.keep([key; 32], third.clone()).is_empty()));
        assert!(kept.touch(&[0; 32]).is_some());
        assert_eq!(kept.keep([3; 32], third), [[1; 32]]);
        assert_eq!([0, 1, 2, 3].map(|key| kept.entries.contains_key(&[key; 32])), [true, false, true, true]);
        assert!(kept.bytes <= MAX_BYTES);
    }
}
