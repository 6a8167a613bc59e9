//! Evidence: what it sees, and what it calls blocking.

use lance_index::mem_wal::ShardStatus;
use serde_json::json;

use super::*;

async fn evidence(engine: &Arc<Engine>, table: &Table, deep: bool) -> Value {
    let one = verify(engine, &table.uri(Seen::AsDisk), deep)
        .await
        .unwrap();
    let other = verify(engine, &table.uri(Seen::AsObjects), deep)
        .await
        .unwrap();
    for field in [
        "shards", "blocking", "rows", "pending", "stranded", "unknown",
    ] {
        assert_eq!(one[field], other[field], "{field}");
    }
    assert!(other["storage_requests"]["list"].as_i64().unwrap() > 0);
    one
}

async fn verify(engine: &Arc<Engine>, uri: &str, deep: bool) -> Result<Value, Fault> {
    ask(engine, "verify", json!({ "uri": uri, "deep": deep })).await
}

fn sentences(evidence: &Value) -> Vec<&str> {
    let blocking = evidence["blocking"].as_array().unwrap();
    blocking.iter().map(|one| one.as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_table_with_nothing_pending_is_clean_and_counted() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.take_over(shard, 1, table.rows(100, 5), &[]).await;
    table.drain(shard, &[1]).await;
    let before = chrono::Utc::now().timestamp_millis();
    let seen = evidence(&engine, &table, true).await;
    assert_eq!(sentences(&seen), Vec::<&str>::new());
    assert_eq!(
        (&seen["rows"], &seen["distinct_keys"]),
        (&json!(15), &json!(15))
    );
    assert_eq!(
        (&seen["pending"], &seen["fragments"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(seen["shards"][0]["mark"], json!(1));
    assert!(seen["verified_at"].as_i64().unwrap() >= before);
    let known = observe(&engine, &table.path()).await["fingerprint"].clone();
    assert_eq!(seen["fingerprint"], known);
    assert_eq!(
        evidence(&engine, &table, false).await["distinct_keys"],
        json!(-1)
    );
}

#[tokio::test]
async fn every_shard_and_every_entry_is_seen() {
    let (engine, table) = (engine(), Table::keyed().await);
    let [pending, stranded, lagging] = [1, 2, 3].map(Uuid::from_u128);
    table.flush(pending, 100, 5).await;
    table.strand(stranded, 200, 3).await;
    table.flush(lagging, 300, 5).await;
    table.lag(lagging, 1).await;
    let seen = evidence(&engine, &table, false).await;
    assert_eq!(
        (&seen["pending"], &seen["stranded"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(seen["shards"].as_array().unwrap().len(), 3);
    assert_eq!(seen["shards"][2]["contained"], json!(1));
    assert_eq!(
        sentences(&seen),
        [
            format!("shard {pending}: 1 generation is not merged yet"),
            format!("shard {lagging}: 1 generation is not merged yet"),
            format!(
                "shard {stranded}: 1 WAL entry with 3 rows is stranded: their writer never flushed them"
            ),
        ]
    );
}

#[tokio::test]
async fn sealed_and_restarted_shards_with_generations_are_named() {
    let (engine, table) = (engine(), Table::keyed().await);
    let [sealed, again, empty] = [1, 2, 3].map(Uuid::from_u128);
    for shard in [sealed, again, empty] {
        table.flush(shard, 100, 5).await;
    }
    table
        .change(sealed, |one| one.status = ShardStatus::Sealed)
        .await;
    table.take_over(again, 8, table.rows(100, 5), &[]).await;
    // Began anew as well, but has nothing that could be missed.
    table.take_over(empty, 8, table.rows(200, 5), &[]).await;
    table.drain(empty, &[1]).await;
    let seen = evidence(&engine, &table, false).await;
    let said = sentences(&seen);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("sealed by its owner"), "{said:?}");
    assert!(said[1].contains("counts its generations anew"), "{said:?}");
}

/// Nobody reads on behind an entry that is not there.
#[tokio::test]
async fn what_lies_behind_a_lost_entry_stops_a_retirement() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    table.take_over(shard, 1, table.rows(100, 5), &[]).await;
    table.drain(shard, &[1]).await;
    let lost = table.wal_end(shard);
    table.strand(shard, 200, 3).await;
    table.strand(shard, 300, 3).await;
    std::fs::remove_file(table.wal_file(shard, lost)).unwrap();
    table
        .change(shard, |one| one.wal_entry_position_last_seen = lost - 1)
        .await;
    let seen = evidence(&engine, &table, false).await;
    let said = sentences(&seen).join("; ");
    assert!(
        said.contains(&format!("entry {lost} of its log is lost")),
        "{said}"
    );
}

#[tokio::test]
async fn repeated_keys_are_found_when_asked_for() {
    let (engine, table) = (engine(), Table::keyed().await);
    table.append(5, 10).await;
    assert_eq!(
        sentences(&evidence(&engine, &table, false).await),
        Vec::<&str>::new()
    );
    let seen = evidence(&engine, &table, true).await;
    assert_eq!(
        (&seen["rows"], &seen["distinct_keys"]),
        (&json!(20), &json!(15))
    );
    let expected =
        "the table has 20 rows under 15 keys: 5 rows are of a key that another row has already";
    assert_eq!(sentences(&seen), [expected]);
    let keyless = Table::keyless().await;
    assert_eq!(
        evidence(&engine, &keyless, true).await["distinct_keys"],
        json!(-1)
    );
}

#[tokio::test]
async fn a_table_that_moves_under_the_look_is_a_conflict() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    table.flush(shard, 100, 5).await;
    let uri = table.path();
    // Whoever writes does so all the time: some look meets it.
    let writing = async {
        for round in 0..200 {
            table.append(1000 + round, 1).await;
        }
    };
    let looking = async {
        let mut met = 0;
        for _ in 0..40 {
            match verify(&engine, &uri, false).await {
                Ok(_) => {}
                Err(fault) => {
                    assert_eq!(fault.class, crate::error::Class::Conflict, "{fault}");
                    met += 1;
                }
            }
        }
        met
    };
    let (_, met) = tokio::join!(writing, looking);
    assert!(met > 0, "nothing was noticed");
}

#[tokio::test]
async fn what_is_not_there_is_gone() {
    let (engine, table) = (engine(), Table::empty(true));
    for op in [
        "verify",
        "classify_tail",
        "preview",
        "compact",
        "cleanup_dataset",
    ] {
        let request = json!({ "uri": table.path(), "older_than_ms": 1 });
        let fault = ask(&engine, op, request).await.unwrap_err();
        assert_eq!(fault.class, crate::error::Class::Gone, "{op}: {fault}");
    }
}

#[tokio::test]
async fn a_preview_says_what_would_be_done_and_does_nothing() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    for from in [20, 30, 40] {
        table.append(from, 5).await;
    }
    table.flush(shard, 100, 5).await;
    table.strand(shard, 200, 3).await;
    let before = observe(&engine, &table.path()).await;
    let request = json!({
        "uri": table.path(),
        "remembered_marks": {},
        "target_rows": 1000,
        "min_fragments": 2,
        "older_than_ms": 1,
    });
    let told = ask(&engine, "preview", request).await.unwrap();
    assert_eq!(told["merge"][0]["generations"], json!(1));
    assert_eq!(told["merge"][0]["rows"], json!(5));
    assert_eq!(told["compact"]["tasks"], json!(1));
    assert_eq!(told["compact"]["fragments_removed"], json!(4));
    assert_eq!(told["compact"]["fragments_after"], json!(1));
    assert_eq!(told["versions"]["removed"], json!(4));
    assert_eq!(told["tails"][0]["stranded"], json!(1));
    assert_eq!(told["blocking"].as_array().unwrap().len(), 2);
    let after = observe(&engine, &table.path()).await;
    assert_eq!(before["fingerprint"], after["fingerprint"]);
    let requests = &told["storage_requests"];
    assert_eq!(
        (&requests["put"], &requests["delete"]),
        (&json!(0), &json!(0))
    );
}

/// Removed and made again, it has counted past the old mark: its first generations
/// look merged.
#[tokio::test]
async fn a_shard_made_again_is_told_by_its_manifests_however_far_it_counted() {
    let (engine, table, shard) = (engine(), Table::keyed().await, Uuid::new_v4());
    for round in 0..3 {
        table.flush(shard, 100 + 10 * round, 5).await;
    }
    let checked = json!({ shard.to_string(): {
        "covered": 9, "seen": 9, "manifest": 1000,
    } });
    let properties = [(crate::tail::PROPERTY, checked.to_string())];
    table
        .take_over(shard, 2, table.rows(500, 1), &properties)
        .await;
    let said = evidence(&engine, &table, false).await;
    assert!(
        sentences(&said)[0].contains("counts its generations anew"),
        "{said}"
    );
}
