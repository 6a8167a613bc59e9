//! What an operator decides about shards that no merge touches: the rows before and
//! after, by key; and that it is decided about what was looked at, once.

use super::*;
use crate::accept::{AcceptShards, commit_after};
use crate::error::Class;

fn asking(table: &Table, how: Value) -> Value {
    let mut request = json!({ "uri": table.path(), "property": PROPERTY });
    for (key, value) in how.as_object().unwrap() {
        request[key] = value.clone();
    }
    request
}

async fn accept(engine: &Arc<Engine>, table: &Table, how: Value) -> Value {
    let request = asking(table, how);
    ask(engine, "accept_shards", request).await.unwrap()
}

/// The dry run, which leaves every file as it was.
async fn look(engine: &Arc<Engine>, table: &Table, how: Value) -> Value {
    let (before, mut how) = (files(table), how);
    how["dry_run"] = json!(true);
    let would = accept(engine, table, how).await;
    assert_eq!(files(table), before, "{would}");
    would
}

/// Looks, decides about that, and merges what is pending then.
async fn decide(engine: &Arc<Engine>, table: &Table, how: Value) -> Value {
    let would = look(engine, table, how.clone()).await;
    assert_eq!(would["refused"], Value::Null, "{would}");
    let mut how = how;
    how["seen"] = would["seen"].clone();
    how["decision"] = json!("run 1");
    let done = accept(engine, table, how).await;
    assert_eq!(done["refused"], Value::Null, "{done}");
    for shard in done["shards"].as_array().unwrap() {
        let request = MergeWal {
            remembered_mark: shard["mark"].as_u64().unwrap(),
            ..request(
                &table.path(),
                shard["shard"].as_str().unwrap().parse().unwrap(),
            )
        };
        merge_all(engine, request).await;
    }
    done
}

fn code(answer: &Value) -> &str {
    answer["refused"]["code"].as_str().unwrap_or_default()
}

fn said(answer: &Value) -> String {
    answer["shards"][0]["sentences"].to_string()
}

/// Generation 1 (a, b) is merged; 2 and 3 (c, d) wait.
async fn merged_before() -> (Arc<Engine>, Table) {
    let (engine, table) = (engine(), Table::of(&[("a", 0)]).await);
    table
        .generations(SHARD, &[&[Row("a", 1), Row("b", 1)]])
        .await;
    merge(&engine, &table.path(), SHARD).await;
    table
        .generations(SHARD, &[&[Row("c", 1)], &[Row("d", 1), Delete("a")]])
        .await;
    (engine, table)
}

async fn restore(table: &Table, version: u64) {
    let dataset = table.dataset().await;
    let mut old = dataset.checkout_version(version).await.unwrap();
    old.restore().await.unwrap();
}

/// The shard of before is gone, and so are all files that knew it.
async fn remove_shard(table: &Table) {
    std::fs::remove_dir_all(table.shard_folder(SHARD)).unwrap();
}

