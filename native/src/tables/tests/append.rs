use arrow_array::StringArray;

use super::*;

#[tokio::test]
async fn an_append_creates_the_table_only_when_told_to() {
    let place = place();
    let rows = numbers(&[("a", &[1])]);
    assert_eq!(class(place.append(false, &rows).await), Some(Class::Gone));
    assert_eq!(place.append(true, &rows).await.unwrap(), 1);
    assert_eq!(
        place.append(true, &numbers(&[("a", &[2])])).await.unwrap(),
        2
    );
    assert_eq!(place.values().await, [1, 2]);
}

#[tokio::test]
async fn an_append_adds_what_the_table_lacks_and_fills_what_the_rows_lack() {
    let place = place();
    let old = numbers(&[("a", &[1]), ("old", &[10])]);
    place.commit(0, &old).await.unwrap();
    // The new column is required here, and can't be for rows that are there.
    let mut new = numbers(&[("new", &[20]), ("a", &[2])]);
    new.schema = Arc::new(Schema::new(vec![
        Field::new("new", DataType::Int64, false),
        Field::new("a", DataType::Int64, false),
    ]));
    new.batches =
        vec![RecordBatch::try_new(new.schema.clone(), new.batches[0].columns().to_vec()).unwrap()];
    place.append(false, &new).await.unwrap();
    let (_, table) = place.read(json!({})).await.unwrap();
    let mut rows = Vec::new();
    for batch in &table.batches {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .unwrap()
                .as_primitive::<Int64Type>()
        };
        let columns = [column("a"), column("old"), column("new")];
        for row in 0..batch.num_rows() {
            rows.push(columns.map(|column| column.iter().nth(row).unwrap()));
        }
    }
    rows.sort_unstable();
    assert_eq!(rows, [[Some(1), Some(10), None], [Some(2), None, Some(20)]]);
}

#[tokio::test]
async fn an_append_that_can_not_fit_is_refused() {
    let place = place();
    place.commit(0, &numbers(&[("a", &[1])])).await.unwrap();
    let without = place.append(false, &numbers(&[("b", &[1])])).await;
    assert_eq!(class(without), Some(Class::Invalid), "a is required");
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, false)]));
    let text = Arc::new(StringArray::from(vec!["one"]));
    let batch = RecordBatch::try_new(schema.clone(), vec![text]).unwrap();
    let table = Table {
        schema,
        batches: vec![batch],
    };
    assert_eq!(
        class(place.append(false, &table).await),
        Some(Class::Invalid),
        "a is a number"
    );
    let garbage = Bytes::from_static(b"not arrow");
    let json = json!({ "uri": place.uri, "create": true });
    let outcome = append(place.engine.clone(), request(json), garbage).await;
    assert_eq!(class(outcome), Some(Class::Invalid));
    assert_eq!(place.values().await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_at_the_same_time_all_land_even_if_they_bring_new_columns() {
    let place = Arc::new(place());
    let appends = (0..6).map(|who| {
        let place = place.clone();
        tokio::spawn(async move {
            let own = format!("column-{}", who % 3);
            let rows = numbers(&[("a", &[who]), (&own, &[who])]);
            place.append(true, &rows).await
        })
    });
    for ended in futures::future::join_all(appends).await {
        ended.unwrap().unwrap();
    }
    assert_eq!(place.values().await, [0, 1, 2, 3, 4, 5]);
    let (_, table) = place.read(json!({})).await.unwrap();
    assert_eq!(table.schema.fields().len(), 4);
}
