//! Tests over real datasets, made with Lance itself, on local disk and through
//! the object store API (`file-object-store://` is the same files, seen as
//! object storage).

mod abi;
mod clock;
mod compact;
mod damaged;
mod history;
mod measured;
mod merge;
mod moved;
mod seal;
mod shards;
#[cfg(feature = "aws")]
mod stores;
mod sweep;
mod tail;
mod trouble;
mod verify;
mod versions;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use lance::Dataset;
use lance::dataset::cleanup::CleanupPolicyBuilder;
use lance::dataset::mem_wal::{DatasetMemWalExt, ShardWriter, ShardWriterConfig};
use lance::dataset::{WriteMode, WriteParams};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::call;
use crate::engine::Engine;
use crate::error::Fault;

/// How a dataset on local disk is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    AsDisk,
    AsObjects,
}

const BOTH: [Seen; 2] = [Seen::AsDisk, Seen::AsObjects];

/// A table under test in a folder of its own.
struct Table {
    folder: TempDir,
    keyed: bool,
}

impl Table {
    /// Ten rows in one fragment, a primary key, MemWAL: version 2.
    async fn keyed() -> Self {
        let table = Self::empty(true);
        table.create().await;
        table
    }

    async fn keyless() -> Self {
        let table = Self::empty(false);
        table.create().await;
        table
    }

    fn empty(keyed: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, keyed }
    }

    async fn create(&self) {
        let mut dataset = self.commit(WriteMode::Create, 0, 10, None).await;
        Box::pin(dataset.initialize_mem_wal().execute())
            .await
            .unwrap();
    }

    fn path(&self) -> String {
        let path = self.folder.path().join("table.lance");
        path.to_str().unwrap().to_owned()
    }

    fn uri(&self, seen: Seen) -> String {
        match seen {
            Seen::AsDisk => self.path(),
            Seen::AsObjects => format!("file-object-store://{}", self.path()),
        }
    }

    fn schema(&self) -> Arc<Schema> {
        let key = match self.keyed {
            true => HashMap::from([(
                "lance-schema:unenforced-primary-key".to_owned(),
                "true".to_owned(),
            )]),
            false => HashMap::new(),
        };
        Arc::new(Schema::new(vec![
            Field::new("id", DataType::Utf8, false).with_metadata(key),
            Field::new("value", DataType::Int64, true),
        ]))
    }

    fn rows(&self, from: i64, count: i64) -> RecordBatch {
        let ids = (from..from + count).map(|n| format!("row {n}"));
        let ids = StringArray::from_iter_values(ids);
        let values = Int64Array::from_iter_values(from..from + count);
        RecordBatch::try_new(self.schema(), vec![Arc::new(ids), Arc::new(values)]).unwrap()
    }

    async fn commit(
        &self,
        mode: WriteMode,
        from: i64,
        count: i64,
        property: Option<(&str, &str)>,
    ) -> Dataset {
        let rows = RecordBatchIterator::new(vec![Ok(self.rows(from, count))], self.schema());
        let properties = property
            .map(|(key, value)| Arc::new(HashMap::from([(key.to_owned(), value.to_owned())])));
        let params = WriteParams {
            mode,
            transaction_properties: properties,
            ..WriteParams::default()
        };
        let path = self.path();
        Box::pin(Dataset::write(rows, &path, Some(params)))
            .await
            .unwrap()
    }

    async fn append(&self, from: i64, count: i64) -> Dataset {
        self.commit(WriteMode::Append, from, count, None).await
    }

    async fn dataset(&self) -> Dataset {
        Dataset::open(&self.path()).await.unwrap()
    }

    async fn writer(&self, shard: Uuid) -> ShardWriter {
        let dataset = self.dataset().await;
        let config = ShardWriterConfig::default();
        Box::pin(dataset.mem_wal_writer(shard, config))
            .await
            .unwrap()
    }

    /// One generation: put, flush, close.
    async fn flush(&self, shard: Uuid, from: i64, count: i64) {
        let writer = self.writer(shard).await;
        writer.put(vec![self.rows(from, count)]).await.unwrap();
        Box::pin(writer.close()).await.unwrap();
    }

    /// One put that is durable in the WAL and in no generation: its writer was
    /// killed.
    async fn strand(&self, shard: Uuid, from: i64, count: i64) {
        let writer = self.writer(shard).await;
        writer.put(vec![self.rows(from, count)]).await.unwrap();
        writer.abort().await.unwrap();
    }

    /// Removes versions as a cleanup with a retention by age would.
    async fn clean(&self, versions: &[u64]) {
        let policy = CleanupPolicyBuilder::default()
            .versions(versions.to_vec())
            .unwrap()
            .error_if_tagged_old_versions(false)
            .build();
        self.dataset()
            .await
            .cleanup_with_policy(policy)
            .await
            .unwrap();
    }

    fn drop_all(&self) {
        std::fs::remove_dir_all(self.path()).unwrap();
    }
}

fn engine() -> Arc<Engine> {
    Arc::new(Engine::for_tests())
}

/// Calls an operation by its name, as the C shell does.
async fn ask(engine: &Arc<Engine>, op: &str, request: Value) -> Result<Value, Fault> {
    let json = serde_json::to_vec(&request).unwrap();
    let work = call::start(engine, op, &json, Bytes::new())?;
    work.await.map(|reply| reply.json)
}

/// The observation of one dataset.
async fn observe(engine: &Arc<Engine>, uri: &str) -> Value {
    let seen = observe_with(engine, json!({ "uri": uri, "target_rows": 100 }), json!({})).await;
    assert!(seen["error"].is_null(), "{seen}");
    seen["observation"].clone()
}

async fn observe_with(engine: &Arc<Engine>, target: Value, walk_past: Value) -> Value {
    let request = json!({
        "targets": [target],
        "walk_past": walk_past,
        "max_commits": 20,
        "concurrency": 4,
        "timeout_ms": 20_000,
    });
    let reply = ask(engine, "observe", request).await.unwrap();
    reply["results"][0].clone()
}

/// Which probe is made.
#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    deep: bool,
    list_versions: bool,
    manifests: &'static str,
}

const LIGHT: Ways = Ways {
    deep: false,
    list_versions: false,
    manifests: "both",
};
const DEEP: Ways = Ways {
    deep: true,
    list_versions: false,
    manifests: "both",
};
const LISTING: Ways = Ways {
    deep: true,
    list_versions: true,
    manifests: "both",
};
/// Retired experiments are asked in these two ways in turn.
const RETIRED: [Ways; 2] = [
    Ways {
        manifests: "next",
        ..LISTING
    },
    Ways {
        manifests: "known",
        ..LISTING
    },
];

/// The answer to one probe.
async fn probe(engine: &Arc<Engine>, uri: &str, fingerprint: &Value, ways: Ways) -> Value {
    let request = json!({
        "targets": [{
            "uri": uri,
            "fingerprint": fingerprint,
            "deep": ways.deep,
            "list_versions": ways.list_versions,
            "manifests": ways.manifests,
        }],
        "concurrency": 4,
        "timeout_ms": 20_000,
    });
    let reply = ask(engine, "probe", request).await.unwrap();
    reply["results"][0].clone()
}

/// What a probe says moved; "unchanged" if nothing, the class if it failed.
async fn moved(engine: &Arc<Engine>, uri: &str, fingerprint: &Value, ways: Ways) -> String {
    let answer = probe(engine, uri, fingerprint, ways).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match answer["state"].as_str() {
        Some("changed") => text(&answer["detail"]),
        Some("unknown") => format!("unknown: {}", text(&answer["error"]["class"])),
        _ => text(&answer["state"]),
    }
}
