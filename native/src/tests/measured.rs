//! Observations: rows, fragments, generations, WAL entries.

use lance::dataset::mem_wal::ShardManifestStore;
use lance::dataset::{MergeInsertBuilder, WhenMatched, WhenNotMatched};
use lance_index::mem_wal::{CompactedSsTable, SsTable};
use serde_json::json;
use uuid::Uuid;

use super::*;

fn now() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// Merges rows and marks a generation as being in the base.
async fn merge(table: &Table, shard: Uuid, generation: u64, from: i64, count: i64) {
    let dataset = Arc::new(table.dataset().await);
    let mut merge = MergeInsertBuilder::try_new(dataset, vec!["id".to_owned()]).unwrap();
    merge
        .when_matched(WhenMatched::UpdateAll)
        .when_not_matched(WhenNotMatched::InsertAll)
        .mark_sstables_as_compacted(vec![CompactedSsTable::new(shard, generation)]);
    let rows = RecordBatchIterator::new(vec![Ok(table.rows(from, count))], table.schema());
    let job = merge.try_build().unwrap();
    Box::pin(job.execute_reader(Box::new(rows) as Box<dyn arrow_array::RecordBatchReader + Send>))
        .await
        .unwrap();
}

/// Changes a shard's manifest as another writer's version of it would look.
async fn change_shard(table: &Table, shard: Uuid, change: impl Fn(&mut Vec<SsTable>, &mut u64)) {
    let dataset = table.dataset().await;
    let store = dataset.object_store(None).await.unwrap();
    let base = dataset.branch_location().path;
    let manifests = ShardManifestStore::new(store, &base, shard, 2);
    let epoch = manifests.latest().await.unwrap().unwrap().writer_epoch;
    manifests
        .commit_update(epoch, |current| {
            let mut next = current.clone();
            next.version = current.version + 1;
            change(
                &mut next.sstables,
                &mut next.replay_after_wal_entry_position,
            );
            next
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_table_without_memwal_is_measured() {
    let (engine, table) = (engine(), Table::empty(true));
    table.commit(WriteMode::Create, 0, 10, None).await;
    table.append(20, 200).await;
    let mut dataset = table.dataset().await;
    Box::pin(dataset.delete("value < 4")).await.unwrap();
    for seen in BOTH {
        let measured = observe(&engine, &table.uri(seen)).await;
        assert_eq!(measured["fragments"], json!(2));
        assert_eq!(measured["small_fragments"], json!(1));
        assert_eq!(measured["base_rows"], json!(206));
        assert_eq!(measured["deleted_rows"], json!(4));
        assert_eq!(measured["keyed"], json!(true));
        assert_eq!(measured["indexes"], json!([]));
        assert_eq!(measured["shards"], json!([]));
        assert_eq!(measured["fingerprint"]["version"], json!(3));
        assert_eq!(measured["fingerprint"]["gaps"], json!(false));
        let time = dataset.manifest().timestamp().timestamp_millis();
        assert_eq!(measured["manifest_time"], json!(time));
    }
}

#[tokio::test]
async fn bytes_are_the_data_files_and_what_is_pending() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let on_disk: u64 = std::fs::read_dir(format!("{}/data", table.path()))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    let measured = observe(&engine, &table.path()).await;
    assert_eq!(measured["bytes"], json!(on_disk));
    table.flush(shard, 100, 5).await;
    let measured = observe(&engine, &table.path()).await;
    let pending = measured["shards"][0]["pending_bytes"].as_u64().unwrap();
    assert!(pending > 0);
    assert_eq!(measured["bytes"], json!(on_disk + pending));
}

#[tokio::test]
async fn pending_generations_are_counted_from_the_shard_manifest() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let before = now();
    table.flush(shard, 100, 5).await;
    table.flush(shard, 200, 7).await;
    for seen in BOTH {
        let measured = observe(&engine, &table.uri(seen)).await;
        assert_eq!(measured["base_rows"], json!(10));
        let one = &measured["shards"][0];
        assert_eq!(one["id"], json!(shard));
        assert_eq!(one["pending"], json!(2));
        assert_eq!(one["pending_rows"], json!(12));
        assert_eq!(one["status"], json!("active"));
        assert_eq!(one["current_generation"], json!(3));
        assert_eq!(one["tail_entries"], json!(0));
        for time in ["newest_generation_time", "newest_entry_time"] {
            let time = one[time].as_i64().unwrap();
            assert!((before - 2000..=now()).contains(&time), "{one}");
        }
    }
}

#[tokio::test]
async fn generations_without_sizes_are_opened_and_counted() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    change_shard(&table, shard, |sstables, _| {
        for sstable in sstables {
            *sstable = SsTable::unmeasured(sstable.generation, sstable.path.clone());
        }
    })
    .await;
    for seen in BOTH {
        let measured = observe(&engine, &table.uri(seen)).await;
        let one = &measured["shards"][0];
        assert_eq!(one["pending_rows"], json!(5));
        assert_eq!(one["tombstones"], json!(true));
        assert!(one["pending_bytes"].as_i64().unwrap() > 0);
        assert!(one["newest_generation_time"].as_i64().unwrap() > 0);
    }
}

