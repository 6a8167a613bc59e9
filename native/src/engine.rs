//! Engines by number: a runtime, a session without caches, one client per store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use futures::FutureExt;
use lance::Dataset;
use lance::dataset::builder::DatasetBuilder;
use lance::session::Session;
use lance_io::object_store::{ObjectStore, ObjectStoreParams, StorageOptionsAccessor};
use lance_table::io::commit::CommitHandler;
use object_store::path::Path;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::call::Reply;
use crate::error::{Class, Fault};
use crate::hanging::Hanging;
use crate::requests::{CountingWrapper, Requests};

/// Stack of a runtime thread: Lance polls deep trees of futures.
const STACK_BYTES: usize = 8 << 20;

/// Room for local datasets that hang: each keeps a thread until it answers.
const BLOCKING_THREADS: usize = 1024;

static NEXT: AtomicU64 = AtomicU64::new(1);
static ENGINES: LazyLock<Mutex<HashMap<u64, Arc<Slot>>>> = LazyLock::new(Mutex::default);

fn with_engines<T>(act: impl FnOnce(&mut HashMap<u64, Arc<Slot>>) -> T) -> T {
    act(&mut ENGINES.lock().unwrap_or_else(PoisonError::into_inner))
}

#[derive(Deserialize, Default)]
pub struct Open {
    /// Threads of the runtime; absent or 0: one per processor.
    #[serde(default)]
    threads: usize,
    #[serde(default)]
    storage_options: HashMap<String, String>,
}

/// Opens an engine and answers its number.
pub fn open(request: Open) -> Result<Value, Fault> {
    let slot = Arc::new(Slot::new(request)?);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    with_engines(|engines| engines.insert(number, slot));
    Ok(json!({ "engine": number }))
}

/// Forgets an engine. Its runtime ends with the last call that uses it.
pub fn close(number: u64) {
    // Dropped outside the lock: ending a runtime is not instant.
    drop(with_engines(|engines| engines.remove(&number)));
}

pub fn find(number: u64) -> Result<Arc<Slot>, Fault> {
    with_engines(|engines| engines.get(&number).cloned())
        .ok_or_else(|| Fault::new(Class::Closed, format!("engine {number} is not open")))
}

/// An engine and the runtime its work runs on. The runtime is not part of
/// `Engine`: tasks hold that, and a runtime must not be dropped by its own task.
pub struct Slot {
    pub engine: Arc<Engine>,
    runtime: Option<Runtime>,
}

impl Slot {
    fn new(request: Open) -> Result<Self, Fault> {
        let mut builder = Builder::new_multi_thread();
        builder.max_blocking_threads(BLOCKING_THREADS);
        if request.threads > 0 {
            builder.worker_threads(request.threads);
        }
        let runtime = builder
            .thread_name("lancefleet")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| Fault::new(Class::Internal, format!("start a runtime: {error}")))?;
        Ok(Self {
            engine: Arc::new(Engine::new(request.storage_options)),
            runtime: Some(runtime),
        })
    }

    /// Runs `work` on the runtime's own threads, whose stacks we know, and waits
    /// for it here. A fired token drops it at its next suspension point and
    /// returns at once.
    pub fn block_on<F>(&self, work: F, token: &CancellationToken) -> Result<Reply, Fault>
    where
        F: Future<Output = Result<Reply, Fault>> + Send + 'static,
    {
        let Some(runtime) = self.runtime.as_ref() else {
            return Err(Fault::new(Class::Closed, "the engine is closed"));
        };
        let mut task = runtime.spawn(work);
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = token.cancelled() => {
                    task.abort();
                    Err(Fault::new(Class::Cancelled, "cancelled by the caller"))
                }
                ended = &mut task => ended.unwrap_or_else(|error| Err(Fault::from_join(error))),
            }
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Not the plain drop: that waits for blocking work, and a hanging
            // file system would keep it for ever.
            runtime.shutdown_background();
        }
    }
}

