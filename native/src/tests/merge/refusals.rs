//! When a shard must not be touched: a code, a sentence, and every file as it was.

use arrow_array::LargeBinaryArray;
use lance::dataset::NewColumnTransform;
use lance_index::mem_wal::ShardStatus;

use super::rows::edit_manifest;
use super::*;

/// The refusal of one call, which leaves every file as it was.
async fn refused(table: &Table, remembered: u64) -> (String, String) {
    let engine = engine();
    let before = files(table);
    let request = MergeWal {
        remembered_mark: remembered,
        ..request(&table.path(), SHARD)
    };
    let merged = merge_with(&engine, request).await;
    assert_eq!(files(table), before, "{merged}");
    assert_eq!(merged["generations"], json!(0), "{merged}");
    assert_eq!(merged["drained"], json!(0), "{merged}");
    let text = |field: &str| {
        let text = merged["refused"][field].as_str();
        text.unwrap_or_else(|| panic!("not refused: {merged}"))
            .to_owned()
    };
    (text("code"), text("sentence"))
}

async fn one_generation() -> Table {
    let table = Table::of(&[("a", 0)]).await;
    table
        .generations(SHARD, &[&[Row("a", 1), Row("b", 1)]])
        .await;
    table
}

/// Merges what is there, then writes two more generations.
async fn merged_before() -> (Arc<Engine>, Table) {
    let (engine, table) = (engine(), one_generation().await);
    let writes: [&[Write]; 2] = [&[Row("c", 1)], &[Row("d", 1)]];
    merge(&engine, &table.path(), SHARD).await;
    table.generations(SHARD, &writes).await;
    (engine, table)
}

#[tokio::test]
async fn a_counter_that_started_again() {
    let (_, table) = merged_before().await;
    merge(&engine(), &table.path(), SHARD).await;
    std::fs::remove_dir_all(format!("{}/_mem_wal/{SHARD}", table.path())).unwrap();
    table.generations(SHARD, &[&[Row("new", 1)]]).await;
    let (code, sentence) = refused(&table, 0).await;
    assert_eq!(code, "restarted_counter");
    assert!(sentence.contains("the next is 2"), "{sentence}");
    assert!(sentence.contains("generation 3"), "{sentence}");
}

#[tokio::test]
async fn a_shard_made_anew_whose_counter_went_past_the_mark() {
    let (engine, table) = (engine(), one_generation().await);
    for _ in 0..8 {
        Box::pin(table.writer(SHARD).await.close()).await.unwrap();
    }
    merge(&engine, &table.path(), SHARD).await;
    std::fs::remove_dir_all(format!("{}/_mem_wal/{SHARD}", table.path())).unwrap();
    let writes: [&[Write]; 3] = [&[Row("p", 1)], &[Row("q", 1)], &[Row("r", 1)]];
    table.generations(SHARD, &writes).await;
    let (code, sentence) = refused(&table, 0).await;
    assert_eq!(code, "restarted_counter");
    assert!(sentence.contains("made anew since"), "{sentence}");
}

/// Neither its counter nor its manifests tell it from the old one: the folders of
/// its generations do.
#[tokio::test]
async fn a_shard_made_anew_that_went_past_the_old_one_in_everything() {
    let (engine, table) = (engine(), one_generation().await);
    merge(&engine, &table.path(), SHARD).await;
    std::fs::remove_dir_all(format!("{}/_mem_wal/{SHARD}", table.path())).unwrap();
    for _ in 0..8 {
        Box::pin(table.writer(SHARD).await.close()).await.unwrap();
    }
    let writes: [&[Write]; 3] = [&[Row("p", 1)], &[Row("q", 1)], &[Row("r", 1)]];
    table.generations(SHARD, &writes).await;
    let (code, sentence) = refused(&table, 0).await;
    assert_eq!(code, "restarted_counter");
    assert!(sentence.contains("made anew since"), "{sentence}");
}

/// Somebody who leaves no marks has drained what the old mark covers. What our merge
/// put down of the old log says nothing of the new one, which is shorter.
#[tokio::test]
async fn a_shard_made_anew_whose_low_generations_somebody_else_drained() {
    let (engine, table) = (engine(), one_generation().await);
    for _ in 0..8 {
        Box::pin(table.writer(SHARD).await.close()).await.unwrap();
    }
    merge(&engine, &table.path(), SHARD).await;
    std::fs::remove_dir_all(format!("{}/_mem_wal/{SHARD}", table.path())).unwrap();
    table.generations(SHARD, &[&[Row("p", 1)]]).await;
    for _ in 0..16 {
        edit_manifest(&table, |manifest| manifest.sstables.clear()).await;
    }
    table.generations(SHARD, &[&[Row("q", 1)]]).await;
    let puts = table.puts(&[Row("late", 1)]);
    let dataset = table.dataset().await;
    Box::pin(crate::maker::write_and_die(&dataset, SHARD, puts))
        .await
        .unwrap();
    let (code, _) = refused(&table, 0).await;
    assert_eq!(code, "restarted_counter");
    let request = json!({ "uri": table.path() });
    let said = ask(&engine, "classify_tail", request).await.unwrap();
    assert_eq!(said["shards"][0]["in_base"], json!(0), "{said}");
}

