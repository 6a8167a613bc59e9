//! What one pass does to the rows, and what it says about it.

use lance::index::DatasetIndexExt;
use lance_index::IndexType;
use lance_index::scalar::ScalarIndexParams;

use super::*;

#[tokio::test]
async fn the_newest_row_of_each_key_ends_up_in_the_base() {
    let (engine, table) = (engine(), Table::of(&[("a", 0), ("b", 0), ("c", 0)]).await);
    let writes: [&[Write]; 3] = [
        &[Row("a", 1), Row("x", 1), Row("x", 2)],
        &[Row("a", 2), Delete("b"), Delete("x"), Row("y", 2)],
        &[Row("x", 3), Delete("y"), Delete("never")],
    ];
    table.generations(SHARD, &writes).await;
    let before = lsm_rows(&table.dataset().await).await;
    let version = table.dataset().await.version_id();

    let merged = merge(&engine, &table.path(), SHARD).await;
    let expected = ["id=a value=2", "id=c value=0", "id=x value=3"];
    assert_eq!(table.base_rows().await, expected);
    assert_eq!(before, expected);
    for (field, value) in [
        ("from", 1),
        ("to", 3),
        ("generations", 3),
        ("rows", 2),
        ("deletes", 1),
        ("drained", 3),
        ("mark_before", 0),
        ("mark", 3),
        ("left", 0),
    ] {
        assert_eq!(merged[field], json!(value), "{field} {merged}");
    }
    assert_eq!(merged["version_before"], json!(version));
    assert_eq!(merged["version"], json!(version + 1), "one commit");
    assert!(merged["bytes"].as_i64().unwrap() > 0);
    assert_eq!(table.mark(SHARD).await, 3);
    assert!(table.listed(SHARD).await.is_empty());
}

#[tokio::test]
async fn a_second_call_finds_nothing_to_do() {
    let (engine, table) = (engine(), Table::of(&[("a", 0)]).await);
    table.generations(SHARD, &[&[Row("a", 1)]]).await;
    merge(&engine, &table.path(), SHARD).await;
    let before = files(&table);
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["generations"], json!(0));
    assert_eq!(merged["drained"], json!(0));
    assert_eq!(merged["mark"], json!(1));
    assert_eq!(files(&table), before);
    // Nor does a shard that was never there.
    let merged = merge(&engine, &table.path(), OTHER).await;
    assert_eq!(merged["generations"], json!(0));
    assert_eq!(files(&table), before);
}

#[tokio::test]
async fn a_run_of_deletes_that_meet_nothing_still_moves_the_mark() {
    let (engine, table) = (engine(), Table::of(&[("a", 0)]).await);
    table
        .generations(SHARD, &[&[Delete("never")], &[Row("x", 1), Delete("x")]])
        .await;
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["rows"], json!(0), "{merged}");
    assert_eq!(merged["deletes"], json!(0));
    assert_eq!(table.mark(SHARD).await, 2);
    assert_eq!(table.base_rows().await, ["id=a value=0"]);
    assert!(table.listed(SHARD).await.is_empty());
}

#[tokio::test]
async fn deleting_all_rows_of_a_fragment_removes_it() {
    let (engine, table) = (engine(), Table::of(&[("a", 0), ("b", 0)]).await);
    table.write(WriteMode::Append, &[("c", 0)]).await;
    table
        .generations(SHARD, &[&[Delete("a"), Delete("b")]])
        .await;
    merge(&engine, &table.path(), SHARD).await;
    assert_eq!(table.base_rows().await, ["id=c value=0"]);
    assert_eq!(table.dataset().await.count_fragments(), 1);
}

#[tokio::test]
async fn repeated_keys_of_the_base_are_healed() {
    let (engine, table) = (engine(), Table::of(&[("a", 0), ("b", 0)]).await);
    table.write(WriteMode::Append, &[("a", 7), ("b", 7)]).await;
    table
        .generations(SHARD, &[&[Row("a", 1), Delete("b")]])
        .await;
    merge(&engine, &table.path(), SHARD).await;
    assert_eq!(table.base_rows().await, ["id=a value=1"]);
}

#[tokio::test]
async fn a_pass_takes_no_more_than_asked_for_and_says_what_is_left() {
    let (engine, table) = (engine(), Table::of(&[]).await);
    let writes: [&[Write]; 5] = [
        &[Row("a", 1)],
        &[Row("a", 2)],
        &[Row("a", 3)],
        &[Row("a", 4)],
        &[Row("a", 5)],
    ];
    table.generations(SHARD, &writes).await;
    let bounded = |generations, bytes| MergeWal {
        max_generations: generations,
        max_bytes: bytes,
        ..request(&table.path(), SHARD)
    };
    let merged = merge_with(&engine, bounded(2, 1 << 30)).await;
    assert_eq!((&merged["to"], &merged["left"]), (&json!(2), &json!(3)));
    assert_eq!(table.base_rows().await, ["id=a value=2"]);
    // A single one that is too big still moves.
    let merged = merge_with(&engine, bounded(8, 1)).await;
    assert_eq!((&merged["to"], &merged["left"]), (&json!(3), &json!(2)));
    let bytes = 2 * merged["bytes"].as_i64().unwrap();
    let merged = merge_with(&engine, bounded(8, bytes)).await;
    assert_eq!((&merged["to"], &merged["left"]), (&json!(5), &json!(0)));
    assert_eq!(table.base_rows().await, ["id=a value=5"]);
}

