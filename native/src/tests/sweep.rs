//! Folders of drained generations.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;

use super::shards::age_all;
use super::*;

const GRACE: i64 = 300_000;
const UNKNOWN_GRACE: i64 = 3_600_000;

async fn sweep(engine: &Arc<Engine>, uri: &str) -> Value {
    let request = json!({
        "uri": uri,
        "grace_ms": GRACE,
        "unknown_grace_ms": UNKNOWN_GRACE,
    });
    ask(engine, "sweep_generations", request).await.unwrap()
}

async fn swept(engine: &Arc<Engine>, table: &Table) -> Value {
    sweep(engine, &table.path()).await
}

fn deleted(answer: &Value) -> usize {
    answer["deleted"].as_array().unwrap().len()
}

/// Why the folders stay, by path.
fn kept(answer: &Value) -> BTreeMap<String, (String, i64)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let kept = answer["kept"].as_array().unwrap().iter();
    kept.map(|one| {
        let due = one["due"].as_i64().unwrap_or(0);
        (text(&one["path"]), (text(&one["why"]), due))
    })
    .collect()
}

/// The folder of a generation, before it is drained.
async fn folder(table: &Table, shard: Uuid, generation: u64) -> PathBuf {
    let manifest = table.manifest(shard).await;
    let one = manifest
        .sstables
        .iter()
        .find(|one| one.generation == generation);
    table.shard_folder(shard).join(&one.unwrap().path)
}

/// Flushed, merged if so, drained.
async fn drained(table: &Table, shard: Uuid, merged: bool) -> PathBuf {
    table.flush(shard, 100, 5).await;
    let folder = folder(table, shard, 1).await;
    if merged {
        table.take_over(shard, 1, table.rows(100, 5), &[]).await;
    }
    table.drain(shard, &[1]).await;
    folder
}

#[tokio::test]
async fn a_folder_goes_when_its_grace_is_over() {
    for (merged, grace) in [(true, GRACE), (false, UNKNOWN_GRACE)] {
        let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
        let folder = drained(&table, shard, merged).await;
        let answer = swept(&engine, &table).await;
        assert_eq!(deleted(&answer), 0, "{answer}");
        let (_, due) = kept(&answer).into_values().next().unwrap();
        let left = due - chrono::Utc::now().timestamp_millis();
        assert!((grace - 60_000..=grace).contains(&left), "{left}");
        assert!(folder.exists());

        age_all(&table.shard_folder(shard), grace + 1000);
        let answer = swept(&engine, &table).await;
        assert_eq!(deleted(&answer), 1, "{answer}");
        assert!(answer["bytes"].as_i64().unwrap() > 0);
        assert_eq!(answer["bytes"], answer["deleted"][0]["bytes"]);
        assert!(!folder.exists());
        assert_eq!(kept(&answer).len(), 0);
        // The rest of the shard is as it was.
        assert!(table.shard_folder(shard).join("wal").exists());
        let again = swept(&engine, &table).await;
        assert_eq!((deleted(&again), kept(&again).len()), (0, 0));
    }
}

#[tokio::test]
async fn it_works_through_the_object_store_too() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let folder = drained(&table, shard, true).await;
    assert!(files_below(&folder) > 3);
    age_all(&table.shard_folder(shard), GRACE + 1000);
    let answer = sweep(&engine, &table.uri(Seen::AsObjects)).await;
    assert_eq!(deleted(&answer), 1, "{answer}");
    assert_eq!(files_below(&folder), 0);
}

fn files_below(path: &std::path::Path) -> usize {
    match std::fs::read_dir(path) {
        Err(_) => usize::from(path.exists()),
        Ok(entries) => entries.map(|one| files_below(&one.unwrap().path())).sum(),
    }
}

