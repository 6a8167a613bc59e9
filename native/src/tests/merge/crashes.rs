//! Attempts that die, and stores that lie about a commit.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use lance_io::object_store::WrappingObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path as StorePath;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result as StoreResult,
};

use super::rows::edit_manifest;
use super::*;
use crate::error::Class;
use crate::merge::{Outcome, Step};

/// What is left of a table when everybody is done.
#[derive(Debug, PartialEq, Eq)]
struct State {
    rows: Vec<String>,
    mark: u64,
    listed: Vec<u64>,
    cursor: u64,
    epoch: u64,
}

impl State {
    async fn of(table: &Table) -> Self {
        let manifest = table.shard_manifest(SHARD).await.unwrap();
        Self {
            rows: table.base_rows().await,
            mark: table.mark(SHARD).await,
            listed: table.listed(SHARD).await,
            cursor: manifest.replay_after_wal_entry_position,
            epoch: manifest.writer_epoch,
        }
    }
}

pub async fn waiting(keyed: bool) -> Table {
    let table = Table::with(keyed, &[("a", 0), ("b", 0)]).await;
    let deletes: &[Write] = &[Delete("b"), Row("x", 2)];
    let puts: &[Write] = &[Row("x", 2)];
    let second = if keyed { deletes } else { puts };
    table.generations(SHARD, &[&[Row("a", 1)], second]).await;
    table
}

/// Runs up to a point and is killed there.
#[derive(Clone, Copy, Debug)]
pub enum Killed {
    BeforeTheCommit,
    BeforeTheDrain,
}

pub async fn killed(engine: &Engine, table: &Table, when: Killed) {
    let mut pass = pass(engine, request(&table.path(), SHARD));
    let look = pass.look().await.unwrap();
    let Step::Ready(prepared) = Box::pin(pass.prepare(&look)).await.unwrap() else {
        panic!("nothing to commit");
    };
    if matches!(when, Killed::BeforeTheDrain) {
        let outcome = prepared.commit(engine, &table.path()).await.unwrap();
        assert!(matches!(outcome, Outcome::Landed(_)));
    }
}

#[tokio::test]
async fn whoever_comes_after_a_killed_attempt_ends_as_if_there_had_been_none() {
    for keyed in [true, false] {
        let (engine, whole) = (engine(), waiting(keyed).await);
        merge(&engine, &whole.path(), SHARD).await;
        let expected = State::of(&whole).await;
        for when in [Killed::BeforeTheCommit, Killed::BeforeTheDrain] {
            let table = waiting(keyed).await;
            killed(&engine, &table, when).await;
            let merged = merge(&engine, &table.path(), SHARD).await;
            let moved = match when {
                Killed::BeforeTheCommit => 2,
                Killed::BeforeTheDrain => 0,
            };
            assert_eq!(merged["generations"], json!(moved), "{when:?} {merged}");
            assert_eq!(merged["drained"], json!(2), "{when:?} {merged}");
            assert_eq!(State::of(&table).await, expected, "{keyed} {when:?}");
        }
    }
}

#[tokio::test]
async fn what_was_merged_and_not_drained_goes_with_the_next_pass() {
    let (engine, table) = (engine(), waiting(true).await);
    killed(&engine, &table, Killed::BeforeTheDrain).await;
    table.generations(SHARD, &[&[Row("x", 3)]]).await;
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!((&merged["from"], &merged["to"]), (&json!(3), &json!(3)));
    assert_eq!(merged["drained"], json!(3), "{merged}");
    assert_eq!(table.base_rows().await, ["id=a value=1", "id=x value=3"]);
}

#[tokio::test]
async fn what_is_merged_and_not_drained_stops_a_retirement() {
    let (engine, table) = (engine(), waiting(true).await);
    killed(&engine, &table, Killed::BeforeTheDrain).await;
    let verify = json!({ "uri": table.path(), "deep": false });
    let said = ask(&engine, "verify", verify.clone()).await.unwrap();
    assert_eq!(said["pending"], json!(0), "{said}");
    let sentence = said["blocking"][0].as_str().unwrap();
    assert!(sentence.contains("2 generations"), "{sentence}");
    merge(&engine, &table.path(), SHARD).await;
    let said = ask(&engine, "verify", verify).await.unwrap();
    assert_eq!(said["blocking"], json!([]), "{said}");
}