#[tokio::test]
async fn a_table_without_a_key_gets_every_row_once() {
    let (engine, table) = (engine(), Table::with(false, &[("a", 0)]).await);
    let writes: [&[Write]; 2] = [&[Row("a", 0), Row("a", 0)], &[Row("b", 1)]];
    table.generations(SHARD, &writes).await;
    table.generations(OTHER, &[&[Row("a", 0)]]).await;
    for shard in [SHARD, OTHER, SHARD, OTHER] {
        merge(&engine, &table.path(), shard).await;
    }
    let a = "id=a value=0";
    assert_eq!(table.base_rows().await, [a, a, a, a, "id=b value=1"]);
}

#[tokio::test]
async fn a_commit_says_whose_it_is_and_walks_by_as_maintenance() {
    let (engine, table) = (engine(), Table::of(&[("a", 0)]).await);
    table.generations(SHARD, &[&[Row("a", 1)]]).await;
    merge(&engine, &table.path(), SHARD).await;
    let dataset = table.dataset().await;
    let transaction = dataset.read_transaction().await.unwrap().unwrap();
    let properties = transaction.transaction_properties.unwrap();
    assert_eq!(properties[PROPERTY], "merge");
    let tail: Value = serde_json::from_str(&properties["lancefleet.tail"]).unwrap();
    assert!(tail[SHARD.to_string()]["covered"].is_u64(), "{tail}");
}

#[tokio::test]
async fn indexes_find_the_new_rows_and_not_the_old_ones() {
    for stable in [false, true] {
        let (engine, table) = (engine(), Table::empty(true));
        let batch = table.batch(&[("a", 0), ("b", 0), ("c", 0)]);
        let rows = RecordBatchIterator::new(vec![Ok(batch)], table.schema());
        let params = WriteParams {
            enable_stable_row_ids: stable,
            ..WriteParams::default()
        };
        let mut dataset = Box::pin(Dataset::write(rows, &table.path(), Some(params)))
            .await
            .unwrap();
        Box::pin(dataset.initialize_mem_wal().execute())
            .await
            .unwrap();
        let (kind, params) = (IndexType::BTree, ScalarIndexParams::default());
        Box::pin(dataset.create_index(&["id"], kind, None, &params, true))
            .await
            .unwrap();
        let writes: [&[Write]; 2] = [
            &[Row("a", 1), Delete("b"), Row("x", 1)],
            &[Row("x", 2), Row("a", 2), Row("b", 2)],
        ];
        for writes in writes {
            table.generations(SHARD, &[writes]).await;
            merge(&engine, &table.path(), SHARD).await;
            let expected = lsm_rows(&table.dataset().await).await;
            let mut found = Vec::new();
            for id in ["a", "b", "c", "x"] {
                let dataset = table.dataset().await;
                let mut scanner = dataset.scan();
                scanner.filter(&format!("id = '{id}'")).unwrap();
                let rows = Box::pin(scanner.try_into_stream()).await.unwrap();
                found.extend(sorted(rows.try_collect().await.unwrap()));
            }
            assert_eq!(found, expected, "stable row ids: {stable}");
        }
        assert_eq!(table.base_rows().await.len(), 4);
    }
}

#[tokio::test]
async fn the_storage_of_objects_is_merged_like_a_folder() {
    let (engine, table) = (engine(), Table::of(&[("a", 0), ("b", 0)]).await);
    table
        .generations(SHARD, &[&[Row("a", 1), Delete("b")]])
        .await;
    let merged = merge(&engine, &table.uri(Seen::AsObjects), SHARD).await;
    assert_eq!(table.base_rows().await, ["id=a value=1"]);
    assert!(
        merged["storage_requests"]["get"].as_i64().unwrap() > 0,
        "{merged}"
    );
}

#[tokio::test]
async fn a_drain_takes_out_only_what_was_merged_and_fences_nobody() {
    let (engine, table) = (engine(), Table::of(&[("a", 0)]).await);
    table.generations(SHARD, &[&[Row("a", 1)]]).await;
    let writer = table.writer(SHARD).await;
    let look = pass(&engine, request(&table.path(), SHARD))
        .look()
        .await
        .unwrap();
    writer.put(vec![table.batch(&[("live", 1)])]).await.unwrap();
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["drained"], json!(1), "{merged}");
    // The writer goes on under its epoch.
    writer.put(vec![table.batch(&[("live", 2)])]).await.unwrap();
    Box::pin(writer.close()).await.unwrap();
    let manifest = table.shard_manifest(SHARD).await.unwrap();
    assert_eq!(manifest.writer_epoch, look.manifest.unwrap().writer_epoch);
    assert_eq!(table.listed(SHARD).await, [2]);
    merge(&engine, &table.path(), SHARD).await;
    assert_eq!(table.base_rows().await, ["id=a value=1", "id=live value=2"]);
}

#[tokio::test]
async fn a_folder_that_is_listed_twice_counts_once() {
    let (engine, table) = (engine(), Table::with(false, &[]).await);
    table.generations(SHARD, &[&[Row("a", 1)]]).await;
    edit_manifest(&table, |manifest| {
        let twice = manifest.sstables[0].clone();
        manifest.sstables.push(twice);
    })
    .await;
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(merged["generations"], json!(1));
    assert_eq!(merged["drained"], json!(1));
    assert_eq!(table.base_rows().await, ["id=a value=1"]);
    assert!(table.listed(SHARD).await.is_empty());
}

/// Commits a changed manifest of the shard.
pub async fn edit_manifest(table: &Table, edit: impl Fn(&mut ShardManifest)) {
    let dataset = table.dataset().await;
    let store = dataset.object_store(None).await.unwrap();
    let path = dataset.branch_location().path;
    let manifests = ShardManifestStore::new(store, &path, SHARD, 1);
    let epoch = manifests.latest().await.unwrap().unwrap().writer_epoch;
    manifests
        .commit_update(epoch, |current| {
            let mut next = current.clone();
            next.version += 1;
            edit(&mut next);
            next
        })
        .await
        .unwrap();
}
