//! This machine's clock is wrong by an hour, or by a day. Nothing goes before its
//! time; a clock that is behind only delays.

use serde_json::json;

use super::shards::age_all;
use super::*;
use crate::clock::SKEW;
use crate::error::Class;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WRONG: [i64; 4] = [-DAY, -HOUR, HOUR, DAY];

async fn wrong_by(skew: i64, engine: &Arc<Engine>, op: &str, request: Value) -> Value {
    let work = ask(engine, op, request);
    SKEW.scope(skew, work).await.unwrap()
}

fn how_many(answer: &Value) -> usize {
    answer["deleted"].as_array().unwrap().len()
}

/// Names of what lies where the storage is asked for its time.
fn transactions(table: &Table) -> usize {
    let folder = std::path::Path::new(&table.path()).join("_transactions");
    std::fs::read_dir(folder).unwrap().count()
}

#[tokio::test]
async fn a_folder_goes_when_its_grace_is_over_by_the_storages_clock() {
    for skew in WRONG {
        for seen in BOTH {
            let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
            table.flush(shard, 100, 5).await;
            table.take_over(shard, 1, table.rows(100, 5), &[]).await;
            table.drain(shard, &[1]).await;
            let there = transactions(&table);
            let sweep = json!({
                "uri": table.uri(seen), "grace_ms": 5 * MINUTE, "unknown_grace_ms": HOUR,
            });
            let answer = wrong_by(skew, &engine, "sweep_generations", sweep.clone()).await;
            assert_eq!(how_many(&answer), 0, "{skew} {seen:?} {answer}");
            let due = answer["kept"][0]["due"].as_i64().unwrap();
            let left = due - chrono::Utc::now().timestamp_millis();
            assert!((4 * MINUTE..=5 * MINUTE).contains(&left), "{skew} {left}");

            age_all(&table.shard_folder(shard), 6 * MINUTE);
            let answer = wrong_by(skew, &engine, "sweep_generations", sweep).await;
            let goes = usize::from(skew > 0);
            assert_eq!(how_many(&answer), goes, "{skew} {seen:?} {answer}");
            assert_eq!(transactions(&table), there, "{skew} {seen:?}");
        }
    }
}

#[tokio::test]
async fn a_shard_is_sealed_when_it_was_silent_by_the_storages_clock() {
    for skew in WRONG {
        let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
        table.flush(shard, 100, 5).await;
        table.strand(shard, 200, 3).await;
        let epoch = table.manifest(shard).await.writer_epoch;
        let there = transactions(&table);
        let seal = json!({ "uri": table.path(), "shard": shard, "silent_ms": HOUR });
        let answer = wrong_by(skew, &engine, "seal_shard", seal.clone()).await;
        assert_eq!(answer["refused"]["code"], json!("live"), "{skew} {answer}");
        assert_eq!(table.manifest(shard).await.writer_epoch, epoch, "{skew}");
        assert_eq!(transactions(&table), there, "{skew}");

        age_all(&table.shard_folder(shard), HOUR + MINUTE);
        let dry =
            json!({ "uri": table.path(), "shard": shard, "silent_ms": HOUR, "dry_run": true });
        let before = transactions(&table);
        wrong_by(skew, &engine, "seal_shard", dry).await;
        assert_eq!(transactions(&table), before, "a look writes nothing");
        let answer = wrong_by(skew, &engine, "seal_shard", seal).await;
        let sealed = answer.get("refused").is_none();
        assert_eq!(sealed, skew > 0, "{skew} {answer}");
    }
}

#[tokio::test]
async fn versions_go_when_they_are_old_by_the_storages_clock() {
    for op in ["cleanup_dataset", "cleanup_versions"] {
        for skew in WRONG {
            let (engine, table) = (engine(), Table::keyed().await);
            table.append(20, 5).await;
            table.append(30, 5).await;
            let there = transactions(&table);
            let clean = |age: i64| json!({ "uri": table.path(), "older_than_ms": age, "keep": 1 });
            // By a clock that is ahead they are older than this.
            let age = skew.abs() - MINUTE;
            let answer = wrong_by(skew, &engine, op, clean(age)).await;
            assert_eq!(answer["removed"], json!(0), "{op} {skew} {answer}");
            assert!(transactions(&table) <= there, "{op} {skew}");
        }
        let (engine, table) = (engine(), Table::keyed().await);
        table.append(20, 5).await;
        let clean = json!({ "uri": table.path(), "older_than_ms": 1, "keep": 1 });
        let far = SKEW.scope(3 * DAY, ask(&engine, op, clean.clone())).await;
        let fault = far.unwrap_err();
        assert_eq!(fault.class, Class::Invalid, "{op} {fault}");
        assert!(fault.message.contains("ahead of the storage's"), "{fault}");
        // What the rest of the test rests on: old ones do go.
        let answer = wrong_by(DAY, &engine, op, clean).await;
        assert!(answer["removed"].as_i64().unwrap() > 0, "{op} {answer}");
    }
}