/// What every operation works with.
pub struct Engine {
    session: Arc<Session>,
    params: ObjectStoreParams,
    /// Strong references: the registry's own are weak, and a store that nobody
    /// holds takes its connections along. One entry per bucket.
    stores: Mutex<HashMap<String, Arc<ObjectStore>>>,
    requests: Arc<Requests>,
    pub hanging: Hanging,
}

impl Engine {
    fn new(storage_options: HashMap<String, String>) -> Self {
        let requests = Arc::new(Requests::default());
        // The registry compares wrapper and options by identity: all users of
        // this engine share these very values, or clients would be rebuilt.
        let mut params = ObjectStoreParams {
            object_store_wrapper: Some(Arc::new(CountingWrapper::new(requests.clone()))),
            ..Default::default()
        };
        if !storage_options.is_empty() {
            params.storage_options_accessor = Some(Arc::new(
                StorageOptionsAccessor::with_static_options(storage_options),
            ));
        }
        Self {
            session: Arc::new(Session::new(0, 0, Default::default())),
            params,
            stores: Mutex::default(),
            requests,
            hanging: Hanging::default(),
        }
    }

    /// An engine for the runtime that a test brings along.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        Self::new(HashMap::new())
    }

    #[cfg(test)]
    pub fn with_options(storage_options: HashMap<String, String>) -> Self {
        Self::new(storage_options)
    }

    /// An engine whose stores a test has its hands in.
    #[cfg(test)]
    pub fn wrapped(around: Arc<dyn lance_io::object_store::WrappingObjectStore>) -> Self {
        let mut engine = Self::new(HashMap::new());
        engine.params.object_store_wrapper = Some(around);
        engine
    }

    /// The shared session. It caches nothing.
    pub fn session(&self) -> Arc<Session> {
        self.session.clone()
    }

    /// Parameters for anything that builds or finds a store, such as
    /// `WriteParams::store_params`. Use these only, unchanged.
    pub fn params(&self) -> ObjectStoreParams {
        self.params.clone()
    }

    /// Totals since the engine was opened.
    pub fn requests(&self) -> &Arc<Requests> {
        &self.requests
    }

    /// The shared store that holds `uri`, and the path in it. Makes no request.
    pub async fn store(&self, uri: &str) -> Result<(Arc<ObjectStore>, Path), Fault> {
        let registry = self.session.store_registry();
        let (store, path) = ObjectStore::from_uri_and_params(registry, uri, &self.params)
            .await
            .map_err(|error| Fault::from(error).at(uri))?;
        self.stores
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(store.store_prefix.clone())
            .or_insert_with(|| store.clone());
        Ok((store, path))
    }

    /// Opens a dataset freshly: the head, or `version`.
    pub async fn open(&self, uri: &str, version: Option<u64>) -> Result<Dataset, Fault> {
        // Keeps the store alive beyond this dataset.
        self.store(uri).await?;
        let builder = match version {
            Some(version) => self.builder(uri).with_version(version),
            None => self.builder(uri),
        };
        builder
            .load()
            .boxed()
            .await
            .map_err(|error| Fault::from(error).at(uri))
    }

    /// Opens a version whose changes are committed by `handler`.
    pub async fn open_to_commit(
        &self,
        uri: &str,
        version: u64,
        handler: Arc<dyn CommitHandler>,
    ) -> Result<Dataset, Fault> {
        let builder = self
            .builder(uri)
            .with_version(version)
            .with_commit_handler(handler);
        builder
            .load()
            .boxed()
            .await
            .map_err(|error| Fault::from(error).at(uri))
    }

    /// What resolves and commits versions of the dataset at `uri`.
    pub async fn commit_handler(&self, uri: &str) -> Result<Arc<dyn CommitHandler>, Fault> {
        let (_, _, handler) = self
            .builder(uri)
            .build_object_store()
            .await
            .map_err(|error| Fault::from(error).at(uri))?;
        Ok(handler)
    }

    fn builder(&self, uri: &str) -> DatasetBuilder {
        DatasetBuilder::from_uri(uri)
            .with_session(self.session.clone())
            .with_store_params(self.params.clone())
    }

    pub fn stats(&self) -> Value {
        let stores = self
            .stores
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len();
        json!({ "requests": self.requests.snapshot(), "stores": stores })
    }
}
