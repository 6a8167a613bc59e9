//! Counting of storage requests: totals of an engine, and of one item of a batch.
//!
//! A wrapper around every store of the engine counts what goes through it. The
//! item is found through the task: `for_item` sets it, and whatever that task
//! asks of a store is counted for it too. Not seen are bigger parts of local
//! files, which Lance reads beside the store's interface.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use lance_io::object_store::WrappingObjectStore;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use serde::Serialize;

/// Objects in one answer to a LIST, on every store we know.
const LIST_PAGE: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    List,
    Head,
    Get,
    Put,
    Delete,
}

/// Counters by kind. One is shared by everything that may add to it.
#[derive(Debug, Default)]
pub struct Requests {
    list: AtomicI64,
    head: AtomicI64,
    get: AtomicI64,
    put: AtomicI64,
    delete: AtomicI64,
}

/// The counters at one moment, as the caller reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    pub list: i64,
    pub head: i64,
    pub get: i64,
    pub put: i64,
    pub delete: i64,
}

impl Requests {
    fn add(&self, kind: Kind, number: i64) {
        let counter = match kind {
            Kind::List => &self.list,
            Kind::Head => &self.head,
            Kind::Get => &self.get,
            Kind::Put => &self.put,
            Kind::Delete => &self.delete,
        };
        counter.fetch_add(number, Ordering::Relaxed);
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            list: self.list.load(Ordering::Relaxed),
            head: self.head.load(Ordering::Relaxed),
            get: self.get.load(Ordering::Relaxed),
            put: self.put.load(Ordering::Relaxed),
            delete: self.delete.load(Ordering::Relaxed),
        }
    }
}

tokio::task_local! {
    static ITEM: Arc<Requests>;
}

/// Runs `work`; what its task asks of storage counts for `item` as well.
pub async fn for_item<F: Future>(item: Arc<Requests>, work: F) -> F::Output {
    ITEM.scope(item, work).await
}

/// Counts requests in the totals and for the item at work, if there is one.
pub fn count(totals: &Requests, kind: Kind, number: i64) {
    totals.add(kind, number);
    // Outside of any item there is nothing more to count.
    let _ = ITEM.try_with(|item| item.add(kind, number));
}

/// Counts requests that were gathered aside, as `count` does.
pub fn count_gathered(totals: &Requests, gathered: Snapshot) {
    for (kind, number) in [
        (Kind::List, gathered.list),
        (Kind::Head, gathered.head),
        (Kind::Get, gathered.get),
        (Kind::Put, gathered.put),
        (Kind::Delete, gathered.delete),
    ] {
        if number > 0 {
            count(totals, kind, number);
        }
    }
}

/// Counts requests made on a thread outside the item's task, such as those of a
/// blocking local probe.
pub fn count_for(totals: &Requests, item: &Requests, kind: Kind, number: i64) {
    totals.add(kind, number);
    item.add(kind, number);
}

/// Puts a counter around every store of an engine.
#[derive(Debug)]
pub struct CountingWrapper {
    totals: Arc<Requests>,
}

impl CountingWrapper {
    pub fn new(totals: Arc<Requests>) -> Self {
        Self { totals }
    }
}

impl WrappingObjectStore for CountingWrapper {
    fn wrap(&self, store_prefix: &str, original: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(Counting {
            inner: original,
            totals: self.totals.clone(),
            deletes_at_once: deletes_at_once(store_prefix),
        })
    }

    fn wrap_paginated(
        &self,
        _store_prefix: &str,
        original: Arc<dyn PaginatedListStore>,
    ) -> Option<Arc<dyn PaginatedListStore>> {
        Some(Arc::new(CountingLister {
            inner: original,
            totals: self.totals.clone(),
        }))
    }
}

/// Keys that the client puts into one DELETE request.
fn deletes_at_once(store_prefix: &str) -> usize {
    match store_prefix.split('$').next() {
        Some("s3" | "s3+ddb") => 1000,
        Some("az" | "abfss") => 256,
        _ => 1,
    }
}

#[derive(Debug)]
struct Counting {
    inner: Arc<dyn ObjectStore>,
    totals: Arc<Requests>,
    deletes_at_once: usize,
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "counting {}", self.inner)
    }
}

impl Counting {
    fn count(&self, kind: Kind) {
        count(&self.totals, kind, 1);
    }

    /// A LIST is one request per page; the first is counted even if it is empty.
    fn pages(
        &self,
        objects: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.count(Kind::List);
        let totals = self.totals.clone();
        objects
            .enumerate()
            .map(move |(index, object)| {
                if index > 0 && index % LIST_PAGE == 0 {
                    count(&totals, Kind::List, 1);
                }
                object
            })
            .boxed()
    }
}

// `get_ranges` is left to the trait's default, which comes back here once for
// every request it really makes.
#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.count(Kind::Put);
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.count(Kind::Put);
        let inner = self.inner.put_multipart_opts(location, options).await?;
        let totals = self.totals.clone();
        Ok(Box::new(CountingUpload { inner, totals }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.count(if options.head { Kind::Head } else { Kind::Get });
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (totals, at_once) = (self.totals.clone(), self.deletes_at_once);
        let counted = locations
            .enumerate()
            .map(move |(index, path)| {
                if index % at_once == 0 {
                    count(&totals, Kind::Delete, 1);
                }
                path
            })
            .boxed();
        self.inner.delete_stream(counted)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.pages(self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.pages(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.count(Kind::List);
        let listed = self.inner.list_with_delimiter(prefix).await?;
        let entries = listed.objects.len() + listed.common_prefixes.len();
        for _ in 1..entries.div_ceil(LIST_PAGE) {
            self.count(Kind::List);
        }
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.count(Kind::Put);
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.count(Kind::Put);
        self.inner.rename_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct CountingUpload {
    inner: Box<dyn MultipartUpload>,
    totals: Arc<Requests>,
}

#[async_trait]
impl MultipartUpload for CountingUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        count(&self.totals, Kind::Put, 1);
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        count(&self.totals, Kind::Put, 1);
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        count(&self.totals, Kind::Delete, 1);
        self.inner.abort().await
    }
}

struct CountingLister {
    inner: Arc<dyn PaginatedListStore>,
    totals: Arc<Requests>,
}

#[async_trait]
impl PaginatedListStore for CountingLister {
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        options: PaginatedListOptions,
    ) -> Result<PaginatedListResult> {
        count(&self.totals, Kind::List, 1);
        self.inner.list_paginated(prefix, options).await
    }
}
