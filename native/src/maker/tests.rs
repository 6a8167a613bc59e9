mod dataset;
mod fleet;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path as FilePath, PathBuf};
use std::time::{Duration, SystemTime};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use chrono::Utc;
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::mem_wal::{DatasetMemWalExt, ShardManifestStore, WalTailer};
use lance_index::mem_wal::ShardManifest;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::error::Class;

struct Place {
    engine: Arc<Engine>,
    dir: TempDir,
}

fn place() -> Place {
    Place {
        engine: Arc::new(Engine::for_tests()),
        dir: tempfile::tempdir().unwrap(),
    }
}

fn request<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// A generation as a reader finds it.
struct Generation {
    rows: Vec<(String, bool)>,
}

/// A shard as a reader finds it.
struct Shard {
    manifest: ShardManifest,
    generations: Vec<Generation>,
    /// Keys in the WAL past the flush cursor.
    tail: Vec<String>,
}

impl Place {
    fn uri(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    async fn make(&self, name: &str, spec: Value) -> Value {
        let mut json = spec;
        json["uri"] = self.uri(name).into();
        let made = make_dataset(self.engine.clone(), request(json), Bytes::new());
        made.await.unwrap().json
    }

    async fn write(&self, name: &str, writes: Value) -> Value {
        let mut json = writes;
        json["uri"] = self.uri(name).into();
        let made = make_writes(self.engine.clone(), request(json), Bytes::new());
        made.await.unwrap().json
    }

    async fn open(&self, name: &str) -> Dataset {
        self.engine.open(&self.uri(name), None).await.unwrap()
    }

    async fn shards(&self, name: &str) -> Vec<Shard> {
        let dataset = self.open(name).await;
        let mut shards = Vec::new();
        for id in dataset.list_mem_wal_latest_shard_ids().await.unwrap() {
            shards.push(self.shard(&dataset, &self.uri(name), id).await);
        }
        shards
    }

    async fn shard(&self, dataset: &Dataset, uri: &str, id: Uuid) -> Shard {
        let store = dataset.object_store(None).await.unwrap();
        let base = dataset.branch_location().path;
        let manifests = ShardManifestStore::new(store.clone(), &base, id, 2);
        let manifest = manifests.latest().await.unwrap().unwrap();
        let mut generations = Vec::new();
        for table in &manifest.sstables {
            let generation = format!("{uri}/_mem_wal/{id}/{}", table.path);
            let rows = keys_of(&self.engine.open(&generation, None).await.unwrap()).await;
            generations.push(Generation { rows });
        }
        let wal = WalTailer::new(store, base, id);
        let mut tail = Vec::new();
        let next = wal.next_position().await.unwrap();
        for position in manifest.replay_after_wal_entry_position + 1..next {
            for batch in wal.read_entry(position).await.unwrap().unwrap().batches {
                let keys = batch
                    .column_by_name(schema::KEY)
                    .unwrap()
                    .as_string::<i32>();
                tail.extend(keys.iter().map(|key| key.unwrap().to_owned()));
            }
        }
        Shard {
            manifest,
            generations,
            tail,
        }
    }

    /// What a reader sees who puts base and generations together.
    async fn live_keys(&self, name: &str) -> BTreeSet<String> {
        let base = keys_of(&self.open(name).await).await;
        let mut live: BTreeMap<String, bool> = base.into_iter().collect();
        for shard in self.shards(name).await {
            for generation in shard.generations {
                live.extend(generation.rows);
            }
        }
        live.into_iter()
            .filter(|(_, deleted)| !deleted)
            .map(|(key, _)| key)
            .collect()
    }
}

/// Keys, and whether they are tombstones.
async fn keys_of(dataset: &Dataset) -> Vec<(String, bool)> {
    let batches: Vec<_> = dataset
        .scan()
        .try_into_stream()
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        let keys = batch
            .column_by_name(schema::KEY)
            .unwrap()
            .as_string::<i32>();
        let tombstones = batch
            .column_by_name("_tombstone")
            .map(|column| column.as_boolean());
        for row in 0..batch.num_rows() {
            let deleted =
                tombstones.is_some_and(|column| column.is_valid(row) && column.value(row));
            rows.push((keys.value(row).to_owned(), deleted));
        }
    }
    rows
}

fn rows(shard: &Shard) -> usize {
    shard
        .generations
        .iter()
        .map(|generation| generation.rows.len())
        .sum()
}

fn tombstones(shard: &Shard) -> usize {
    let rows = shard
        .generations
        .iter()
        .flat_map(|generation| &generation.rows);
    rows.filter(|(_, deleted)| *deleted).count()
}

const DAY: u64 = 86_400_000;

fn files(folder: &FilePath) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn is_old(time: SystemTime) -> bool {
    let age = SystemTime::now().duration_since(time).unwrap();
    let margin = Duration::from_secs(600);
    let days = Duration::from_millis(9 * DAY);
    (days..days + margin).contains(&age)
}