/// A property that nobody can have meant is none.
#[tokio::test]
async fn a_record_that_says_more_than_it_can_know_is_no_record() {
    use crate::tail::PROPERTY as RECORD;
    let table = one_generation().await;
    let manifest = table.shard_manifest(SHARD).await.unwrap();
    let end = manifest.replay_after_wal_entry_position;
    let max = u64::MAX;
    for record in [
        json!({ "covered": max, "seen": end, "manifest": 1 }),
        json!({ "covered": 0, "proven": [[1, max]], "seen": end, "manifest": 1 }),
        json!({ "covered": 0, "proven": [[3, 1]], "seen": end, "manifest": 1 }),
        json!({ "covered": 0, "open": [max], "seen": end, "manifest": 1 }),
        json!({ "covered": -1, "seen": end, "manifest": 1 }),
        json!({ "covered": 1e300, "seen": end, "manifest": 1 }),
        json!({ "seen": end }),
        json!(7),
    ] {
        let table = one_generation().await;
        let properties = [(RECORD, json!({ SHARD.to_string(): record }).to_string())];
        let rows = table.batch(&[("b", 1)]);
        table.take_over(SHARD, 1, rows, &properties).await;
        let read = crate::tail::record(&table.dataset().await, SHARD).await;
        assert_eq!(read.unwrap(), None, "{record}");
        let (code, _) = refused(&table, 0).await;
        assert_eq!(code, "restarted_counter", "{record}");
    }
}

/// Without a key nobody can tell whether the two are one flush tried twice.
#[tokio::test]
async fn two_folders_of_one_number_in_a_table_without_a_key() {
    for keyed in [false, true] {
        let table = Table::with(keyed, &[("a", 0)]).await;
        let writes: [&[Write]; 2] = [&[Row("p", 1)], &[Row("p", 1)]];
        table.generations(SHARD, &writes).await;
        edit_manifest(&table, |manifest| {
            for one in &mut manifest.sstables {
                one.generation = 1;
            }
        })
        .await;
        if keyed {
            let merged = merge(&engine(), &table.path(), SHARD).await;
            assert_eq!(merged["drained"], json!(2), "{merged}");
            assert_eq!(table.base_rows().await, ["id=a value=0", "id=p value=1"]);
        } else {
            let (code, sentence) = refused(&table, 0).await;
            assert_eq!(code, "twice_listed");
            assert!(sentence.contains("generation 1"), "{sentence}");
        }
    }
}

#[tokio::test]
async fn a_mark_that_a_restore_took_back() {
    let (_, table) = merged_before().await;
    let mut old = table.dataset().await.checkout_version(2).await.unwrap();
    old.restore().await.unwrap();
    assert_eq!(table.mark(SHARD).await, 0);
    let (code, sentence) = refused(&table, 1).await;
    assert_eq!(code, "mark_erased");
    assert!(sentence.contains("up to 1 were merged"), "{sentence}");
}

#[tokio::test]
async fn a_mark_below_the_remembered_one() {
    let (_, table) = merged_before().await;
    let (code, sentence) = refused(&table, 2).await;
    assert_eq!(code, "mark_erased");
    assert!(sentence.contains("only up to 1"), "{sentence}");
}

#[tokio::test]
async fn an_overwritten_table_which_records_no_marks() {
    let (_, table) = merged_before().await;
    table.write(WriteMode::Overwrite, &[("new", 1)]).await;
    for remembered in [0, 1] {
        let (code, sentence) = refused(&table, remembered).await;
        assert_eq!(code, "mark_erased");
        assert!(sentence.contains("no longer records"), "{sentence}");
    }
}

#[tokio::test]
async fn a_sealed_shard() {
    let table = one_generation().await;
    edit_manifest(&table, |manifest| manifest.status = ShardStatus::Sealed).await;
    assert_eq!(refused(&table, 0).await.0, "sealed");
}

#[tokio::test]
async fn a_column_that_the_table_does_not_have_any_more() {
    let table = one_generation().await;
    let mut dataset = table.dataset().await;
    dataset.drop_columns(&["value"]).await.unwrap();
    let (code, sentence) = refused(&table, 0).await;
    assert_eq!(code, "schema");
    assert!(sentence.contains("no column \"value\""), "{sentence}");
    assert!(sentence.contains("generation 1"), "{sentence}");
}