/// With and without a journal that remembers the merge: the table's own history does.
#[tokio::test]
async fn a_table_restored_to_before_a_merge_takes_what_is_listed() {
    for remembered in [json!({ SHARD.to_string(): 1 }), json!({})] {
        let (engine, table) = merged_before().await;
        restore(&table, 2).await;
        assert_eq!(table.base_rows().await, ["id=a value=0"]);
        let seen = lsm_rows(&table.dataset().await).await;
        let refused = merge(&engine, &table.path(), SHARD).await;
        assert_eq!(
            refused["refused"]["code"],
            json!("mark_erased"),
            "{refused}"
        );

        let how = json!({ "remembered_marks": remembered });
        let would = look(&engine, &table, how.clone()).await;
        let words = said(&would);
        for part in [
            "generations of shard",
            "1 generation was merged up to number 1 and is in the log no longer",
            "2 generations (2 to 3) with at most 3 rows are merged",
            "of their 3 keys: 2 are not in the table",
            "1 is deleted",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        decide(&engine, &table, how).await;
        assert_eq!(table.base_rows().await, ["id=c value=1", "id=d value=1"]);
        assert_eq!(table.base_rows().await, seen);
        assert_eq!(
            (table.mark(SHARD).await, table.listed(SHARD).await),
            (3, vec![])
        );
        // From now on it is a table like any other.
        table.generations(SHARD, &[&[Row("e", 1)]]).await;
        assert_eq!(merge(&engine, &table.path(), SHARD).await["to"], json!(4));
    }
}

#[tokio::test]
async fn a_restore_after_the_decision_is_another_one_to_decide_about() {
    let (engine, table) = merged_before().await;
    restore(&table, 2).await;
    decide(&engine, &table, json!({})).await;
    table.generations(SHARD, &[&[Row("e", 1)]]).await;
    restore(&table, 2).await;
    let refused = merge(&engine, &table.path(), SHARD).await;
    assert_eq!(
        refused["refused"]["code"],
        json!("mark_erased"),
        "{refused}"
    );
}

#[tokio::test]
async fn an_overwritten_table_records_marks_again() {
    let (engine, table) = merged_before().await;
    table.write(WriteMode::Overwrite, &[("new", 1)]).await;
    decide(&engine, &table, json!({})).await;
    let rows = ["id=c value=1", "id=d value=1", "id=new value=1"];
    assert_eq!(table.base_rows().await, rows);
    assert_eq!(table.mark(SHARD).await, 3);
}

#[tokio::test]
async fn a_shard_that_was_made_anew_is_merged_from_its_start() {
    // Its counter is at, below, and above the mark.
    for generations in [1, 2, 5] {
        let (engine, table) = merged_before().await;
        merge(&engine, &table.path(), SHARD).await;
        remove_shard(&table).await;
        let writes: [&[Write]; 5] = [
            &[Row("a", 7)],
            &[Row("b", 7)],
            &[Row("p", 1)],
            &[Row("q", 1)],
            &[Delete("c")],
        ];
        table.generations(SHARD, &writes[..generations]).await;
        let refused = merge(&engine, &table.path(), SHARD).await;
        let expected = json!("restarted_counter");
        assert_eq!(refused["refused"]["code"], expected, "{refused}");

        let done = decide(&engine, &table, json!({})).await;
        assert_eq!(done["shards"][0]["mark"], json!(0), "{done}");
        let mut rows = vec![
            "id=a value=7",
            "id=b value=1",
            "id=c value=1",
            "id=d value=1",
        ];
        if generations >= 2 {
            rows[1] = "id=b value=7";
        }
        if generations == 5 {
            rows = vec!["id=a value=7", "id=b value=7", "id=d value=1"];
            rows.extend(["id=p value=1", "id=q value=1"]);
        }
        assert_eq!(table.base_rows().await, rows);
        assert_eq!(table.mark(SHARD).await, generations as u64);
        table.generations(SHARD, &[&[Row("z", 1)]]).await;
        let merged = merge(&engine, &table.path(), SHARD).await;
        assert_eq!(merged["rows"], json!(1), "{merged}");
    }
}

#[tokio::test]
async fn what_is_left_out_is_taken_out_and_the_table_stays() {
    for restored in [true, false] {
        let (engine, table) = merged_before().await;
        if restored {
            restore(&table, 2).await;
        } else {
            merge(&engine, &table.path(), SHARD).await;
            remove_shard(&table).await;
            table.generations(SHARD, &[&[Row("a", 7)]]).await;
        }
        let before = table.base_rows().await;
        let would = look(&engine, &table, json!({ "leave_out": true })).await;
        assert!(
            said(&would).contains("not merged: they are taken out"),
            "{would}"
        );
        decide(&engine, &table, json!({ "leave_out": true })).await;
        assert_eq!(table.base_rows().await, before);
        assert_eq!(table.listed(SHARD).await, Vec::<u64>::new());
        table.generations(SHARD, &[&[Row("z", 1)]]).await;
        let merged = merge(&engine, &table.path(), SHARD).await;
        assert_eq!(
            (&merged["rows"], &merged["drained"]),
            (&json!(1), &json!(1)),
            "{merged}"
        );
    }
}

#[tokio::test]
async fn marks_of_other_shards_stay() {
    let (engine, table) = merged_before().await;
    table.generations(OTHER, &[&[Row("x", 1)]]).await;
    merge(&engine, &table.path(), OTHER).await;
    merge(&engine, &table.path(), SHARD).await;
    remove_shard(&table).await;
    table.generations(SHARD, &[&[Row("a", 7)]]).await;
    let done = decide(&engine, &table, json!({})).await;
    assert_eq!(done["shards"].as_array().unwrap().len(), 1, "{done}");
    assert_eq!((table.mark(OTHER).await, table.mark(SHARD).await), (1, 1));
}

#[tokio::test]
async fn what_moved_since_it_was_looked_at_is_not_decided_about() {
    for what in ["table", "log", "nothing", "other choice"] {
        let (engine, table) = merged_before().await;
        restore(&table, 2).await;
        let would = look(&engine, &table, json!({})).await;
        let mut how = json!({ "seen": would["seen"], "decision": "run 1" });
        match what {
            "table" => drop(table.write(WriteMode::Append, &[("more", 1)]).await),
            "log" => table.generations(SHARD, &[&[Row("e", 1)]]).await,
            "other choice" => how["leave_out"] = json!(true),
            _ => {}
        }
        let before = files(&table);
        let done = accept(&engine, &table, how).await;
        match what {
            "nothing" => assert_eq!(done["refused"], Value::Null, "{done}"),
            _ => {
                assert_eq!(code(&done), "moved", "{what}: {done}");
                assert_eq!(files(&table), before, "{what}");
            }
        }
    }
}

/// Between the last look and the commit.
#[tokio::test]
async fn a_commit_in_the_last_moment_wins() {
    let (engine, table) = merged_before().await;
    restore(&table, 2).await;
    let request: AcceptShards =
        serde_json::from_value(asking(&table, json!({ "decision": "run 1" }))).unwrap();
    let head = table.dataset().await.version_id();
    let append = async {
        table.write(WriteMode::Append, &[("more", 1)]).await;
    };
    let lost = commit_after(&engine, &request, append).await.unwrap_err();
    assert_eq!(lost.class, Class::Conflict, "{lost}");
    assert_eq!(table.dataset().await.version_id(), head + 1);
    let landed = commit_after(&engine, &request, async {}).await.unwrap();
    assert_eq!(landed, head + 2);
    let twice = commit_after(&engine, &request, async {}).await;
    assert!(twice.is_ok(), "the same state again, on purpose: {twice:?}");
}

#[tokio::test]
async fn one_decision_is_carried_out_once() {
    let (engine, table) = merged_before().await;
    restore(&table, 2).await;
    let would = look(&engine, &table, json!({})).await;
    let how = json!({ "seen": would["seen"], "decision": "run 1" });
    let first = accept(&engine, &table, how.clone()).await;
    let before = files(&table);
    let again = accept(&engine, &table, how.clone()).await;
    assert_eq!(files(&table), before);
    assert_eq!(again["version"], first["version"], "{again}");
    assert_eq!(again["shards"][0]["mark"], json!(0));
    // Also when what it was about is merged.
    merge(&engine, &table.path(), SHARD).await;
    let again = accept(&engine, &table, how).await;
    assert_eq!(
        (&again["refused"], &again["version"]),
        (&Value::Null, &first["version"])
    );
    // Another one finds nothing to decide.
    let other = accept(&engine, &table, json!({ "decision": "run 2" })).await;
    assert_eq!(code(&other), "nothing_refused", "{other}");
}

#[tokio::test]
async fn what_merges_by_itself_is_not_decided_about() {
    let (engine, table) = merged_before().await;
    let would = look(&engine, &table, json!({})).await;
    assert_eq!(code(&would), "nothing_refused");
    super::rows::edit_manifest(&table, |manifest| {
        manifest.status = lance_index::mem_wal::ShardStatus::Sealed;
    })
    .await;
    let would = look(&engine, &table, json!({})).await;
    assert_eq!(code(&would), "nothing_refused", "{would}");
}
