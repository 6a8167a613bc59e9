//! What tests of maintenance do to shards and bases beside the operations.

use std::fs::File;
use std::io::Cursor;
use std::path::PathBuf;

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use lance::dataset::mem_wal::ShardManifestStore;
use lance::dataset::mem_wal::util::{manifest_filename, wal_entry_filename};
use lance::dataset::transaction::{Operation, TransactionBuilder};
use lance::dataset::{CommitBuilder, InsertBuilder};
use lance_index::mem_wal::{CompactedSsTable, ShardManifest};

use super::*;

impl Table {
    pub async fn manifest(&self, shard: Uuid) -> ShardManifest {
        self.manifests(shard).await.latest().await.unwrap().unwrap()
    }

    async fn manifests(&self, shard: Uuid) -> ShardManifestStore {
        let dataset = self.dataset().await;
        let store = dataset.object_store(None).await.unwrap();
        ShardManifestStore::new(store, &dataset.branch_location().path, shard, 2)
    }

    /// Changes a shard's manifest as another writer's version of it would look.
    pub async fn change(&self, shard: Uuid, change: impl Fn(&mut ShardManifest)) {
        let manifests = self.manifests(shard).await;
        let epoch = manifests.latest().await.unwrap().unwrap().writer_epoch;
        manifests
            .commit_update(epoch, |current| {
                let mut next = current.clone();
                next.version = current.next_version();
                change(&mut next);
                next
            })
            .await
            .unwrap();
    }

    /// Moves the flush cursor back over the newest `entries`, as older writers
    /// leave it.
    pub async fn lag(&self, shard: Uuid, entries: u64) {
        self.change(shard, |manifest| {
            let cursor = manifest.replay_after_wal_entry_position;
            manifest.replay_after_wal_entry_position = cursor.checked_sub(entries).unwrap();
        })
        .await;
    }

    /// Takes generations out of the manifest; their folders stay.
    pub async fn drain(&self, shard: Uuid, generations: &[u64]) {
        self.change(shard, |manifest| {
            manifest
                .sstables
                .retain(|one| !generations.contains(&one.generation));
        })
        .await;
    }

    /// Rows into the base in one commit that records them as everything up to
    /// `mark`, with transaction properties.
    pub async fn take_over(
        &self,
        shard: Uuid,
        mark: u64,
        rows: RecordBatch,
        properties: &[(&str, String)],
    ) {
        let dataset = Arc::new(self.dataset().await);
        let params = WriteParams {
            mode: WriteMode::Append,
            ..WriteParams::default()
        };
        let staged = InsertBuilder::new(dataset.clone())
            .with_params(&params)
            .execute_uncommitted(vec![rows])
            .await
            .unwrap();
        let Operation::Append { fragments } = staged.operation else {
            panic!("not an append");
        };
        let operation = Operation::Update {
            removed_fragment_ids: vec![],
            updated_fragments: vec![],
            new_fragments: fragments,
            fields_modified: vec![],
            compacted_sstables: vec![CompactedSsTable::new(shard, mark)],
            fields_for_preserving_frag_bitmap: vec![],
            update_mode: None,
            inserted_rows_filter: None,
            updated_fragment_offsets: None,
        };
        let properties: HashMap<String, String> = properties
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        let version = dataset.version_id();
        let transaction = TransactionBuilder::new(version, operation)
            .transaction_properties(Some(Arc::new(properties)))
            .build();
        CommitBuilder::new(dataset)
            .execute(transaction)
            .await
            .unwrap();
    }

    /// One put in the WAL and in no generation, which deletes keys.
    pub async fn strand_deletes(&self, shard: Uuid, from: i64, count: i64) {
        let writer = self.writer(shard).await;
        writer.delete(vec![self.keys(from, count)]).await.unwrap();
        writer.abort().await.unwrap();
    }

    pub fn keys(&self, from: i64, count: i64) -> RecordBatch {
        self.rows(from, count).project(&[0]).unwrap()
    }

    /// Rows with these keys and other values.
    pub fn updates(&self, from: i64, count: i64, value: i64) -> RecordBatch {
        let rows = self.rows(from, count);
        let values = Int64Array::from(vec![value; count as usize]);
        RecordBatch::try_new(
            self.schema(),
            vec![rows.column(0).clone(), Arc::new(values)],
        )
        .unwrap()
    }

    pub fn shard_folder(&self, shard: Uuid) -> PathBuf {
        PathBuf::from(self.path())
            .join("_mem_wal")
            .join(shard.to_string())
    }

    pub fn wal_file(&self, shard: Uuid, position: u64) -> PathBuf {
        let folder = self.shard_folder(shard).join("wal");
        folder.join(wal_entry_filename(position))
    }

    /// First position without an entry.
    pub fn wal_end(&self, shard: Uuid) -> u64 {
        let there = |position: &u64| !self.wal_file(shard, *position).exists();
        (1..).find(there).unwrap()
    }

    pub fn manifest_file(&self, shard: Uuid, version: u64) -> PathBuf {
        let folder = self.shard_folder(shard).join("manifest");
        folder.join(manifest_filename(version))
    }

    /// Makes all entries of the shard such as writers before Lance 14 left them:
    /// without the number of their generation. Their times stay.
    pub fn forget_generations(&self, shard: Uuid) {
        for position in 1.. {
            let path = self.wal_file(shard, position);
            let Ok(bytes) = std::fs::read(&path) else {
                return;
            };
            let time = path.metadata().unwrap().modified().unwrap();
            let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
            let mut metadata = reader.schema().metadata().clone();
            metadata.remove("generation");
            let fields = reader.schema().fields().clone();
            let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
            let mut bytes = Vec::new();
            let mut writer = StreamWriter::try_new(&mut bytes, &schema).unwrap();
            for batch in reader {
                let columns = batch.unwrap().columns().to_vec();
                if !columns.is_empty() {
                    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
                    writer.write(&batch).unwrap();
                }
            }
            writer.finish().unwrap();
            std::fs::write(&path, bytes).unwrap();
            File::open(&path).unwrap().set_modified(time).unwrap();
        }
    }

    /// What a plain reader sees of the base: key to value.
    pub async fn content(&self) -> std::collections::BTreeMap<String, i64> {
        use arrow_array::cast::AsArray;
        use arrow_array::types::Int64Type;
        use futures::TryStreamExt;
        let dataset = self.dataset().await;
        let stream = dataset.scan().try_into_stream().await.unwrap();
        let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        let mut content = std::collections::BTreeMap::new();
        for batch in batches {
            let (keys, values) = (
                batch["id"].as_string::<i32>(),
                batch["value"].as_primitive::<Int64Type>(),
            );
            for row in 0..batch.num_rows() {
                let twice = content.insert(keys.value(row).to_owned(), values.value(row));
                assert_eq!(twice, None, "{} is there twice", keys.value(row));
            }
        }
        content
    }
}

/// Shifts a file's time.
pub fn age(path: &std::path::Path, by_ms: i64) {
    let by = std::time::Duration::from_millis(by_ms.unsigned_abs());
    let time = path.metadata().unwrap().modified().unwrap();
    let time = if by_ms < 0 { time + by } else { time - by };
    File::open(path).unwrap().set_modified(time).unwrap();
}

/// Everything below a folder, and itself, gets older.
pub fn age_all(path: &std::path::Path, by_ms: i64) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            age_all(&entry.unwrap().path(), by_ms);
        }
    }
    age(path, by_ms);
}
