use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_what_a_reader_finds() {
    let place = place();
    for kind in ["rollout", "generic"] {
        let spec = json!({
            "kind": kind, "shards": 2, "generations": 3, "rows": 10, "fragments": 4,
            "tombstones": 2, "stranded": true, "seed": 7,
        });
        let facts = place.make(kind, spec).await;
        let dataset = place.open(kind).await;
        assert_eq!(facts["version"], dataset.version_id());
        assert_eq!(facts["fragments"], dataset.count_fragments());
        assert_eq!(dataset.count_fragments(), 4);
        assert_eq!(facts["base_rows"], dataset.count_rows(None).await.unwrap());
        let shards = place.shards(kind).await;
        let total = |count: fn(&Shard) -> usize| shards.iter().map(count).sum::<usize>();
        assert_eq!(facts["shards"].as_array().unwrap().len(), shards.len());
        assert_eq!(
            facts["generations"],
            total(|shard| shard.manifest.sstables.len())
        );
        assert_eq!(facts["generations"], 6);
        assert_eq!(facts["pending_rows"], total(rows));
        assert_eq!(facts["tombstones"], total(tombstones));
        assert_eq!(facts["tombstones"], 4);
        assert_eq!(facts["stranded_rows"], total(|shard| shard.tail.len()));
        assert_eq!(facts["stranded_rows"], 6);
        assert_eq!(facts["keys"], place.live_keys(kind).await.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_experiment_without_extras_leaves_nothing_in_the_wal() {
    let place = place();
    let facts = place.make("a", json!({ "kind": "rollout" })).await;
    assert_eq!(
        (&facts["tombstones"], &facts["stranded_rows"]),
        (&json!(0), &json!(0))
    );
    let shard = &place.shards("a").await[0];
    assert_eq!((tombstones(shard), shard.tail.len()), (0, 0));
    assert_eq!(shard.manifest.writer_epoch, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stranded_rows_come_back_when_a_writer_opens_the_shard() {
    let place = place();
    place
        .make(
            "a",
            json!({ "kind": "rollout", "generations": 0, "stranded": 4 }),
        )
        .await;
    let shard = &place.shards("a").await[0];
    assert_eq!((shard.manifest.sstables.len(), shard.tail.len()), (0, 4));
    place.write("a", json!({ "flush": true })).await;
    let shard = &place.shards("a").await[0];
    assert_eq!((rows(shard), shard.tail.len()), (4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_looks_like_one_of_lance_context() {
    let place = place();
    let facts = place
        .make("a", json!({ "kind": "rollout", "shards": 2 }))
        .await;
    let dataset = place.open("a").await;
    let key = dataset.schema().unenforced_primary_key();
    assert_eq!(
        key.iter().map(|field| &field.name[..]).collect::<Vec<_>>(),
        ["id"]
    );
    assert_eq!(dataset.schema().fields.len(), 36);
    assert_eq!(
        dataset.manifest().data_storage_format.version.to_string(),
        "2.1"
    );
    // The shard of every embedded store, and that of a named worker.
    assert_eq!(facts["shards"][0], "02e81b29-f150-54b9-9a08-ce75944f6889");
    assert_eq!(facts["shards"][1], wal::shard_of("worker-1").to_string());
    // Its readers parse these.
    let metadata = dataset
        .scan()
        .project(&["metadata"])
        .unwrap()
        .try_into_batch()
        .await
        .unwrap();
    for text in metadata.column(0).as_string::<i64>().iter() {
        assert!(
            serde_json::from_str::<Value>(text.unwrap())
                .unwrap()
                .is_object()
        );
    }
    let index = dataset.mem_wal_index_details().await.unwrap().unwrap();
    assert_eq!(index.num_shards, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generic_store_knows_its_columns() {
    let place = place();
    place.make("a", json!({ "kind": "generic" })).await;
    let dataset = place.open("a").await;
    let declared = &dataset.schema().metadata["lance-context:schema_spec"];
    let declared: Value = serde_json::from_str(declared).unwrap();
    let declared: Vec<_> = declared["columns"].as_array().unwrap().iter().collect();
    let names: Vec<_> = declared
        .iter()
        .map(|column| column[0].as_str().unwrap())
        .collect();
    let fields = &dataset.schema().fields;
    assert_eq!(
        names,
        fields
            .iter()
            .map(|field| &field.name[..])
            .collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_may_be_empty() {
    let place = place();
    let facts = place
        .make("a", json!({ "kind": "generic", "fragments": 0 }))
        .await;
    assert_eq!(
        (&facts["fragments"], &facts["base_rows"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(place.live_keys("a").await.len(), 15);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_has_fragments_and_no_wal() {
    let place = place();
    let facts = place
        .make("a", json!({ "kind": "table", "fragments": 20, "rows": 3 }))
        .await;
    let dataset = place.open("a").await;
    assert_eq!(dataset.count_fragments(), 20);
    assert_eq!(dataset.count_rows(None).await.unwrap(), 60);
    assert!(dataset.mem_wal_index_details().await.unwrap().is_none());
    assert_eq!(facts["shards"], json!([]));
    assert!(!place.dir.path().join("a/_mem_wal").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seed_decides_the_rows_and_an_existing_dataset_is_left_alone() {
    let place = place();
    for (name, seed) in [("a", 1), ("b", 1), ("c", 2)] {
        place
            .make(name, json!({ "kind": "table", "seed": seed }))
            .await;
    }
    let texts = async |name| {
        let mut scanner = place.open(name).await.scan();
        scanner.project(&["text"]).unwrap();
        let batch = scanner.try_into_batch().await.unwrap();
        batch.column(0).clone()
    };
    assert_eq!(&texts("a").await, &texts("b").await);
    assert_ne!(&texts("a").await, &texts("c").await);
    let again = json!({ "uri": place.uri("a"), "kind": "table" });
    let outcome = make_dataset(place.engine.clone(), request(again), Bytes::new()).await;
    assert_eq!(
        outcome.map_err(|fault| fault.class).unwrap_err(),
        Class::Exists
    );
    assert_eq!(place.open("a").await.version_id(), 1);
}

async fn commit_times(place: &Place, name: &str) -> Vec<SystemTime> {
    let mut datasets = vec![place.open(name).await];
    for generation in files(&place.dir.path().join(name)) {
        if generation
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .contains("_gen_")
        {
            let uri = generation.to_str().unwrap();
            datasets.push(place.engine.open(uri, None).await.unwrap());
        }
    }
    let mut times = Vec::new();
    for dataset in datasets {
        let versions = dataset.versions().await.unwrap();
        times.extend(
            versions
                .iter()
                .map(|version| SystemTime::from(version.timestamp)),
        );
    }
    times
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_experiment_looks_old_everywhere_and_is_whole() {
    let place = place();
    let spec = json!({ "kind": "rollout", "stranded": 2, "tombstones": 1, "age_ms": 9 * DAY });
    let facts = place.make("a", spec).await;
    let young: Vec<_> = files(&place.dir.path().join("a"))
        .into_iter()
        .filter(|path| !is_old(path.metadata().unwrap().modified().unwrap()))
        .collect();
    assert_eq!(young, Vec::<PathBuf>::new());
    let times = commit_times(&place, "a").await;
    assert_eq!(times.len(), 2 + 3, "versions of the base, and generations");
    assert!(times.into_iter().all(is_old));
    // The manifests were written anew: nothing of them was lost.
    let dataset = place.open("a").await;
    dataset.validate().await.unwrap();
    assert!(dataset.manifest().transaction_section.is_some());
    for version in 1..=2 {
        let transaction = dataset.read_transaction_by_version(version).await.unwrap();
        assert!(transaction.is_some(), "of version {version}");
    }
    assert!(dataset.mem_wal_index_details().await.unwrap().is_some());
    assert_eq!(facts["keys"], place.live_keys("a").await.len());
    assert_eq!(place.shards("a").await[0].tail.len(), 2);
    // The first writer made the generations, the second died.
    let written = place.write("a", json!({ "rows": 1, "flush": true })).await;
    assert_eq!(written["epoch"], 3);
}