#[tokio::test]
async fn a_column_that_went_and_came_back_as_another() {
    let table = one_generation().await;
    let mut dataset = table.dataset().await;
    dataset.drop_columns(&["value"]).await.unwrap();
    let column = Schema::new(vec![Field::new("value", DataType::Int64, true)]);
    let nulls = NewColumnTransform::AllNulls(Arc::new(column));
    dataset.add_columns(nulls, None, None).await.unwrap();
    let before = lsm_rows(&table.dataset().await).await;
    let (code, sentence) = refused(&table, 0).await;
    assert_eq!((code.as_str(), before.len()), ("schema", 2));
    assert!(sentence.contains("another one took its name"), "{sentence}");
}

#[tokio::test]
async fn a_column_of_another_type() {
    let table = one_generation().await;
    // Lance refuses to change it while there is a MemWAL.
    let rows = RecordBatch::try_new(
        Arc::new(Schema::new(vec![
            table.schema().field(0).clone(),
            Field::new("value", DataType::Utf8, true),
        ])),
        vec![
            Arc::new(StringArray::from(vec!["a"])),
            Arc::new(StringArray::from(vec!["one"])),
        ],
    )
    .unwrap();
    let shard = format!("{}/_mem_wal", table.path());
    let kept = table.folder.path().join("kept");
    std::fs::rename(&shard, &kept).unwrap();
    table.drop_all();
    let schema = rows.schema();
    let rows = RecordBatchIterator::new(vec![Ok(rows)], schema);
    let mut dataset = Box::pin(Dataset::write(rows, &table.path(), None))
        .await
        .unwrap();
    Box::pin(dataset.initialize_mem_wal().execute())
        .await
        .unwrap();
    std::fs::rename(&kept, &shard).unwrap();
    let (code, sentence) = refused(&table, 0).await;
    assert_eq!(code, "schema");
    assert!(sentence.contains("value"), "{sentence}");
}

#[tokio::test]
async fn a_column_of_blobs() {
    let folder = tempfile::tempdir().unwrap();
    let table = Table {
        folder,
        keyed: true,
    };
    let blob = HashMap::from([("lance-encoding:blob".to_owned(), "true".to_owned())]);
    let schema = Arc::new(Schema::new(vec![
        table.schema().field(0).clone(),
        Field::new("payload", DataType::LargeBinary, true).with_metadata(blob),
    ]));
    let rows = |id: &str| {
        let payload = LargeBinaryArray::from(vec![b"bytes".as_ref()]);
        let columns: Vec<arrow_array::ArrayRef> =
            vec![Arc::new(StringArray::from(vec![id])), Arc::new(payload)];
        RecordBatch::try_new(schema.clone(), columns).unwrap()
    };
    let reader = RecordBatchIterator::new(vec![Ok(rows("a"))], schema.clone());
    let params = WriteParams {
        data_storage_version: Some("2.1".parse().unwrap()),
        ..WriteParams::default()
    };
    let mut dataset = Box::pin(Dataset::write(reader, &table.path(), Some(params)))
        .await
        .unwrap();
    Box::pin(dataset.initialize_mem_wal().execute())
        .await
        .unwrap();
    let puts = vec![vec![Put::Rows(rows("b"))]];
    Box::pin(write_generations(&dataset, SHARD, puts))
        .await
        .unwrap();
    let (code, sentence) = refused(&table, 0).await;
    assert_eq!(code, "blob");
    assert!(sentence.contains("\"payload\""), "{sentence}");
}

#[tokio::test]
async fn what_fits_before_a_generation_that_does_not_is_merged_first() {
    let (engine, table) = (engine(), one_generation().await);
    let mut dataset = table.dataset().await;
    let column = Schema::new(vec![Field::new("later", DataType::Int64, true)]);
    let nulls = NewColumnTransform::AllNulls(Arc::new(column));
    dataset.add_columns(nulls, None, None).await.unwrap();
    let dataset = table.dataset().await;
    let rows = RecordBatch::try_new(
        Arc::new(Schema::from(dataset.schema())),
        vec![
            Arc::new(StringArray::from(vec!["c"])),
            Arc::new(Int64Array::from(vec![2])),
            Arc::new(Int64Array::from(vec![2])),
        ],
    )
    .unwrap();
    let puts = vec![vec![Put::Rows(rows)]];
    Box::pin(write_generations(&dataset, SHARD, puts))
        .await
        .unwrap();
    let mut dataset = table.dataset().await;
    dataset.drop_columns(&["later"]).await.unwrap();
    let merged = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(
        (&merged["to"], &merged["left"]),
        (&json!(1), &json!(1)),
        "{merged}"
    );
    assert_eq!(refused(&table, 0).await.0, "schema");
    assert_eq!(table.base_rows().await, ["id=a value=1", "id=b value=1"]);
}