/// Its numbers are those of the generations that were merged, its folders and its
/// WAL are others.
#[tokio::test]
async fn a_late_drain_leaves_a_shard_made_anew_alone() {
    let (engine, table) = (engine(), waiting(true).await);
    let mut pass = pass(&engine, request(&table.path(), SHARD));
    let look = pass.look().await.unwrap();
    let Step::Ready(prepared) = Box::pin(pass.prepare(&look)).await.unwrap() else {
        panic!("nothing to commit");
    };
    let outcome = prepared.commit(&engine, &table.path()).await.unwrap();
    let Outcome::Landed(version) = outcome else {
        panic!("it was alone");
    };
    std::fs::remove_dir_all(format!("{}/_mem_wal/{SHARD}", table.path())).unwrap();
    table
        .generations(SHARD, &[&[Row("p", 1)], &[Row("q", 1)]])
        .await;
    let before = table.shard_manifest(SHARD).await;
    let merged = pass.finish(&look, Some(version)).await.unwrap();
    assert_eq!(merged.drained, 0);
    assert_eq!(table.shard_manifest(SHARD).await, before);
}

#[tokio::test]
async fn a_flush_cursor_that_lags_moves_on_with_the_drain() {
    for when in [None, Some(Killed::BeforeTheDrain)] {
        let (engine, table) = (engine(), waiting(true).await);
        let cursor = State::of(&table).await.cursor;
        edit_manifest(&table, |manifest| {
            manifest.replay_after_wal_entry_position -= 1
        })
        .await;
        if let Some(when) = when {
            killed(&engine, &table, when).await;
        }
        let merged = merge(&engine, &table.path(), SHARD).await;
        assert_eq!(merged["covered_through"], json!(cursor), "{merged}");
        // The entry is behind it for good: whoever opens the shard next does not
        // bring back what was deleted since.
        let mut dataset = table.dataset().await;
        Box::pin(dataset.delete("id = 'x'")).await.unwrap();
        Box::pin(table.writer(SHARD).await.close()).await.unwrap();
        merge_all(&engine, request(&table.path(), SHARD)).await;
        assert_eq!(table.base_rows().await, ["id=a value=1"], "{when:?}");
    }
}

#[tokio::test]
async fn an_entry_that_no_generation_has_stays_to_be_replayed() {
    let (engine, table) = (engine(), waiting(true).await);
    let writer = table.writer(SHARD).await;
    writer.put(vec![table.batch(&[("late", 1)])]).await.unwrap();
    writer.abort().await.unwrap();
    merge(&engine, &table.path(), SHARD).await;
    Box::pin(table.writer(SHARD).await.close()).await.unwrap();
    merge_all(&engine, request(&table.path(), SHARD)).await;
    let rows = ["id=a value=1", "id=late value=1", "id=x value=2"];
    assert_eq!(table.base_rows().await, rows);
}

/// It is named, and stays so: nobody drained it.
#[tokio::test]
async fn a_generation_that_lost_files_is_damaged_and_not_gone() {
    for part in ["data", "_versions"] {
        let (engine, table) = (engine(), waiting(true).await);
        let manifest = table.shard_manifest(SHARD).await.unwrap();
        let folder = table.shard_folder(SHARD).join(&manifest.sstables[1].path);
        std::fs::remove_dir_all(folder.join(part)).unwrap();
        let before = State::of(&table).await;
        let json = json!({ "uri": table.path(), "shard": SHARD, "property": PROPERTY });
        let fault = ask(&engine, "merge_wal", json).await.unwrap_err();
        assert_eq!(fault.class, Class::Corrupt, "{fault}");
        assert_eq!(State::of(&table).await, before);
        // What is whole still moves.
        let one = MergeWal {
            max_generations: 1,
            ..request(&table.path(), SHARD)
        };
        let merged = merge_with(&engine, one).await;
        assert_eq!(merged["drained"], json!(1), "{part} {merged}");
        assert_eq!(table.listed(SHARD).await, [2]);
    }
}

/// A store that carries out a commit and says that it did not, or the other way.
#[derive(Debug, Default)]
struct Liar {
    /// Commits of base versions that it lies about.
    lies: AtomicUsize,
    /// Manifests of shards that it lies about.
    shard_lies: AtomicUsize,
    /// Commits that it says it made.
    swallows: AtomicUsize,
    /// Reads of manifests that fail after a lie.
    blind: AtomicUsize,
    /// Reads that a lie makes fail.
    blinds: usize,
}