#[tokio::test]
async fn a_generation_that_is_merged_is_not_pending_even_while_it_is_listed() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.flush(shard, 200, 7).await;
    merge(&table, shard, 1, 100, 5).await;
    for seen in BOTH {
        let measured = observe(&engine, &table.uri(seen)).await;
        assert_eq!(measured["base_rows"], json!(15));
        let one = &measured["shards"][0];
        assert_eq!(one["compacted_mark"], json!(1));
        assert_eq!(
            (&one["pending"], &one["pending_rows"]),
            (&json!(1), &json!(7))
        );
        assert_eq!(measured["indexes"], json!([]));
    }
}

#[tokio::test]
async fn a_generation_listed_twice_counts_once() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    change_shard(&table, shard, |sstables, _| {
        sstables.push(sstables[0].clone())
    })
    .await;
    let measured = observe(&engine, &table.path()).await;
    assert_eq!(measured["shards"][0]["pending"], json!(1));
    assert_eq!(measured["shards"][0]["pending_rows"], json!(5));
}

#[tokio::test]
async fn only_a_table_with_a_key_may_have_deletes_pending() {
    let engine = engine();
    for (table, expected) in [
        (Table::keyed().await, true),
        (Table::keyless().await, false),
    ] {
        let shard = Uuid::new_v4();
        let none = observe(&engine, &table.path()).await;
        assert_eq!(none["shards"], json!([]));
        table.flush(shard, 100, 5).await;
        let measured = observe(&engine, &table.path()).await;
        assert_eq!(measured["keyed"], json!(expected));
        assert_eq!(measured["shards"][0]["tombstones"], json!(expected));
    }
}

#[tokio::test]
async fn entries_that_were_never_flushed_are_counted_with_their_rows() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let writer = table.writer(shard).await;
    writer.put(vec![table.rows(100, 5)]).await.unwrap();
    writer.put(vec![table.rows(200, 3)]).await.unwrap();
    writer.abort().await.unwrap();
    for seen in BOTH {
        let measured = observe(&engine, &table.uri(seen)).await;
        let one = &measured["shards"][0];
        assert_eq!(one["pending"], json!(0));
        assert_eq!(
            (&one["tail_entries"], &one["tail_rows"]),
            (&json!(2), &json!(8))
        );
        let next = one["wal_next"].as_u64().unwrap();
        assert_eq!(one["newest_entry"], json!(next - 1));
        assert!(one["newest_entry_time"].as_i64().unwrap() > 0);
    }
}

/// Opening and closing a writer with nothing to replay leaves an entry without
/// rows past the cursor for good. It is no write.
#[tokio::test]
async fn a_sentinel_is_neither_a_tail_entry_nor_the_newest_entry() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let before = observe(&engine, &table.path()).await["shards"][0].clone();
    let writer = table.writer(shard).await;
    Box::pin(writer.close()).await.unwrap();
    for seen in BOTH {
        let after = observe(&engine, &table.uri(seen)).await["shards"][0].clone();
        let next = |shard: &Value| shard["wal_next"].as_u64().unwrap();
        assert!(next(&after) > next(&before), "the claim left no entry");
        assert_eq!(after["tail_entries"], json!(0));
        assert_eq!(after["tail_rows"], json!(0));
        assert_eq!(after["newest_entry"], before["newest_entry"]);
        assert_eq!(after["newest_entry_time"], before["newest_entry_time"]);
    }
}

/// An older writer leaves its cursor one entry behind although that entry is in
/// a flushed generation. It is reported as it stands: what it means is decided
/// elsewhere.
#[tokio::test]
async fn a_lagging_cursor_shows_the_flushed_entry_as_a_tail_entry() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    change_shard(&table, shard, |_, cursor| *cursor -= 1).await;
    for seen in BOTH {
        let measured = observe(&engine, &table.uri(seen)).await;
        let one = &measured["shards"][0];
        assert_eq!(
            (&one["pending"], &one["pending_rows"]),
            (&json!(1), &json!(5))
        );
        assert_eq!(
            (&one["tail_entries"], &one["tail_rows"]),
            (&json!(1), &json!(5))
        );
    }
}