#[tokio::test]
async fn what_a_manifest_names_or_the_next_flush_may_use_stays() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let listed = folder(&table, shard, 1).await;
    let ahead = table.shard_folder(shard).join("0123abcd_gen_2/data/x");
    std::fs::create_dir_all(&ahead).unwrap();
    std::fs::write(ahead.join("1.blob"), b"acknowledged").unwrap();
    age_all(&table.shard_folder(shard), 10 * UNKNOWN_GRACE);
    let answer = swept(&engine, &table).await;
    assert_eq!(deleted(&answer), 0, "{answer}");
    assert!(listed.join("_versions").exists());
    assert!(ahead.join("1.blob").exists());
    let (why, due) = kept(&answer)["0123abcd_gen_2"].clone();
    assert!(why.contains("still to be flushed"), "{why}");
    assert_eq!(due, 0);
}

#[tokio::test]
async fn what_a_wal_entry_names_stays() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let folder = drained(&table, shard, true).await;
    table.lag(shard, 1).await;
    age_all(&table.shard_folder(shard), 10 * UNKNOWN_GRACE);
    let answer = swept(&engine, &table).await;
    assert_eq!(deleted(&answer), 0, "{answer}");
    let (why, _) = kept(&answer).into_values().next().unwrap();
    assert!(why.contains("WAL entry"), "{why}");
    assert!(folder.exists());
}

#[tokio::test]
async fn foreign_files_and_folders_are_never_touched() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let folder = drained(&table, shard, true).await;
    let root = table.shard_folder(shard);
    let foreign = [
        folder.join("notes.txt"),
        root.join("0123ABCD_gen_1/data/a.lance"),
        root.join("backup_gen_1/data/a.lance"),
        root.join("0123abcd_gen_1.old/data/a.lance"),
        root.join("deeper/0123abcd_gen_1/data/a.lance"),
        root.join("readme.md"),
        PathBuf::from(table.path()).join("0123abcd_gen_1/data/a.lance"),
    ];
    for path in &foreign {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"mine").unwrap();
    }
    age_all(&root, 10 * UNKNOWN_GRACE);
    let answer = swept(&engine, &table).await;
    assert_eq!(deleted(&answer), 0, "{answer}");
    for path in &foreign {
        assert!(path.exists(), "{path:?}");
    }
    // With the stray file its whole folder stays.
    assert!(folder.join("_versions").exists());
    let (why, due) = kept(&answer).into_values().next().unwrap();
    assert!(why.contains("notes.txt"), "{why}");
    assert_eq!(due, 0);
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_behind_a_symbolic_link_is_touched() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let folder = drained(&table, shard, true).await;
    let elsewhere = table.folder.path().join("elsewhere");
    std::fs::rename(&folder, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    age_all(&elsewhere, 10 * UNKNOWN_GRACE);
    age_all(
        &table.shard_folder(shard).join("manifest"),
        10 * UNKNOWN_GRACE,
    );
    let answer = swept(&engine, &table).await;
    assert_eq!(deleted(&answer), 0, "{answer}");
    assert!(elsewhere.join("_versions").exists());
    assert!(folder.join("_versions").exists());
}

#[tokio::test]
async fn a_folder_that_no_manifest_ever_named_waits_from_its_own_time_on() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    let real = drained(&table, shard, false).await;
    // What a flush leaves that failed and was tried again.
    let failed = table.shard_folder(shard).join("0123abcd_gen_1");
    std::fs::create_dir_all(failed.join("data")).unwrap();
    std::fs::write(failed.join("data/a.lance"), b"half").unwrap();
    age_all(&failed, UNKNOWN_GRACE + 1000);
    let answer = swept(&engine, &table).await;
    assert_eq!(deleted(&answer), 1, "{answer}");
    assert!(!failed.exists());
    assert!(real.exists());
}

#[tokio::test]
async fn a_negative_grace_is_invalid() {
    let (engine, table) = (engine(), Table::keyed().await);
    let request = json!({ "uri": table.path(), "grace_ms": -1, "unknown_grace_ms": 1 });
    let fault = ask(&engine, "sweep_generations", request)
        .await
        .unwrap_err();
    assert_eq!(fault.class, crate::error::Class::Invalid);
}
