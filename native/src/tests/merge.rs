//! What the tests of merging share: tables whose shards are filled generation by
//! generation, and what a reader sees in them.

mod accept;
mod beside;
mod big;
mod crashes;
mod gaps;
mod meanwhile;
mod property;
mod races;
mod refusals;
mod rows;

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::RecordBatch;
use futures::TryStreamExt;
use lance::dataset::mem_wal::{DatasetMemWalExt, LsmScanner, ShardManifestStore, ShardSnapshot};
use lance::deps::datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use lance_index::mem_wal::ShardManifest;

use super::*;
use crate::maker::{Put, write_generations};
use crate::merge::{MergeWal, Pass};

const PROPERTY: &str = "lancefleet.action";
const SHARD: Uuid = Uuid::from_u128(0x11);
const OTHER: Uuid = Uuid::from_u128(0x22);

/// A write into a generation: rows with a value, or keys to delete.
#[derive(Clone, Debug)]
enum Write {
    Row(&'static str, i64),
    Delete(&'static str),
}
use Write::{Delete, Row};

impl Table {
    /// A keyed table of these rows.
    async fn of(rows: &[(&str, i64)]) -> Self {
        Self::with(true, rows).await
    }

    async fn with(keyed: bool, rows: &[(&str, i64)]) -> Self {
        let table = Self::empty(keyed);
        let mut dataset = table.write(WriteMode::Create, rows).await;
        Box::pin(dataset.initialize_mem_wal().execute())
            .await
            .unwrap();
        table
    }

    async fn write(&self, mode: WriteMode, rows: &[(&str, i64)]) -> Dataset {
        let batch = self.batch(rows);
        let rows = RecordBatchIterator::new(vec![Ok(batch)], self.schema());
        let params = WriteParams {
            mode,
            ..WriteParams::default()
        };
        Box::pin(Dataset::write(rows, &self.path(), Some(params)))
            .await
            .unwrap()
    }

    fn batch(&self, rows: &[(&str, i64)]) -> RecordBatch {
        let ids = StringArray::from_iter_values(rows.iter().map(|row| row.0));
        let values = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
        RecordBatch::try_new(self.schema(), vec![Arc::new(ids), Arc::new(values)]).unwrap()
    }

    /// One generation for each element.
    async fn generations(&self, shard: Uuid, generations: &[&[Write]]) {
        let puts = generations.iter().map(|writes| self.puts(writes)).collect();
        let dataset = self.dataset().await;
        Box::pin(write_generations(&dataset, shard, puts))
            .await
            .unwrap();
    }

    fn puts(&self, writes: &[Write]) -> Vec<Put> {
        let key = Arc::new(self.schema().project(&[0]).unwrap());
        let put = |write: &Write| match write {
            Row(id, value) => Put::Rows(self.batch(&[(id, *value)])),
            Delete(id) => {
                let ids = Arc::new(StringArray::from(vec![*id]));
                Put::Delete(RecordBatch::try_new(key.clone(), vec![ids]).unwrap())
            }
        };
        writes.iter().map(put).collect()
    }

    async fn shard_manifest(&self, shard: Uuid) -> Option<ShardManifest> {
        manifest(&self.dataset().await, shard).await
    }

    /// Generations that the shard's manifest names.
    async fn listed(&self, shard: Uuid) -> Vec<u64> {
        let manifest = self.shard_manifest(shard).await;
        let listed = manifest.into_iter().flat_map(|one| one.sstables);
        listed.map(|one| one.generation).collect()
    }

    /// What a plain reader of the base sees, sorted.
    async fn base_rows(&self) -> Vec<String> {
        base_rows(&self.dataset().await).await
    }

    async fn mark(&self, shard: Uuid) -> u64 {
        mark(&self.dataset().await, shard).await
    }
}

async fn manifest(dataset: &Dataset, shard: Uuid) -> Option<ShardManifest> {
    let store = dataset.object_store(None).await.unwrap();
    let path = dataset.branch_location().path;
    let manifests = ShardManifestStore::new(store, &path, shard, 1);
    manifests.latest().await.unwrap()
}

async fn mark(dataset: &Dataset, shard: Uuid) -> u64 {
    let details = dataset.mem_wal_index_details().await.unwrap();
    let marks = details.into_iter().flat_map(|one| one.compacted_sstables);
    let own = marks.filter(|mark| mark.shard_id == shard);
    own.map(|mark| mark.generation).max().unwrap_or(0)
}

async fn base_rows(dataset: &Dataset) -> Vec<String> {
    let batches = Box::pin(dataset.scan().try_into_stream()).await.unwrap();
    sorted(batches.try_collect().await.unwrap())
}

/// What a reader sees who merges the base with all pending generations, as Lance
/// does it.
async fn lsm_rows(dataset: &Dataset) -> Vec<String> {
    let mut snapshots = Vec::new();
    for shard in dataset.list_mem_wal_latest_shard_ids().await.unwrap() {
        let mark = mark(dataset, shard).await;
        let Some(manifest) = manifest(dataset, shard).await else {
            continue;
        };
        let pending = manifest.sstables.iter().filter(|one| one.generation > mark);
        let snapshot =
            ShardSnapshot::new(shard).with_current_generation(manifest.current_generation);
        snapshots.push(pending.fold(snapshot, |snapshot, one| {
            snapshot.with_sstable(one.generation, one.path.clone())
        }));
    }
    let key = dataset.schema().unenforced_primary_key();
    let key = key.iter().map(|field| field.name.clone()).collect();
    let scanner = LsmScanner::new(Arc::new(dataset.clone()), snapshots, key);
    let rows = Box::pin(scanner.try_into_stream()).await.unwrap();
    sorted(rows.try_collect().await.unwrap())
}

/// Rows in words, by the names of their columns.
fn sorted(batches: Vec<RecordBatch>) -> Vec<String> {
    let mut rows: Vec<String> = batches.iter().flat_map(in_words).collect();
    rows.sort();
    rows
}

fn in_words(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("-");
    let columns: BTreeMap<String, ArrayFormatter> = batch
        .schema()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| {
            let formatter = ArrayFormatter::try_new(column.as_ref(), &options).unwrap();
            (field.name().clone(), formatter)
        })
        .collect();
    (0..batch.num_rows())
        .map(|row| {
            let values = columns
                .iter()
                .map(|(name, one)| format!("{name}={}", one.value(row)));
            values.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

fn request(uri: &str, shard: Uuid) -> MergeWal {
    MergeWal {
        uri: uri.to_owned(),
        shard,
        remembered_mark: 0,
        max_generations: 8,
        max_bytes: 1 << 30,
        property: PROPERTY.to_owned(),
    }
}

/// One call through the interface.
async fn merge(engine: &Arc<Engine>, uri: &str, shard: Uuid) -> Value {
    merge_with(engine, request(uri, shard)).await
}

async fn merge_with(engine: &Arc<Engine>, request: MergeWal) -> Value {
    let json = json!({
        "uri": request.uri,
        "shard": request.shard,
        "remembered_mark": request.remembered_mark,
        "max_generations": request.max_generations,
        "max_bytes": request.max_bytes,
        "property": request.property,
    });
    ask(engine, "merge_wal", json).await.unwrap()
}

/// Calls until nothing is left; answers the number of passes that moved rows.
async fn merge_all(engine: &Arc<Engine>, request: MergeWal) -> usize {
    for passes in 0..10_000 {
        let merged = merge_with(engine, request.clone()).await;
        assert_eq!(merged["refused"], Value::Null, "{merged}");
        if merged["generations"] == json!(0) && merged["left"] == json!(0) {
            return passes;
        }
    }
    panic!("it never ends");
}

/// A pass that can be stopped between its steps.
fn pass(engine: &Engine, request: MergeWal) -> Pass<'_> {
    Pass::new(engine, request)
}

/// Every file of a table with its size and what is in it.
pub fn files(table: &Table) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, into),
                false => {
                    into.insert(path.display().to_string(), std::fs::read(&path).unwrap());
                }
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(Path::new(&table.path()), &mut files);
    files
}