#[tokio::test]
async fn the_end_of_the_wal_is_found_from_a_stale_cursor_and_from_none() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let writer = table.writer(shard).await;
    for from in 0..20 {
        writer.put(vec![table.rows(from, 1)]).await.unwrap();
    }
    writer.abort().await.unwrap();
    let expected = observe(&engine, &table.path()).await["shards"][0]["wal_next"].clone();
    assert!(expected.as_u64().unwrap() > 20);
    // A cursor that points past the end: the entry it names never existed.
    change_shard(&table, shard, |_, cursor| *cursor = 5000).await;
    for seen in BOTH {
        let measured = observe(&engine, &table.uri(seen)).await;
        assert_eq!(measured["shards"][0]["wal_next"], expected, "{seen:?}");
    }
}

#[tokio::test]
async fn a_shard_folder_without_a_manifest_is_a_shard_with_nothing() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    std::fs::create_dir_all(format!("{}/_mem_wal/{shard}/wal", table.path())).unwrap();
    for seen in BOTH {
        let uri = table.uri(seen);
        let measured = observe(&engine, &uri).await;
        assert_eq!(measured["shards"][0]["manifest"], json!(0));
        assert_eq!(measured["shards"][0]["wal_next"], json!(1));
        let fingerprint = &measured["fingerprint"];
        assert_eq!(moved(&engine, &uri, fingerprint, DEEP).await, "unchanged");
    }
    let fingerprint = observe(&engine, &table.path()).await["fingerprint"].clone();
    table.strand(shard, 100, 1).await;
    for seen in BOTH {
        let answer = moved(&engine, &table.uri(seen), &fingerprint, LIGHT).await;
        assert_eq!(answer, format!("shard {shard} manifest"));
    }
}

#[tokio::test]
async fn branches_and_tags_are_named() {
    let (engine, table) = (engine(), Table::keyed().await);
    let mut dataset = table.dataset().await;
    dataset.tags().create("v1.0", 1).await.unwrap();
    Box::pin(dataset.create_branch("feature/new", 2, None))
        .await
        .unwrap();
    for seen in BOTH {
        let measured = observe(&engine, &table.uri(seen)).await;
        assert_eq!(measured["tags"], json!(["v1.0"]));
        assert_eq!(measured["branches"], json!(["feature/new"]));
        assert_eq!(measured["fingerprint"]["refs"], json!(true));
    }
}

#[tokio::test]
async fn the_users_indexes_are_named_and_lances_own_are_not() {
    use lance::index::DatasetIndexExt;
    use lance_index::IndexType;
    use lance_index::scalar::ScalarIndexParams;
    let (engine, table) = (engine(), Table::keyed().await);
    let mut dataset = table.dataset().await;
    let params = ScalarIndexParams::default();
    let name = Some("by_value".to_owned());
    Box::pin(dataset.create_index(&["value"], IndexType::BTree, name, &params, false))
        .await
        .unwrap();
    let measured = observe(&engine, &table.path()).await;
    assert_eq!(measured["indexes"], json!(["by_value"]));
}

#[tokio::test]
async fn what_items_cost_adds_up_to_the_engines_totals() {
    let engine = engine();
    let mut targets = Vec::new();
    let mut tables = Vec::new();
    for _ in 0..3 {
        let (table, shard) = (Table::keyed().await, Uuid::new_v4());
        table.flush(shard, 100, 5).await;
        table.strand(shard, 200, 5).await;
        targets.push(json!({ "uri": table.uri(Seen::AsObjects) }));
        targets.push(json!({ "uri": table.uri(Seen::AsDisk) }));
        tables.push(table);
    }
    let reply = ask(&engine, "observe", json!({ "targets": targets }))
        .await
        .unwrap();
    let results = reply["results"].as_array().unwrap();
    let stats = ask(&engine, "stats", json!({})).await.unwrap();
    for kind in ["list", "head", "get", "put", "delete"] {
        let sum: i64 = results
            .iter()
            .map(|result| result["requests"][kind].as_i64().unwrap())
            .sum();
        assert_eq!(stats["requests"][kind], json!(sum), "{kind}");
        assert_eq!(sum > 0, ["list", "head", "get"].contains(&kind), "{kind}");
    }
    assert_eq!(stats["stores"], json!(2));
}
