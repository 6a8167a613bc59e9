//! What others do between two reads of one pass.

use std::fmt;
use std::sync::Mutex;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use lance_io::object_store::WrappingObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path as StorePath;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result as StoreResult,
};

use super::crashes::{Killed, killed, waiting};
use super::*;
use crate::error::Class;
use crate::merge::staging::{Key, Limits, Run, Winners, stage};

type Others = BoxFuture<'static, ()>;

/// What happens just before the first read of a path that is waited for.
struct Meanwhile {
    of: fn(&str) -> bool,
    others: Mutex<Option<Others>>,
}

impl Meanwhile {
    fn engine(of: fn(&str) -> bool, others: Others) -> (Arc<Engine>, Arc<Self>) {
        let others = Mutex::new(Some(others));
        let meanwhile = Arc::new(Self { of, others });
        let wrapper = Arc::new(Wrapper(meanwhile.clone()));
        (Arc::new(Engine::wrapped(wrapper)), meanwhile)
    }

    async fn before(&self, path: Option<&StorePath>) {
        if path.is_some_and(|path| (self.of)(path.as_ref())) {
            let others = self.others.lock().unwrap().take();
            if let Some(others) = others {
                others.await;
            }
        }
    }

    fn happened(&self) -> bool {
        self.others.lock().unwrap().is_none()
    }
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Meanwhile")
    }
}

#[derive(Debug)]
struct Wrapper(Arc<Meanwhile>);

impl WrappingObjectStore for Wrapper {
    fn wrap(&self, _: &str, inner: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        let meanwhile = self.0.clone();
        Arc::new(Watched { inner, meanwhile })
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
struct Watched {
    inner: Arc<dyn ObjectStore>,
    meanwhile: Arc<Meanwhile>,
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "watched {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Watched {
    async fn put_opts(
        &self,
        location: &StorePath,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &StorePath,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> StoreResult<GetResult> {
        self.meanwhile.before(Some(location)).await;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<StorePath>>,
    ) -> BoxStream<'static, StoreResult<StorePath>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let (inner, meanwhile) = (self.inner.clone(), self.meanwhile.clone());
        let prefix = prefix.cloned();
        futures::stream::once(async move {
            meanwhile.before(prefix.as_ref()).await;
            inner.list(prefix.as_ref())
        })
        .flatten()
        .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> StoreResult<ListResult> {
        self.meanwhile.before(prefix).await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &StorePath,
        to: &StorePath,
        options: CopyOptions,
    ) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(
        &self,
        from: &StorePath,
        to: &StorePath,
        options: RenameOptions,
    ) -> StoreResult<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

/// The manifest is read before the base: its counter is then at the mark that the
/// base has meanwhile, as that of a shard which was made anew.
#[tokio::test]
async fn a_counter_that_a_merge_overtakes_between_two_reads_is_not_refused() {
    let table = Arc::new(waiting(true).await);
    let others = table.clone();
    let (engine, meanwhile) = Meanwhile::engine(
        |path| path.contains("table.lance/_versions"),
        Box::pin(async move {
            others.generations(SHARD, &[&[Row("y", 9)]]).await;
            merge_all(&engine(), request(&others.path(), SHARD)).await;
        }),
    );
    let merged = merge(&engine, &table.uri(Seen::AsObjects), SHARD).await;
    assert!(meanwhile.happened());
    assert_eq!(merged["refused"], Value::Null, "{merged}");
    assert_eq!(merged["mark"], json!(3), "{merged}");
    let rows = ["id=a value=1", "id=x value=2", "id=y value=9"];
    assert_eq!(table.base_rows().await, rows);
}

/// Somebody else merges all that is pending, and the folders go.
async fn merged_and_swept(table: Arc<Table>) {
    let folders = table.shard_manifest(SHARD).await.unwrap().sstables;
    merge_all(&engine(), request(&table.path(), SHARD)).await;
    for one in folders {
        std::fs::remove_dir_all(table.shard_folder(SHARD).join(&one.path)).unwrap();
    }
}

fn a_generation(path: &str) -> bool {
    path.contains("_gen_")
}

#[tokio::test]
async fn a_generation_that_is_swept_while_we_open_it_is_looked_at_again() {
    let table = Arc::new(waiting(true).await);
    let others = Box::pin(merged_and_swept(table.clone()));
    let (engine, meanwhile) = Meanwhile::engine(a_generation, others);
    let merged = merge(&engine, &table.uri(Seen::AsObjects), SHARD).await;
    assert!(meanwhile.happened());
    assert_eq!(merged["refused"], Value::Null, "{merged}");
    assert_eq!(merged["generations"], json!(0), "{merged}");
    assert_eq!(merged["left"], json!(0), "{merged}");
    let rows = ["id=a value=1", "id=x value=2"];
    assert_eq!(table.base_rows().await, rows);
}

/// It is in the base and still listed: an entry that came since is judged by it.
#[tokio::test]
async fn a_merged_generation_that_is_swept_while_we_judge_by_it_is_looked_at_again() {
    let table = Arc::new(waiting(true).await);
    killed(&engine(), &table, Killed::BeforeTheDrain).await;
    let writer = table.writer(SHARD).await;
    writer.put(vec![table.batch(&[("late", 1)])]).await.unwrap();
    writer.abort().await.unwrap();
    assert_eq!(table.listed(SHARD).await, [1, 2]);
    let others = Box::pin(merged_and_swept(table.clone()));
    let (engine, meanwhile) = Meanwhile::engine(a_generation, others);
    let merged = merge(&engine, &table.uri(Seen::AsObjects), SHARD).await;
    assert!(meanwhile.happened());
    assert_eq!(merged["refused"], Value::Null, "{merged}");
    assert_eq!(merged["drained"], json!(0), "{merged}");
    assert_eq!(table.listed(SHARD).await, [0; 0]);
    let rows = ["id=a value=1", "id=x value=2"];
    assert_eq!(table.base_rows().await, rows);
}

/// Reading ends early without an error: of what the keys told there is less to write.
#[tokio::test]
async fn fewer_rows_written_than_there_were_are_an_error() {
    for keyed in [true, false] {
        let (engine, table) = (engine(), waiting(keyed).await);
        let look = pass(&engine, request(&table.path(), SHARD))
            .look()
            .await
            .unwrap();
        let key = Key::of(look.base.schema());
        let limits = Limits::new(8, 0);
        let uri = table.path();
        let run = Run::open(&engine, &uri, &look, &key.columns, limits);
        let run = run.await.unwrap().unwrap();
        let winners = Winners::of(&run, &key, SHARD).await.unwrap();
        stage(&engine, &look.base, &run, &key, &winners)
            .await
            .unwrap();
        let mut short = run.clone();
        let first = &mut short.generations[0].table;
        Box::pin(first.delete("id = 'a'")).await.unwrap();
        let staged = stage(&engine, &look.base, &short, &key, &winners).await;
        let fault = staged.unwrap_err();
        assert_eq!(fault.class, Class::Internal, "{fault}");
        assert!(fault.message.contains("rows were written of"), "{fault}");
    }
}