impl Liar {
    fn new(lies: usize, blinds: usize) -> Arc<Self> {
        Arc::new(Self {
            lies: AtomicUsize::new(lies),
            blinds,
            ..Self::default()
        })
    }

    fn take(counter: &AtomicUsize) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        counter
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
            .is_ok()
    }
}

fn no_answer() -> object_store::Error {
    object_store::Error::Generic {
        store: "test",
        source: "connection reset".into(),
    }
}

#[derive(Debug)]
struct Wrapper(Arc<Liar>);

impl WrappingObjectStore for Wrapper {
    fn wrap(&self, _: &str, inner: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        let liar = self.0.clone();
        Arc::new(Lying { inner, liar })
    }

    fn wrap_paginated(
        &self,
        _: &str,
        _: Arc<dyn PaginatedListStore>,
    ) -> Option<Arc<dyn PaginatedListStore>> {
        None
    }
}

#[derive(Debug)]
struct Lying {
    inner: Arc<dyn ObjectStore>,
    liar: Arc<Liar>,
}

impl fmt::Display for Lying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lying {}", self.inner)
    }
}

fn is_base_version(path: &StorePath) -> bool {
    let path = path.as_ref();
    path.contains("table.lance/_versions/") && path.ends_with(".manifest")
}

fn is_shard_manifest(path: &StorePath) -> bool {
    let path = path.as_ref();
    path.contains("/manifest/") && path.ends_with(".binpb")
}

impl Lying {
    /// What the store says of something that it did.
    fn say<T>(&self, path: &StorePath, done: T) -> StoreResult<T> {
        match is_shard_manifest(path) && Liar::take(&self.liar.shard_lies) {
            true => Err(no_answer()),
            false => Ok(done),
        }
    }
}

#[async_trait]
impl ObjectStore for Lying {
    async fn put_opts(
        &self,
        location: &StorePath,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        if is_base_version(location) && Liar::take(&self.liar.swallows) {
            return Ok(PutResult {
                e_tag: None,
                version: None,
                extensions: Default::default(),
            });
        }
        let stored = self.inner.put_opts(location, payload, options).await?;
        if is_base_version(location) && Liar::take(&self.liar.lies) {
            self.liar.blind.store(self.liar.blinds, Ordering::SeqCst);
            return Err(no_answer());
        }
        self.say(location, stored)
    }

    async fn put_multipart_opts(
        &self,
        location: &StorePath,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> StoreResult<GetResult> {
        if is_base_version(location) && Liar::take(&self.liar.blind) {
            return Err(no_answer());
        }
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<StorePath>>,
    ) -> BoxStream<'static, StoreResult<StorePath>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &StorePath,
        to: &StorePath,
        options: CopyOptions,
    ) -> StoreResult<()> {
        let copied = self.inner.copy_opts(from, to, options).await?;
        self.say(to, copied)
    }

    async fn rename_opts(
        &self,
        from: &StorePath,
        to: &StorePath,
        options: RenameOptions,
    ) -> StoreResult<()> {
        let renamed = self.inner.rename_opts(from, to, options).await?;
        self.say(to, renamed)
    }
}

#[tokio::test]
async fn a_commit_that_landed_although_the_store_said_no_is_recognised() {
    // Lance looks back at a commit three times; blind for that long, it gives up
    // and we look ourselves.
    for blinds in [0, 3] {
        let liar = Liar::new(1, blinds);
        let engine = Arc::new(Engine::wrapped(Arc::new(Wrapper(liar.clone()))));
        let table = waiting(true).await;
        let version = table.dataset().await.version_id();
        let merged = merge(&engine, &table.uri(Seen::AsObjects), SHARD).await;
        assert_eq!(liar.lies.load(Ordering::SeqCst), 0);
        assert_eq!(merged["version"], json!(version + 1), "{merged}");
        assert_eq!(merged["rows"], json!(2), "{merged}");
        assert_eq!(table.dataset().await.version_id(), version + 1, "once");
        assert_eq!(table.base_rows().await, ["id=a value=1", "id=x value=2"]);
        assert!(table.listed(SHARD).await.is_empty());
    }
}

#[tokio::test]
async fn a_commit_of_which_nobody_can_tell_is_an_error_and_the_next_call_sees_it() {
    let liar = Liar::new(1, 100);
    let engine = Arc::new(Engine::wrapped(Arc::new(Wrapper(liar.clone()))));
    let table = waiting(true).await;
    let uri = table.uri(Seen::AsObjects);
    let json = json!({ "uri": uri, "shard": SHARD, "property": PROPERTY });
    let fault = ask(&engine, "merge_wal", json).await.unwrap_err();
    assert_eq!(fault.class, Class::Unreachable, "{fault}");
    liar.blind.store(0, Ordering::SeqCst);
    let merged = merge(&engine, &uri, SHARD).await;
    assert_eq!(merged["generations"], json!(0), "{merged}");
    assert_eq!(merged["drained"], json!(2), "{merged}");
    assert_eq!(table.base_rows().await, ["id=a value=1", "id=x value=2"]);
}

#[tokio::test]
async fn a_drain_that_landed_although_the_store_said_no_is_recognised() {
    for seen in BOTH {
        let liar = Liar::new(0, 0);
        liar.shard_lies.store(1, Ordering::SeqCst);
        let engine = Arc::new(Engine::wrapped(Arc::new(Wrapper(liar.clone()))));
        let table = waiting(true).await;
        let merged = merge(&engine, &table.uri(seen), SHARD).await;
        assert_eq!(liar.shard_lies.load(Ordering::SeqCst), 0, "{seen:?}");
        assert_eq!(merged["left"], json!(0), "{merged}");
        assert_eq!(table.base_rows().await, ["id=a value=1", "id=x value=2"]);
        assert!(table.listed(SHARD).await.is_empty());
    }
}

/// Claiming the shard, moving its cursor, naming the generation: whichever answer is
/// lost, another try ends the same.
#[tokio::test]
async fn a_seal_of_which_answers_are_lost_keeps_every_row_once() {
    for lies in 1..=4 {
        let liar = Liar::new(0, 0);
        let engine = Arc::new(Engine::wrapped(Arc::new(Wrapper(liar.clone()))));
        let table = waiting(true).await;
        let dataset = table.dataset().await;
        let puts = table.puts(&[Row("late", 1), Row("x", 3), Delete("a")]);
        Box::pin(crate::maker::write_and_die(&dataset, SHARD, puts))
            .await
            .unwrap();
        liar.shard_lies.store(lies, Ordering::SeqCst);
        let seal = json!({ "uri": table.uri(Seen::AsObjects), "shard": SHARD, "silent_ms": 0 });
        let mut tries = 0;
        while ask(&engine, "seal_shard", seal.clone()).await.is_err() {
            tries += 1;
            assert!(tries < 8);
        }
        merge_all(&engine, request(&table.path(), SHARD)).await;
        let rows = ["id=late value=1", "id=x value=3"];
        assert_eq!(table.base_rows().await, rows, "{lies} lies");
        let verify = json!({ "uri": table.path(), "deep": true });
        let said = ask(&engine, "verify", verify).await.unwrap();
        assert_eq!(said["blocking"], json!([]), "{lies} lies: {said}");
    }
}

/// As when a version was cleaned up in whose place the commit then went.
#[tokio::test]
async fn a_commit_that_the_head_does_not_descend_from_drains_nothing() {
    let liar = Liar::new(0, 0);
    liar.swallows.store(1, Ordering::SeqCst);
    let engine = Arc::new(Engine::wrapped(Arc::new(Wrapper(liar.clone()))));
    let table = waiting(true).await;
    let uri = table.uri(Seen::AsObjects);
    let json = json!({ "uri": uri, "shard": SHARD, "property": PROPERTY });
    let fault = ask(&engine, "merge_wal", json).await.unwrap_err();
    assert_eq!(liar.swallows.load(Ordering::SeqCst), 0);
    assert_eq!(fault.class, Class::Conflict, "{fault}");
    assert_eq!(table.listed(SHARD).await, [1, 2]);
    let merged = merge(&engine, &uri, SHARD).await;
    assert_eq!(merged["generations"], json!(2), "{merged}");
    assert_eq!(table.base_rows().await, ["id=a value=1", "id=x value=2"]);
}
